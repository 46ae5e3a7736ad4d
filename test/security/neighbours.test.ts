import type { InjectOptions } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Endpoint } from "../../controller/http/interface/endpoint.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { openWorld, type World } from "./world.ts";

/**
 * An administrator of another tenant calls every endpoint with the names of objects of `matrix`, and must neither read
 * nor change any of them.
 */

/** Part of everything that `matrix` stores, and of no request. */
const MARK = "MARKofMatrix";
const FILE = { fullname: "notes/plan.txt", text: MARK };

/** Input in addition to the path. Endpoints without an entry get none. */
const INPUTS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "POST /host": { host: "vault", domain: "other" },
  "POST /monitoring/policy": {
    name: "vault",
    rule: "/matrix/rules/vault",
    command: "true",
    ctype: 1,
    interval: 1,
    unit: "hour",
    hosts: ["vault"],
  },
  "POST /monitoring/policy/log": {
    name: "vault",
    rule: "/matrix/rules/vault",
    dir: "/x",
    match: "y",
    hosts: ["vault"],
  },
  "POST /monitoring/policy/preview": { name: "vault", host: "vault" },
  "POST /monitoring/policy/deploy/:name": { hosts: ["vault"] },
  "PUT /monitoring/policy/deploy/conf/:name": { hosts: ["vault"], conf: "other" },
  "DELETE /monitoring/policy/undeploy/conf/:name": { hosts: ["vault"] },
  "PUT /monitoring/depot": { name: "vault", version: "1.0.0", remark: "other" },
  "GET /monitoring/depot/file/:name": { version: "1.0.0", filepath: "a.txt" },
  "PUT /monitoring/depot/file/:name": depotChange(),
  "PUT /monitoring/depot/file": { name: "vault", ...depotChange() },
  "GET /monitoring/depot/diff/:name": { version: "1.0.0", compareVersion: "2.0.0" },
  "POST /monitoring/deploy": { hosts: ["vault"], depots: ["vault"], versions: ["1.0.0"] },
  "POST /monitoring/undeploy": { hosts: ["vault"], depots: ["vault"], versions: ["1.0.0"] },
  "POST /monitoring/extagent/deploy": { hosts: ["vault"], name: "vault", version: "1.0.0" },
  "POST /monitoring/extagent/undeploy": { hosts: ["vault"], name: "vault", version: "1.0.0" },
  "POST /monitoring/extagent/start": { hosts: ["vault"] },
  "POST /monitoring/extagent/stop": { hosts: ["vault"] },
  "POST /monitoring/extagent/restart": { hosts: ["vault"] },
  "POST /job": { name: "vault", dir: "d", exec: ["true"] },
  "GET /job/exec/*": { timeout: 1 },
  "GET /mxobject/mql": { mql: "select * from /matrix/vault" },
  "POST /mxobject/mql": { mql: "update /matrix/vault note='other' where code='a'" },
  "GET /mxobject/search": { cond: `#/matrix/vault: | a` },
  "POST /mxobject/search": { cond: `#/matrix/vault: | a | delete` },
  "GET /mxobject/schema/class/list": { id: "/matrix/vault" },
  "GET /mxobject/schema/class/tree": { id: "/matrix/vault" },
  "GET /mxobject/schema/class/fields": { id: "/matrix/vault" },
  "GET /mxobject/schema/class": { class: "/matrix/vault" },
  "POST /mxobject/schema/class": { class: "/matrix/vault", fields: [{ name: "more", ftype: "varchar" }] },
  "DELETE /mxobject/schema/class": { cid: "/matrix/vault" },
  "POST /mxobject/actiontoclass": { ctype: "update", data: [{ class: "/matrix/vault", id: "vault:a", note: "other" }] },
  "GET /mxobject/export": { class: "/matrix/vault" },
  "GET /mxobject/rule": { class: "/matrix/vault" },
  "PUT /mxobject/rule": { key: "/matrix/rules/vault", value: "--class=/matrix/vault\n--parser=text\n--fields=note" },
  "DELETE /mxobject/rule": { key: "/matrix/rules/vault" },
  "POST /mxobject/rule/new": { class: "/matrix/vault", type: "text" },
  "POST /mxobject/rule/try": { key: "/matrix/rules/vault", lines: ["a"] },
  "POST /agent": { rule: "/matrix/rules/vault" },
  "GET /action/parsefile": { rule: "/matrix/rules/vault", filename: FILE.fullname },
  "PUT /fs/*": { data: "other" },
  "GET /appcontext/collection/:name": { where: `note ~= '${MARK}'` },
  "POST /extend/:name": { items: [{ key: "a", note: "other" }] },
  "PUT /extend/:name": { items: [{ key: "a", note: "other" }] },
};

/** Endpoints through which an administrator of `matrix` sees the mark. */
const SHOWING = [
  "GET /host",
  "GET /host/:name",
  "GET /monitoring/policy",
  "GET /monitoring/policy/:name",
  "GET /monitoring/depot",
  "GET /monitoring/depot/:name",
  "GET /monitoring/depot/file/:name",
  "GET /monitoring/depot/diff/:name",
  "GET /job",
  "GET /job/*",
  "GET /mxobject/mql",
  "GET /mxobject/search",
  "GET /mxobject/schema/class",
  "GET /mxobject/schema/class/fields",
  "GET /mxobject/system/schema/:table",
  "GET /mxobject/export",
  "GET /mxobject/rule",
  "GET /fs/*",
  "GET /appcontext/:key",
  "GET /appcontext/collection/:name",
  "GET /appcontext/collection/:name/:id",
  "GET /extend/:name",
];

/** Path parameters with another name than `vault`. */
const NAMES: Readonly<Record<string, string>> = {
  "/fs/*": FILE.fullname,
  "/job/*": "vault@d",
  "/job/exec/*": "vault@d",
  "/mxobject/system/schema/:table": "field",
};

let world: World;
let own: string;
let neighbour: string;

beforeAll(async () => {
  world = await openWorld();
  const { assembly } = world;
  await assembly.tenants.ensureTenant({ name: "second", ospace: "/second" });
  await assembly.users.operator.ensureAdministrator({ tenant: "second", username: "admin", password: PASSWORD });
  own = await world.signIn();
  neighbour = await signedIn("second");
  await fill();
});

afterAll(() => world[Symbol.asyncDispose]());

test("an administrator of another tenant reads nothing and changes nothing", async () => {
  const before = await shown();
  for (const [name, text] of Object.entries(before)) expect(text, name).toContain(MARK);
  for (const endpoint of calls()) {
    const text = await answer(endpoint, neighbour);
    expect(text, nameOf(endpoint)).not.toContain(MARK);
  }
  expect(await shown()).toEqual(before);
});

test("services change users of the own tenant only", async () => {
  const { users } = world.assembly;
  const foreign = testPrincipal("administrator", "second");
  const rights = { role: "viewer" } as const;
  await users.create(testPrincipal(), { username: "ann", password: PASSWORD, rights, details: { remark: MARK } });
  expect(await users.find(foreign, "ann")).toBeUndefined();
  await expect(users.update(foreign, "ann", { active: false })).rejects.toMatchObject({ code: "not_found" });
  await expect(users.setPassword(foreign, "ann", "another password")).rejects.toMatchObject({ code: "not_found" });
  await users.create(foreign, { username: "ann", password: "another password", rights });
  expect(await users.find(testPrincipal(), "ann")).toMatchObject({
    tenant: "matrix",
    details: { remark: MARK },
    active: true,
  });
  await expect(signedIn("matrix", "ann")).resolves.toEqual(expect.any(String));
});

/** Creates an object of every kind in the tenant `matrix`, with the mark in it. */
async function fill(): Promise<void> {
  const { assembly } = world;
  const admin = testPrincipal();
  await assembly.query.rows(
    admin,
    `create class /matrix/vault (code varchar, note varchar, ${MARK} varchar, keys(code)) with autosearch=true;
    insert into /matrix/vault code='a', note='${MARK}'`,
  );
  await assembly.rules.put(admin, "/matrix/rules/vault", `--class=/matrix/vault\n--parser=text\n--fields=code,${MARK}`);
  await assembly.hosts.save(admin, { host: "vault", domain: MARK });
  await assembly.jobs.save(admin, { name: "vault", dir: "d", exec: ["true"], description: MARK });
  const put = (url: string, payload: object) =>
    world.app.inject({ method: "PUT", url: `${url}?sessionid=${own}`, payload });
  expect((await put(`/fs/${FILE.fullname}`, { data: FILE.text })).json()).toMatchObject({ status: "ok" });
  await depots(put);
  const policy = { ...INPUTS["POST /monitoring/policy"], tags: [MARK] };
  await post("/monitoring/policy", policy);
  for (const path of ["appcontext/vault", "appcontext/collection/vault/vault"]) await post(`/${path}`, { note: MARK });
  await post("/extend/vault", [{ key: "a", note: MARK }]);
}

async function post(path: string, payload: object): Promise<void> {
  const response = await world.app.inject({ method: "POST", url: `${path}?sessionid=${own}`, payload });
  expect(response.json()).toMatchObject({ status: "ok" });
}

async function depots(put: (url: string, payload: object) => Promise<{ json(): unknown }>): Promise<void> {
  const form = new FormData();
  form.append("name", "vault");
  form.append("version", "1.0.0");
  form.append("remark", MARK);
  form.append("uploadfile", new Blob([MARK]), "a.txt");
  const request = new Response(form);
  const created = await world.app.inject({
    method: "POST",
    url: `/monitoring/depot?sessionid=${own}`,
    headers: { "content-type": request.headers.get("content-type") ?? "" },
    payload: Buffer.from(await request.arrayBuffer()),
  });
  expect(created.json()).toMatchObject({ status: "ok" });
  const next = { name: "vault", ...depotChange(), newVersion: "2.0.0", content: "other" };
  expect((await put("/monitoring/depot/file", next)).json()).toMatchObject({ status: "ok" });
}

function depotChange() {
  return { version: "1.0.0", newVersion: "3.0.0", filepath: "a.txt", type: "M", content: "x" };
}

async function signedIn(company: string, username = "admin"): Promise<string> {
  const request = { company, username, password: PASSWORD, remote: "test", traceparent: "" };
  return (await world.assembly.users.signIn(request)).session;
}

/** Reads come first: the calls that write create objects of the same names in the other tenant. */
function calls(): readonly Endpoint[] {
  const asked = world.assembly.endpoints.filter(({ permission }) => permission !== "public");
  return [...asked].sort((a, b) => Number(b.method === "GET") - Number(a.method === "GET"));
}

async function shown(): Promise<Readonly<Record<string, string>>> {
  const found = calls().filter((endpoint) => SHOWING.includes(nameOf(endpoint)));
  expect(found.map(nameOf).sort()).toEqual([...SHOWING].sort());
  const texts: Record<string, string> = {};
  for (const endpoint of found) texts[nameOf(endpoint)] = await answer(endpoint, own);
  return texts;
}

async function answer(endpoint: Endpoint, session: string): Promise<string> {
  const { method, path } = endpoint;
  const url = path.replaceAll(/:\w+|\*/g, NAMES[path] ?? "vault");
  const input = INPUTS[nameOf(endpoint)] ?? {};
  const isInQuery = method === "GET" || method === "DELETE" || path === "/agent";
  const query = { sessionid: session, ...(isInQuery ? texts(input) : {}) };
  const options: InjectOptions = {
    method,
    url,
    query,
    ...(isInQuery ? {} : { payload: input }),
  };
  return (await world.app.inject(options)).body;
}

function texts(input: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, String(value)]));
}

function nameOf({ method, path }: Endpoint): string {
  return `${method} ${path}`;
}
