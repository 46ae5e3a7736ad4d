import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ClassView } from "../../controller/areas/objects/index.ts";
import type { Permission } from "../../controller/areas/permissions/index.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { openWorld, type World } from "./world.ts";

/**
 * Users that may read the objects of the platform's classes: the same by every way, for each kind of caller. Decide
 * here for every new class.
 */
const READING: Readonly<Record<string, string>> = {
  "/matrix/consolelog/rule": "consolelog:read",
  "/matrix/consolelog/serverjs": "consolelog:read",
  "/matrix/consolelog/trigger": "consolelog:read",
  "/matrix/filesystem": "files:read, groups",
  "/matrix/jobs/cmdrun": "jobs:read, groups without out, err",
  "/matrix/jobs/jobdef": "jobs:read",
  "/matrix/jobs/jobgroup": "jobs:read",
  "/matrix/jobs/jobrun": "jobs:read, groups without out, err",
  "/matrix/ldap": "users:read, groups",
  "/matrix/system/audit": "audit:read",
  "/matrix/system/command": "hosts:read",
  "/matrix/system/commandoutput": "hosts:read",
  "/matrix/system/config": "config:read",
  "/matrix/system/deployment": "depots:read, groups",
  "/matrix/system/depot": "depots:read",
  "/matrix/system/filecontent": "files:read, groups",
  "/matrix/system/filehistory": "files:read, groups",
  "/matrix/system/filepassage": "files:read, groups",
  "/matrix/system/hostinfo": "hosts:read, groups",
  "/matrix/system/policy": "policies:read",
  "/matrix/system/policygap": "policies:read, groups",
  "/matrix/system/policyrun": "policies:read, groups",
  "/matrix/system/policystate": "policies:read",
  "/matrix/system/ruleretry": "rules:read",
  "/matrix/system/tagmove": "tags:read, groups",
  "/matrix/system/transfer": "objects:read, groups",
  "/matrix/system/triggerevent": "triggers:read",
};

const PATHS = Object.keys(READING);
const ROOT = { class: "/", access: "read" } as const;
const admin = testPrincipal();

/** Every way to read objects of a class; each returns an error or data of the objects. */
const WAYS: Readonly<Record<string, (path: string) => { readonly url: string; readonly text?: string }>> = {
  MQL: (path) => mql(`select * from ${path}`),
  "a count": (path) => mql(`select count(*) from ${path}`),
  "a union": (path) => mql(`select id from ${path} union select id from ${path}`),
  "a subselect": (path) => mql(`select id from ${path} where id in (select id from ${path})`),
  "a join": (path) => mql(`select a.id from ${path} a join (b:${path}) on a.id = b.id`),
  MATCH: (path) => mql(`match (a:${path})`),
  EXPLAIN: (path) => mql(`explain select * from ${path}`),
  "a batch": (path) => mql(`begin select * from ${path}; end`),
  search: (path) => ({ url: "/mxobject/search?meta=true", text: `#${path}: | top 10` }),
  export: (path) => ({ url: `/mxobject/export?filetype=mql&class=${path}` }),
};

function mql(text: string): { readonly url: string; readonly text: string } {
  return { url: "/mxobject/mql?meta=true", text };
}

let world: World;
let views: readonly ClassView[];
const signedIn = new Map<string, string>();

beforeAll(async () => {
  world = await openWorld();
  const { assembly } = world;
  views = (await assembly.objects.catalog(admin)).tree("/").filter(({ system }) => system);
  await assembly.query.rows(
    admin,
    "create class /matrix/mine (name varchar, keys(name)); insert into /matrix/mine name='x'",
  );
  const permissions = new Set(PATHS.map((path) => permissionOf(path)));
  for (const permission of permissions)
    await user(permission.replace(":", "_"), { grants: ["objects:read", permission], data: [ROOT] });
  await user("plain", { grants: ["objects:read"], data: [ROOT] });
  await user("member", { grants: [], data: [] });
  await user("other", { grants: ["tables:read"], data: [] });
  await assembly.groups.create(admin, { name: "portal", readonly: ["/"], member: ["U/member", "U/other"] });
  const made = await ask("other", { url: "/user/tokens", text: '{"name":"part","scopes":["objects:read"]}' });
  signedIn.set("part", (JSON.parse(made) as { message: string }).message);
}, 120_000);
afterAll(() => world?.[Symbol.asyncDispose]());

async function user(username: string, rights: { grants: string[]; data: (typeof ROOT)[] }): Promise<void> {
  const { assembly } = world;
  await assembly.users.create(admin, { username, password: PASSWORD, rights });
  const signIn = { company: "matrix", username, password: PASSWORD, remote: "test", traceparent: "" };
  signedIn.set(username, (await assembly.users.signIn(signIn)).session);
}

async function ask(username: string, { url, text }: { readonly url: string; readonly text?: string }): Promise<string> {
  const by = signedIn.get(username) ?? "";
  const isToken = username === "part";
  const session = isToken ? "" : `${url.includes("?") ? "&" : "?"}sessionid=${by}`;
  const headers = { "content-type": "text/plain", ...(isToken && { authorization: `Bearer ${by}` }) };
  const request = text === undefined ? { method: "GET" as const } : { method: "POST" as const, payload: text };
  return (await world.app.inject({ ...request, url: url + session, headers })).body;
}

function permissionOf(path: string): Permission {
  return (READING[path]?.split(",")[0] ?? "") as Permission;
}

test("each class states it", () => {
  const stated = views.map(({ path, guard }) => {
    const { permission, isOpenToGroups, withheld = [] } = guard?.reading ?? {};
    const without = withheld.length > 0 ? ` without ${withheld.join(", ")}` : "";
    return [path, `${permission ?? "nothing"}${isOpenToGroups ? `, groups${without}` : ""}`];
  });
  expect(Object.fromEntries(stated)).toEqual(READING);
});

describe.each(PATHS)("%s is read by every way", (path) => {
  test("by who has the permission, by who is in a group that opens it, and by nobody else", async () => {
    const holder = permissionOf(path).replace(":", "_");
    const isOpenToGroups = READING[path]?.includes("groups") === true;
    const callers = {
      [holder]: true,
      member: isOpenToGroups,
      // Every user has the permission for files, which path grants restrict.
      plain: ["objects_read", "files_read"].includes(holder),
      part: holder === "objects_read",
    };
    const seen: Record<string, boolean> = {};
    const wanted: Record<string, boolean> = {};
    for (const [caller, isOpen] of Object.entries(callers))
      for (const [way, request] of Object.entries(WAYS)) {
        const answer = await ask(caller, request(path));
        const isRefused = /"code":"(denied|not_found)"/.test(answer);
        if (!isRefused) expect(answer, `${caller}, ${way}`).not.toMatch(/"status":"(error|signin)"/);
        seen[`${caller}, ${way}`] = !isRefused;
        wanted[`${caller}, ${way}`] = isOpen;
      }
    expect(seen).toEqual(wanted);
  });
});

test("who lacks the permission is told which it is", async () => {
  const answer = await ask("plain", mql("select * from /matrix/system/audit"));
  expect(JSON.parse(answer)).toMatchObject({
    code: "denied",
    message: "Reading objects of /matrix/system/audit takes the permission audit:read.",
  });
});

test("what is read across classes leaves the closed ones out", async () => {
  const audit = await ask("audit_read", mql("select id from /matrix/ limit -1"));
  expect(audit).toMatch(/"audit:/);
  for (const caller of ["plain", "member", "part"]) {
    const answer = await ask(caller, mql("select id from /matrix/ limit -1"));
    expect(answer).toContain('"mine:x"');
    expect(answer).not.toMatch(/"audit:/);
    const classes = await ask(caller, mql("select name from /system/class limit -1"));
    expect(classes).toContain("/matrix/mine");
    expect(classes).not.toContain("/matrix/system/audit");
  }
});

test("what commands of runs wrote is withheld from who sees the runs by a group", async () => {
  for (const path of ["/matrix/jobs/jobrun", "/matrix/jobs/cmdrun"])
    for (const column of ["out", "err"]) {
      expect(await ask("member", mql(`select ${column} from ${path}`))).toContain('"code":"not_found"');
      expect(await ask("member", mql(`select id from ${path} where ${column} like 'a*'`))).toContain('"not_found"');
      expect(await ask("jobs_read", mql(`select ${column} from ${path}`))).toContain('"status":"ok"');
    }
});
