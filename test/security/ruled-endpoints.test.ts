import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { DataRule, Principal } from "../../controller/areas/permissions/index.ts";
import type { Endpoint } from "../../controller/http/interface/endpoint.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { storeFolder } from "../helpers/runs/folders.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { answerOf } from "./answering.ts";
import { callOf, type Draw, type Words } from "./draw.ts";
import { nameOf } from "./people.ts";
import { openWorld, type World } from "./world.ts";

/**
 * Every endpoint that reads, called by a user who may call all of them, but from whom rules hide a column or an object
 * of each class below. The hidden data contain a mark that is in no call, so no answer may contain it.
 */

const MARK = "qmarkq";
const CALLS_PER_ENDPOINT = 16;
const WORDS: Words = {
  names: ["vault", "vault:vault", "vault@d", "admin", "matrix", "common", "1"],
  objects: ["vault"],
  files: ["vault"],
  texts: ["vault", "/", "/matrix", "/matrix/vault", "/matrix/rules/vault", "/matrix/ldap", "1", "vault:vault"],
};

/** Classes with marked objects, the column that has the mark, and a condition that leaves the marked object out. */
const MARKED: Readonly<Record<string, { readonly column: string; readonly without: string }>> = {
  "/matrix/vault": { column: "note", without: "code <> 'vault'" },
  "/matrix/ldap": { column: "remark", without: "username <> 'vault'" },
  "/matrix/system/hostinfo": { column: "domain", without: "host <> 'vault'" },
  "/matrix/jobs/jobgroup": { column: "hosts", without: "name <> 'vault'" },
  "/matrix/system/policy": { column: "command", without: "name <> 'vault'" },
  "/matrix/system/depot": { column: "remark", without: "name <> 'vault'" },
  "/matrix/filesystem": { column: "digest", without: "name <> 'vault'" },
  "/matrix/jobs/jobdef": { column: "description", without: "name <> 'vault'" },
  "/matrix/system/config": { column: "value", without: "key not in ('/matrix/vault', '/matrix/rules/vault')" },
};

/** Endpoints that the calls below show to tell the mark: at least these are really tried. */
const TELLERS = [
  "GET /admin/users",
  "GET /config/export",
  "GET /config/get",
  "GET /config/list",
  "GET /host",
  "GET /job",
  "GET /fs/*",
  "GET /group",
  "GET /monitoring/depot",
  "GET /monitoring/policy/:name",
  "GET /mxobject/export",
  "GET /mxobject/rule",
  "GET /mxobject/search",
];

const admin = testPrincipal();
const ALL: DataRule = { class: "/", access: "write" };
let world: World;
let folder: string;

beforeAll(async () => {
  world = await openWorld();
  folder = await storeFolder("odp-ruled-");
  const { query, users, hosts, jobs, jobGroups, policies, config, rules } = world.assembly;
  await query.rows(
    admin,
    `create class /matrix/vault (code varchar, note varchar, keys(code)) with autosearch=true, version=true;
     insert into /matrix/vault code='vault', note='${MARK}'`,
  );
  const rights = { grants: [], data: [] };
  await users.create(admin, { username: "vault", password: PASSWORD, rights, details: { remark: MARK } });
  await hosts.save(admin, { host: "vault", domain: MARK });
  await jobs.save(admin, { name: "vault", dir: "d", exec: ["true"], description: MARK });
  await jobGroups.save(admin, { name: "vault", gtype: "group", hosts: [{ host: MARK }] });
  await config.set(admin, { key: "/matrix/vault", value: MARK });
  const columns = `--class=/matrix/vault\n--parser=csv\n--fields=code,${MARK}`;
  await rules.put(admin, "/matrix/rules/vault", columns);
  const tick = { ctype: 1, interval: 1, unit: "minute" } as const;
  const spec = { kind: "command", name: "vault", rule: "/matrix/rules/vault", command: MARK, ...tick } as const;
  await policies.save(admin, { spec });
  await sendFiles();
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

/** A file with the mark as its content, and a depot with the mark as its remark. */
async function sendFiles(): Promise<void> {
  const session = await world.signIn();
  const send = async (method: "PUT" | "POST", path: string, fields: Readonly<Record<string, string | Blob>>) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    const request = new Response(form);
    const answer = await world.app.inject({
      method,
      url: `${path}?sessionid=${session}`,
      headers: { "content-type": request.headers.get("content-type") ?? "" },
      payload: Buffer.from(await request.arrayBuffer()),
    });
    expect(answer.json()).toMatchObject({ status: "ok" });
  };
  await send("PUT", "/fs/vault", { data: MARK });
  await send("POST", "/monitoring/depot", {
    ...{ name: "vault", version: "1.0.0", remark: MARK },
    uploadfile: new File(["x"], "a.sh"),
  });
}

const reading = (): readonly Endpoint[] =>
  world.assembly.endpoints.filter(({ permission, events }) => permission.endsWith(":read") && events !== true);

/** Most marked objects have this name, which a path drawn by chance rarely hits. */
function named(path: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.keys(path).map((name) => [name, "vault"]));
}

/** The endpoints whose answers to the principal contain the mark, each with one of these answers. */
async function tellers(principal: Principal): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const endpoint of reading()) {
    // The seed is from its name, so that a new endpoint changes no calls of another one.
    const random = seededRandom(createHash("sha256").update(nameOf(endpoint)).digest().readUInt32LE());
    const draw: Draw = (list) => list[Math.floor(random.next() * list.length)] as never;
    for (let made = 0; made < CALLS_PER_ENDPOINT; made++) {
      const drawn = callOf(endpoint, draw, WORDS);
      const call = made % 2 === 0 ? drawn : { ...drawn, path: named(drawn.path) };
      const answer = await answerOf(call, { principal, signal: AbortSignal.timeout(60_000), folder });
      if (answer.includes(MARK)) found.set(nameOf(endpoint), `${JSON.stringify(call.input)} ${answer.slice(0, 1_000)}`);
    }
  }
  return found;
}

test("endpoints tell the data to a user from whom nothing is hidden", async () => {
  const all = await tellers({ ...admin, data: [ALL] });
  expect([...all.keys()]).toEqual(expect.arrayContaining([...TELLERS]));
});

test("no endpoint answers a column that rules hide from its caller", async () => {
  const rules = Object.entries(MARKED).map(
    ([path, { column }]): DataRule => ({ ...ALL, class: path, hidden: [column] }),
  );
  expect(await tellers({ ...admin, user: "ruled", data: [ALL, ...rules] })).toEqual(new Map());
});

test("no endpoint answers an object that rules hide from its caller", async () => {
  const rules = Object.entries(MARKED).map(
    ([path, { without }]): DataRule => ({ ...ALL, class: path, where: without }),
  );
  expect(await tellers({ ...admin, user: "ruled", data: [ALL, ...rules] })).toEqual(new Map());
});
