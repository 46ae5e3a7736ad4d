import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ClassAlteration, Statement } from "../../common/mql/index.ts";
import type { DataRule } from "../../controller/areas/permissions/index.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { openWorld, type World } from "./world.ts";

/**
 * A user without unrestricted access to a class and its subclasses must not define anything of it: for every rule,
 * every definition, every way.
 */

const ALTERATIONS: Readonly<Record<ClassAlteration["kind"], readonly string[]>> = {
  addColumn: ["add column more int"],
  dropColumn: ["drop column secret", "drop column note"],
  addKey: ["add key note"],
  dropKey: ["drop key host"],
  addIndex: ["add index note"],
  dropIndex: ["drop index secret"],
  setOptions: ["set ttl=1", "set version=true", "set autosearch=true", "set alias='x'"],
};

/** Texts of every kind of statement that defines something. A new kind does not compile until it is added here. */
const DEFINITIONS: Readonly<Record<Statement["kind"], readonly string[]>> = {
  createClass: [
    "create class /matrix/ent/below (a int)",
    "create class /matrix/ent/box/below/deep (a int)",
    "create class /matrix/ent/box (a int)",
    "create class if not exists /matrix/ent/new (a int)",
  ],
  dropClass: ["drop class /matrix/ent/empty", "drop class if exists /matrix/ent/empty"],
  alterClass: Object.values(ALTERATIONS)
    .flat()
    .map((alteration) => `alter class /matrix/ent ${alteration}`),
  createEdgeType: ["create edge type feeds"],
  dropEdgeType: ["drop edge type uplink", "drop edge type if exists uplink"],
  select: [],
  union: [],
  selectEdgeTypes: [],
  match: [],
  explain: [],
  batch: [],
  insert: [],
  insertJson: [],
  update: [],
  delete: [],
};
const TEXTS = Object.values(DEFINITIONS).flat();

const ALL: DataRule = { class: "/", access: "write" };
const RESTRICTED: Readonly<Record<string, readonly DataRule[]>> = {
  "no class": [{ class: "/matrix/other", access: "write" }],
  "everything but the class": [ALL, { class: "/matrix/ent", access: "none" }],
  "everything, read only": [{ class: "/", access: "read" }],
  "a class that is read only": [ALL, { class: "/matrix/ent", access: "read" }],
  "a row condition": [ALL, { class: "/matrix/ent", access: "write", where: "owner = 'bob'" }],
  "a hidden column": [ALL, { class: "/matrix/ent", access: "write", hidden: ["secret"] }],
  "a hidden column of a class below": [
    ALL,
    { class: "/matrix/ent", access: "write" },
    { class: "/matrix/ent/box", access: "write", hidden: ["note"] },
  ],
};
/** For definitions of the class itself only the class matters, so these are allowed there. */
const BELOW_ONLY = "a hidden column of a class below";

let world: World;
let revision: number;
const sessions = new Map<string, string>();

beforeAll(async () => {
  world = await openWorld();
  const { assembly } = world;
  await assembly.query.rows(
    testPrincipal(),
    `create edge type uplink;
    create class /matrix/ent (host varchar, owner varchar, secret varchar, note varchar, keys(host), index(secret));
    create class /matrix/ent/box (size int); create class /matrix/ent/empty (a int); create class /matrix/other (a int);
    insert into /matrix/ent/box (host, owner, secret) values ('a', 'ann', 's')`,
  );
  for (const [name, data] of Object.entries({
    ...RESTRICTED,
    free: [{ class: "/matrix/ent", access: "write" } as const],
  })) {
    const username = name.replaceAll(/[, ]+/g, "-");
    const user = { username, password: PASSWORD, rights: { grants: ["*:read", "*:write"], data } };
    await assembly.users.create(testPrincipal(), user);
    const { session } = await assembly.users.signIn({
      company: "matrix",
      username,
      password: PASSWORD,
      remote: "test",
      traceparent: "",
    });
    sessions.set(name, session);
  }
  revision = await definitions();
}, 120_000);
afterAll(() => world[Symbol.asyncDispose]());

async function definitions(): Promise<number> {
  return (await world.assembly.objects.catalog(testPrincipal())).revision;
}

interface Answer {
  readonly status: string;
  readonly code?: string;
  readonly message: unknown;
}

async function call(
  name: string,
  request: { method: "POST" | "DELETE"; path: string; type?: string; payload?: string },
): Promise<Answer> {
  const { method, path, type = "text/plain", payload = "" } = request;
  const url = `${path}${path.includes("?") ? "&" : "?"}sessionid=${sessions.get(name) ?? ""}`;
  return (await world.app.inject({ method, url, headers: { "content-type": type }, payload })).json();
}

function form(file: string): { type: string; payload: string } {
  const head = 'content-disposition: form-data; name="uploadfile"; filename="script.mql"';
  return { type: "multipart/form-data; boundary=edge", payload: `--edge\r\n${head}\r\n\r\n${file}\r\n--edge--\r\n` };
}

/** Every way to send an MQL definition. */
const WAYS: Readonly<Record<string, (name: string, text: string) => Promise<Answer>>> = {
  statement: (name, text) => call(name, { method: "POST", path: "/mxobject/mql", payload: text }),
  batch: (name, text) => call(name, { method: "POST", path: "/mxobject/mql", payload: `begin ${text}; end` }),
  explain: (name, text) => call(name, { method: "POST", path: "/mxobject/mql", payload: `explain ${text}` }),
  import: (name, text) =>
    call(name, { method: "POST", path: "/mxobject/import", ...form(`insert into /matrix/other a=1;\n${text};\n`) }),
};

const json = (value: unknown): { type: string; payload: string } => ({
  type: "application/json",
  payload: JSON.stringify(value),
});
const SCHEMA_CALLS: Readonly<Record<string, (name: string) => Promise<Answer>>> = {
  "makes a class": (name) =>
    call(name, { method: "POST", path: "/mxobject/schema/class", ...json({ class: "/matrix/ent/made", fields: [] }) }),
  "extends a class": (name) => {
    const fields = [{ name: "more", type: "int" }];
    return call(name, {
      method: "POST",
      path: "/mxobject/schema/class",
      ...json({ class: "/matrix/ent", fields, ttl: 1 }),
    });
  },
  "drops a class": (name) => call(name, { method: "DELETE", path: "/mxobject/schema/class?cid=/matrix/ent/empty" }),
};

const REFUSALS = ["denied", "not_found", "unsupported"];

/** `DROP … IF EXISTS` of an object that does not exist for the user is no error and has no effect. */
const isNothing = (name: string, text: string): boolean =>
  /^(no class|everything but)/.test(name) && text.startsWith("drop class if exists");
const isOfClassBelow = (name: string, text: string): boolean =>
  name === BELOW_ONLY && /\/ent\/(below|new|empty)/.test(text);

describe.each(Object.keys(RESTRICTED))("who has %s", (name) => {
  test.each(Object.keys(WAYS))("defines nothing by %s", async (way) => {
    for (const text of TEXTS.filter((one) => !isOfClassBelow(name, one) && !isNothing(name, one))) {
      const answer = (await WAYS[way]?.(name, text)) as Answer;
      expect(answer, `${text} was answered ${JSON.stringify(answer)}`).toMatchObject({ status: "error" });
      expect(REFUSALS, `${text} was answered ${JSON.stringify(answer)}`).toContain(answer.code);
      expect(await definitions(), text).toBe(revision);
    }
    const rows = await world.assembly.query.rows(testPrincipal(), "select count(*) from /matrix/other");
    expect(rows, "nothing that stood before it was written").toEqual([{ count: 0 }]);
  });

  test.each(Object.keys(SCHEMA_CALLS).filter((one) => name !== BELOW_ONLY || one === "extends a class"))(
    "is refused what %s",
    async (kind) => {
      expect(REFUSALS).toContain((await SCHEMA_CALLS[kind]?.(name))?.code);
      expect(await definitions()).toBe(revision);
    },
  );
});

test("dropping what does not exist for somebody, if it exists, changes nothing and says nothing", async () => {
  for (const name of ["no class", "everything but the class"]) {
    expect(await WAYS["statement"]?.(name, "drop class if exists /matrix/ent/empty")).toMatchObject({ status: "ok" });
    expect(await WAYS["statement"]?.(name, "drop class if exists /matrix/ent/never")).toMatchObject({ status: "ok" });
  }
  expect(await definitions()).toBe(revision);
});

test("what is there already may be named by everybody who sees it, as exports do", async () => {
  for (const way of ["statement", "import"]) {
    for (const text of ["create class if not exists /matrix/ent (a int)", "create edge type if not exists uplink"]) {
      expect(await WAYS[way]?.("a hidden column", text), `${way}: ${text}`).toMatchObject({ status: "ok" });
    }
  }
  expect(await definitions()).toBe(revision);
});

test("who reads and writes a class without restriction defines it and those below, and no edge types", async () => {
  const text = (name: string): readonly string[] => DEFINITIONS[name as Statement["kind"]];
  for (const one of [
    ...text("createEdgeType"),
    ...text("dropEdgeType"),
    "create class /matrix/side (a int)",
    "alter class /matrix/other set ttl=1",
  ]) {
    expect(await WAYS["statement"]?.("free", one), one).toMatchObject({ status: "error" });
  }
  expect(await definitions()).toBe(revision);
  for (const one of [
    "create class /matrix/ent/below (a int)",
    "alter class /matrix/ent add column more int",
    "drop class /matrix/ent/below",
  ]) {
    expect(await WAYS["statement"]?.("free", one), one).toMatchObject({ status: "ok" });
  }
});
