import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ExplainService } from "../../controller/areas/groups/index.ts";
import type { DataRule, Principal } from "../../controller/areas/permissions/index.ts";
import { PASSWORD } from "../helpers/areas/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { openWorld, type World } from "./world.ts";

/**
 * Jobs, policies, depots and users are objects of the platform's classes. Their own interface must show exactly what a
 * query shows. Rules follow the access to their class.
 */

let world: World;
const admin = testPrincipal();
const ALL: DataRule = { class: "/", access: "write" };
const USERS: Readonly<Record<string, readonly DataRule[]>> = {
  rows: [
    ALL,
    ...["jobs/jobdef", "jobs/jobgroup", "system/policy", "system/depot"].map(
      (path): DataRule => ({ class: `/matrix/${path}`, access: "write", where: "name = 'mine'" }),
    ),
  ],
  columns: [
    ALL,
    { class: "/matrix/jobs/jobdef", access: "write", hidden: ["exec", "creator"] },
    { class: "/matrix/jobs/jobgroup", access: "write", hidden: ["hosts"] },
    { class: "/matrix/system/policy", access: "write", hidden: ["command", "hosts"] },
    { class: "/matrix/system/depot", access: "write", hidden: ["remark"] },
  ],
  unseen: [
    ALL,
    { class: "/matrix/jobs", access: "none" },
    { class: "/matrix/system/policy", access: "none" },
    { class: "/matrix/system/depot", access: "none" },
    { class: "/matrix/vault", access: "none" },
  ],
};
const sessions = new Map<string, string>();

beforeAll(async () => {
  world = await openWorld();
  const { assembly } = world;
  await assembly.query.rows(admin, "create class /matrix/vault (line text); create class /matrix/open (line text)");
  for (const name of ["open", "vault"])
    await assembly.rules.put(admin, `/matrix/rules/${name}`, `--class=/matrix/${name}\n--parser=text\n--fields=line`);
  for (const name of ["mine", "theirs"]) {
    await assembly.jobs.save(admin, { name, dir: "d", exec: ["true"], host: ["h"] });
    await assembly.jobGroups.save(admin, { name, gtype: "group", hosts: [{ host: `host-of-${name}` }] });
    const spec = {
      kind: "command",
      name,
      rule: "/matrix/rules/open",
      command: "secret",
      ctype: 1,
      interval: 1,
      unit: "minute",
    } as const;
    await assembly.policies.save(admin, { spec });
  }
  await upload("admin", "mine");
  await upload("admin", "theirs");
  for (const [username, data] of Object.entries(USERS)) {
    await assembly.users.create(testPrincipal(), {
      username,
      password: PASSWORD,
      rights: { grants: ["*:read", "*:write", "*:run"], data },
    });
  }
}, 120_000);
afterAll(() => world[Symbol.asyncDispose]());

interface Answer {
  readonly status: string;
  readonly code?: string;
  readonly message: unknown;
}

interface Request {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  readonly url: string;
  readonly type?: string;
  readonly payload?: string;
}

async function call(user: string, { method = "GET", url, type, payload }: Request): Promise<Answer> {
  let session = sessions.get(user);
  if (session === undefined) {
    session = (
      await world.assembly.users.signIn({
        company: "matrix",
        username: user,
        password: PASSWORD,
        remote: "test",
        traceparent: "",
      })
    ).session;
    sessions.set(user, session);
  }
  const whole = `${url}${url.includes("?") ? "&" : "?"}sessionid=${session}`;
  return (
    await world.app.inject({
      method,
      url: whole,
      ...(type && { headers: { "content-type": type }, payload: payload ?? "" }),
    })
  ).json();
}

function form(fields: Readonly<Record<string, string>>): Pick<Request, "type" | "payload"> {
  return { type: "application/x-www-form-urlencoded", payload: new URLSearchParams(fields).toString() };
}

function parts(fields: Readonly<Record<string, string>>, file?: string): Pick<Request, "type" | "payload"> {
  const texts = Object.entries(fields).map(
    ([name, value]) => `--edge\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const content =
    file === undefined
      ? ""
      : `--edge\r\ncontent-disposition: form-data; name="uploadfile"; filename="a.sh"\r\n\r\n${file}\r\n`;
  return { type: "multipart/form-data; boundary=edge", payload: `${texts.join("")}${content}--edge--\r\n` };
}

async function upload(user: string, name: string, version = "1.0.0"): Promise<Answer> {
  return call(user, {
    method: "POST",
    url: "/monitoring/depot",
    ...parts({ name, version, remark: "secret" }, "echo secret"),
  });
}

const json = (value: unknown): Pick<Request, "type" | "payload"> => ({
  type: "application/json",
  payload: JSON.stringify(value),
});
const policy = (name: string, command = "x") => ({
  name,
  rule: "/matrix/rules/open",
  command,
  ctype: 1,
  interval: 1,
  unit: "minute",
});

/** Every call that lists, shows, uses or changes the object of that name. */
const CALLS: Readonly<Record<string, (name: string) => readonly Request[]>> = {
  "/job": (name) => [
    { url: `/job/${name}@d` },
    { url: `/job/exec/${name}@d` },
    { url: `/job/${name}@d?param={}` },
    { method: "DELETE", url: `/job/${name}@d` },
    { method: "POST", url: "/job", ...form({ name, dir: "d", exec: "false" }) },
  ],
  "/monitoring/policy": (name) => [
    { url: `/monitoring/policy/${name}` },
    { method: "POST", url: `/monitoring/policy/deploy/${name}` },
    { method: "POST", url: `/monitoring/policy/undeploy/${name}` },
    { method: "DELETE", url: `/monitoring/policy/${name}` },
    { method: "POST", url: "/monitoring/policy", ...json(policy(name)) },
  ],
  "/monitoring/depot": (name) => [
    { url: `/monitoring/depot/${name}` },
    { url: `/monitoring/depot/file/${name}?version=1.0.0&filepath=a.sh` },
    { url: `/monitoring/depot/diff/${name}?version=1.0.0&compareVersion=1.0.0` },
    { method: "DELETE", url: `/monitoring/depot/${name}` },
    { method: "POST", url: "/monitoring/depot", ...parts({ name, version: "2.0.0" }, "x") },
    { method: "PUT", url: "/monitoring/depot", ...parts({ name, version: "1.0.0", remark: "x" }) },
    {
      method: "PUT",
      url: "/monitoring/depot/file",
      ...parts({ name, version: "1.0.0", newVersion: "3.0.0", filepath: "a.sh", type: "M", content: "x" }),
    },
    { method: "POST", url: "/monitoring/deploy", ...parts({ hosts: "h", depots: name, versions: "1.0.0" }) },
    {
      method: "POST",
      url: "/monitoring/policy",
      ...json({ ...policy(`with-${name}`), ctype: 0, depotname: name, depotversion: "1.0.0" }),
    },
  ],
};

async function listed(user: string, path: string): Promise<readonly Record<string, unknown>[]> {
  const { message } = await call(user, { url: path });
  return message as readonly Record<string, unknown>[];
}

describe.each(Object.keys(CALLS))("%s", (path) => {
  test("lists what a query finds", async () => {
    expect((await listed("rows", path)).map(({ name }) => name)).toEqual(["mine"]);
    expect(await listed("unseen", path)).toEqual([]);
    expect((await listed("admin", path)).map(({ name }) => name)).toEqual(expect.arrayContaining(["mine", "theirs"]));
  });

  test("what does not exist for the caller is neither shown nor used nor changed", async () => {
    const before = await listed("admin", path);
    for (const [user, name] of [
      ["rows", "theirs"],
      ["unseen", "mine"],
    ] as const) {
      for (const request of CALLS[path]?.(name) ?? []) {
        const what = `${user}: ${request.method ?? "GET"} ${request.url}`;
        const answer = await call(user, request);
        expect(["not_found", "denied"], `${what} was answered ${JSON.stringify(answer)}`).toContain(answer.code);
        expect(JSON.stringify(answer), what).not.toContain("secret");
      }
    }
    expect(await listed("admin", path)).toEqual(before);
  });

  test("hidden columns are left out, of lists and of single ones", async () => {
    const hidden =
      { "/job": ["exec", "creator"], "/monitoring/policy": ["command", "hosts"], "/monitoring/depot": ["remark"] }[
        path
      ] ?? [];
    const one = (await call("columns", CALLS[path]?.("mine")[0] as Request)).message as Record<string, unknown>;
    for (const record of [...(await listed("columns", path)), one])
      for (const column of hidden) expect(Object.keys(record)).not.toContain(column);
    expect(one).toMatchObject({ name: "mine" });
  });
});

describe("groups of hosts", () => {
  const group = (name: string) => json({ name, gtype: "group", hosts: [{ host: "own" }] });
  const names = async (user: string) => (await listed(user, "/group")).map(({ name }) => name);

  test("are listed as a query finds them, without hidden columns", async () => {
    expect(await names("rows")).toEqual(["mine"]);
    expect(await names("unseen")).toEqual([]);
    expect(await names("admin")).toEqual(["mine", "theirs"]);
    expect(await listed("columns", "/group")).toEqual(["mine", "theirs"].map((name) => ({ name, gtype: "group" })));
  });

  test("that do not exist for the caller, or not whole, are neither made, replaced nor removed", async () => {
    const before = await listed("admin", "/group");
    const put = { method: "PUT", url: "/group" } as const;
    const post = { method: "POST", url: "/group" } as const;
    for (const [user, request, code] of [
      ["rows", { ...put, ...group("theirs") }, "not_found"],
      ["rows", { ...post, ...group("theirs") }, "denied"],
      ["rows", { ...post, ...group("third") }, "denied"],
      ["rows", { method: "DELETE", url: "/group/group/theirs" }, "not_found"],
      ["unseen", { ...put, ...group("mine") }, "not_found"],
      ["unseen", { method: "DELETE", url: "/group/group/mine" }, "not_found"],
      ["columns", { ...put, ...group("mine") }, "denied"],
    ] as const)
      expect(await call(user, request), `${user}: ${request.method} ${request.url}`).toMatchObject({ code });
    expect(await listed("admin", "/group")).toEqual(before);
  });

  test("that do not exist for the caller lead his jobs nowhere", async () => {
    const { jobs } = world.assembly;
    await jobs.save(admin, { name: "mine", dir: "d", exec: ["true"], host: [], group: "theirs" });
    const answer = await call("rows", { url: "/job/exec/mine@d" });
    expect(answer).toMatchObject({ code: "not_found" });
    expect(JSON.stringify(answer)).not.toContain("host-of-theirs");
  });
});

test("a depot that does not exist for the caller is said not to", async () => {
  expect(await call("rows", { url: "/monitoring/depot/exist/theirs" })).toMatchObject({ message: false });
  expect(await call("rows", { url: "/monitoring/depot/exist/mine" })).toMatchObject({ message: true });
});

test("nothing is made that its maker could not see", async () => {
  for (const request of [
    { method: "POST", url: "/job", ...form({ name: "other", dir: "d", exec: "x" }) },
    { method: "POST", url: "/monitoring/policy", ...json(policy("other")) },
  ] as const) {
    expect(await call("rows", request)).toMatchObject({ code: "denied" });
  }
});

test("rules of a class that may not be read are not there", async () => {
  const keys = async (user: string) => (await listed(user, "/mxobject/rule")).map(({ key }) => key);
  expect(await keys("admin")).toEqual(expect.arrayContaining(["/matrix/rules/open", "/matrix/rules/vault"]));
  expect(await keys("unseen")).toEqual(["/matrix/rules/open"]);
  const key = "/matrix/rules/vault";
  for (const request of [
    { method: "DELETE", url: `/mxobject/rule?key=${key}` },
    { method: "PUT", url: "/mxobject/rule", ...form({ key, value: "--class=/matrix/open\n--parser=text" }) },
    {
      method: "PUT",
      url: "/mxobject/rule",
      ...form({ key: "/matrix/rules/new", value: "--class=/matrix/vault\n--parser=text" }),
    },
    { method: "POST", url: "/mxobject/rule/new", ...json({ class: "/matrix/vault", type: "text" }) },
    { method: "POST", url: "/monitoring/policy", ...json({ ...policy("vaulted"), rule: key }) },
  ] as const) {
    expect(["not_found", "denied"], request.url).toContain((await call("unseen", request)).code);
  }
});

describe("rules on the class of users", () => {
  const by = (...data: Principal["data"]): Principal => ({
    ...admin,
    data: [{ class: "/", access: "write" }, ...data],
  });
  const few = by({ class: "/matrix/ldap", access: "write", where: "username = 'ann'", hidden: ["remark", "email"] });
  const directory = (): World["assembly"]["users"]["directory"] => world.assembly.users.directory;
  let ids: Readonly<Record<string, string>>;

  beforeAll(async () => {
    await directory().createOrganization(admin, { username: "plant" });
    const made = async (username: string): Promise<string> =>
      (
        await directory().create(admin, {
          username,
          password: PASSWORD,
          rights: { grants: [], data: [] },
          parent: "/plant",
        })
      ).id;
    ids = { ann: await made("ann"), bob: await made("bob") };
    for (const id of Object.values(ids))
      await directory().change(admin, id, { details: { remark: "said nowhere", email: ["a@example.com"] } });
  });

  test("hold for the tree: neither rows nor columns come out that MQL does not show, but the way to those it does", async () => {
    const told = await directory().reader.subtree(few, "/");
    expect(told.nodes).toMatchObject([{ fullname: "/plant", otype: "org", nodes: [{ fullname: "/plant/ann" }] }]);
    expect(JSON.stringify(told)).not.toMatch(/bob|\/admin|said nowhere|example\.com/);
    await expect(directory().reader.subtree(few, "/plant/bob")).rejects.toMatchObject({ code: "not_found" });
    const none = await directory().reader.subtree(by({ class: "/matrix/ldap", access: "none" }), "/");
    expect(none.nodes).toEqual([]);
  });

  test("hold for changes: a user that is not seen is none", async () => {
    for (const change of [
      () => directory().change(few, ids["bob"] ?? "", { active: false }),
      () => directory().move(few, ids["bob"] ?? "", "/"),
      () => directory().remove(few, ids["bob"] ?? ""),
      () => directory().usernameOf(few, ids["bob"] ?? ""),
    ])
      await expect(change()).rejects.toMatchObject({ code: "not_found" });
    await directory().move(few, ids["ann"] ?? "", "/");
    expect((await directory().reader.subtree(admin, "/plant/bob")).fullname).toBe("/plant/bob");
    await directory().move(few, ids["ann"] ?? "", "/plant");
  });

  test("hold for members of groups: who is not seen is none, and stays one when another member is changed", async () => {
    const { groups } = world.assembly;
    const member = ["U/plant/ann", "U/plant/bob", "G/authors"];
    const { id } = await groups.create(admin, { name: "shift", member, readonly: ["/matrix/open"] });
    const memberOf = async (by: Principal): Promise<readonly string[]> => (await groups.find(by, id)).member;
    expect(await memberOf(few)).toEqual(["U/plant/ann", "G/authors"]);
    expect((await groups.list(few)).find(({ name }) => name === "shift")?.member).toEqual(["U/plant/ann", "G/authors"]);
    for (const data of [
      { class: "/matrix/ldap", access: "none" },
      { class: "/matrix/ldap", access: "read", hidden: ["username"] },
    ] as const)
      expect(await memberOf(by(data))).toEqual(["G/authors"]);
    expect(await memberOf(by({ class: "/matrix/ldap", access: "read", hidden: ["email"] }))).toEqual(member);
    // The answer is the same if an unseen user is already a member.
    const unknown = { code: "invalid", message: "member: there is no user /plant/bob." };
    await expect(groups.update(few, { id, member: ["U/plant/bob"] })).rejects.toMatchObject(unknown);
    await expect(groups.create(few, { name: "other", member: ["U/plant/bob"] })).rejects.toMatchObject(unknown);
    const edited = await groups.update(few, { id, member: ["U/plant/ann", "G/operators"] });
    expect(edited.member).toEqual(["U/plant/ann", "G/operators"]);
    expect(await memberOf(admin)).toEqual(["U/plant/ann", "G/operators", "U/plant/bob"]);
    await groups.update(few, { id, member: [] });
    expect(await memberOf(admin)).toEqual(["U/plant/bob"]);
    await groups.remove(admin, id);
  });

  test("hold for the name that a member with a typo was meant to be", async () => {
    const { groups } = world.assembly;
    const like = (by: Principal, member: string) => groups.create(by, { name: "typo", member: [member] });
    const refused = (message: string) => ({ code: "invalid", message });
    await expect(like(admin, "U/plant/bbo")).rejects.toMatchObject(
      refused("member: there is no user /plant/bbo; did you mean /plant/bob?"),
    );
    for (const member of ["U/plant/bbo", "U/plant/bob"])
      await expect(like(few, member)).rejects.toMatchObject(refused(`member: there is no user ${member.slice(1)}.`));
    await expect(like(few, "U/plant/anm")).rejects.toMatchObject(
      refused("member: there is no user /plant/anm; did you mean /plant/ann?"),
    );
  });

  test("hold for explanations: neither a member nor whoever is asked about comes out", async () => {
    const { groups, users } = world.assembly;
    await groups.create(admin, { name: "night", member: ["U/plant/ann", "U/plant/bob"], readonly: ["/matrix/open"] });
    const explaining = new ExplainService({
      groups,
      users,
      endpoints: () => world.assembly.endpoints,
      guardOf: () => Promise.resolve(undefined),
    });
    const asked = { user: "ann", class: "/matrix/open" };
    const { who } = await explaining.explain(few, asked);
    expect(who).toContainEqual({ group: "/night", how: "read /matrix/open", member: ["/plant/ann"] });
    expect(JSON.stringify(who)).not.toContain("bob");
    const all = (await explaining.explain(admin, asked)).who;
    expect(all.find(({ group }) => group === "/night")?.member).toEqual(["/plant/ann", "/plant/bob"]);
    for (const user of ["bob", "nobody"])
      await expect(explaining.explain(few, { ...asked, user })).rejects.toMatchObject({
        code: "not_found",
        message: `There is no user ${user}.`,
      });
    const self = { ...few, user: "bob" };
    expect(await explaining.explain(self, { class: "/matrix/open" })).toMatchObject({ user: "bob", allowed: true });
  });

  test("say nothing where none speaks of users: the permission alone opens them", async () => {
    const told = await directory().reader.subtree(
      { ...admin, data: [{ class: "/matrix/x", access: "read" }] },
      "/plant",
    );
    expect(told.nodes).toHaveLength(2);
  });
});

describe("rules on the class of files", () => {
  const fs = (method: "GET" | "PUT" | "DELETE", url: string, fields?: Readonly<Record<string, string>>): Request => ({
    method,
    url,
    ...(fields && parts(fields)),
  });

  beforeAll(async () => {
    const data: readonly DataRule[] = [
      ALL,
      { class: "/matrix/filesystem", access: "write", where: "owner = 'filer'", hidden: ["attr"] },
    ];
    const rights = { grants: ["*:read", "*:write"], data };
    await world.assembly.users.create(testPrincipal(), { username: "filer", password: PASSWORD, rights });
    for (const [user, name] of [
      ["admin", "theirs"],
      ["filer", "mine"],
    ] as const)
      expect(await call(user, fs("PUT", `/fs/home/filer/${name}.txt`, { data: `text of ${name}` }))).toMatchObject({
        status: "ok",
      });
  });

  test("hold for /fs and /static: neither rows nor columns come out that MQL does not show", async () => {
    const names = (await listed("filer", "/fs/home/filer?type=dir")).map(({ name }) => name);
    const asked = (await call("filer", { url: "/mxobject/mql?mql=select name from /matrix/filesystem" })).message;
    expect([names, asked]).toEqual([["mine.txt"], [{ name: "mine.txt" }]]);
    for (const url of ["file", "open", "download", "attr", "tag"].map(
      (type) => `/fs/home/filer/theirs.txt?type=${type}`,
    ))
      expect(await call("filer", { url }), url).toMatchObject({ code: "not_found" });
    expect(await call("filer", { url: "/static/home/filer/theirs.txt" })).toMatchObject({ code: "not_found" });
    expect(await call("filer", { url: "/fs/home/filer/theirs.txt?type=check" })).toMatchObject({ message: false });
  });

  test("hold for changes, and the file stays as it was", async () => {
    for (const request of [
      fs("PUT", "/fs/home/filer/theirs.txt", { data: "taken" }),
      fs("PUT", "/fs/home/filer/mine.txt", { type: "attr", attr: "{}" }),
      fs("DELETE", "/fs/home/filer/theirs.txt"),
      { method: "POST", url: "/fs/copy", ...form({ srcpath: "/home/filer/theirs.txt", dstpath: "/home/filer/own" }) },
    ] as const)
      expect(["not_found", "denied"], `${request.method} ${request.url}`).toContain(
        (await call("filer", request)).code,
      );
    expect(await call("admin", { url: "/fs/home/filer/theirs.txt?type=file" })).toMatchObject({
      message: "text of theirs",
    });
  });
});
