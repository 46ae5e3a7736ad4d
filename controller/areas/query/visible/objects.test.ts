import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Row } from "../../../../common/value.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { MemoryObjects } from "../../../../test/helpers/objects/memory/objects.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { type ObjectRef, type ObjectRow, ObjectService, type VisibleRead } from "../../objects/index.ts";
import type { DataRule, Principal } from "../../permissions/index.ts";
import { QueryService, visibleObjects } from "../index.ts";

/** A service answers a user by visible objects: the same objects and columns that queries of the user answer. */

const BOX = "/matrix/box";
const CRATE = "/matrix/box/crate";
const SHELF = "/matrix/shelf";
const admin = testPrincipal();
let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;

beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ stores: engine, runtime, visible: visibleObjects });
  objects.registerSystemClass({
    path: "/shelf",
    columns: [
      { name: "name", type: "varchar", meaning: "Name" },
      { name: "holder", type: "varchar", meaning: "Holder" },
    ],
    keys: ["name"],
    guard: {
      reading: { permission: "objects:read" },
      permission: "objects:write",
      limit: {
        columns: ["holder"],
        of: ({ user }) => (user === "administrator" ? undefined : ({ holder }) => holder === user),
      },
    },
  });
  query = new QueryService({ objects, runtime });
  await query.rows(
    admin,
    `create class ${BOX} (name varchar, owner varchar, secret varchar, keys(name), indexes(owner, secret));
     create class ${CRATE} (); create edge type holds;
     insert into ${BOX} (name, owner, secret) values ('a', 'ann', 's1'), ('b', 'bob', 's2'), ('c', 'ann', 's3');
     insert into ${CRATE} name='d', owner='ann', secret='s4'`,
  );
  await query.rows(admin, `update ${BOX} set holds = ['box:b', 'box:c'] where name = 'a'`);
  await objects.unrestricted.insert(admin, SHELF, [
    { name: "x", holder: "ann" },
    { name: "y", holder: "bob" },
  ]);
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const withRules = (...data: readonly DataRule[]): Principal => ({
  ...admin,
  user: "ann",
  grants: ["objects:read"],
  data,
});
const OWN: DataRule = { class: BOX, access: "read", where: "owner = 'ann'" };
const WITHOUT_SECRET: DataRule = { class: BOX, access: "read", hidden: ["secret"] };
const BY_PARTS: readonly DataRule[] = [
  { class: BOX, access: "read", where: "owner = 'ann'", group: "1" },
  { class: BOX, access: "read", hidden: ["secret"], group: "2" },
];
const ALL: Pick<VisibleRead, "class" | "subtree"> = { class: BOX, subtree: true };

async function read(principal: Principal, request: VisibleRead = ALL): Promise<readonly ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of objects.visible.read(principal, request)) rows.push(...page);
  return rows.sort((one, other) => one.id.localeCompare(other.id));
}
const names = (rows: readonly (ObjectRow | undefined)[]) => rows.map((row) => row?.values["name"]);
const secrets = (rows: readonly ObjectRow[]) => rows.map(({ values }) => values["secret"]);
const REFS = ["a", "b", "c"].map((name) => ({ id: `box:${name}`, class: BOX }));

describe("for a user with a row condition", () => {
  const ann = withRules(OWN);

  test("rows of others do not exist, one by one and in a read", async () => {
    expect(names(await objects.visible.get(ann, REFS))).toEqual(["a", undefined, "c"]);
    expect(names(await read(ann))).toEqual(["a", "c", "d"]);
    expect(names(await read(ann, { ...ALL, subtree: false }))).toEqual(["a", "c"]);
    expect(names(await read(withRules({ class: BOX, access: "read" })))).toEqual(["a", "b", "c", "d"]);
  });

  test("edges lead to no row of others, in neither direction", async () => {
    const ends = async (principal: Principal, id: string, direction: "out" | "in") => {
      const found: string[] = [];
      for await (const page of objects.visible.edges(principal, [{ id, class: BOX }], { direction }))
        found.push(...page.map(({ source, target }) => `${source} ${target}`));
      return found.sort();
    };
    expect(await ends(ann, "box:a", "out")).toEqual(["box:a box:c"]);
    expect(await ends(ann, "box:b", "in")).toEqual([]);
    expect(await ends(admin, "box:a", "out")).toEqual(["box:a box:b", "box:a box:c"]);
  });

  test("no object is read for an edge between classes of which the caller sees every row", async () => {
    const refs: ObjectRef[] = [];
    const visible = visibleObjects({
      catalog: (principal) => objects.catalog(principal),
      unrestricted: {
        ...objects.unrestricted,
        get: (principal, wanted) => {
          refs.push(...wanted);
          return objects.unrestricted.get(principal, wanted);
        },
      },
    });
    const read = async (principal: Principal) => {
      refs.length = 0;
      for await (const page of visible.edges(principal, [{ id: "box:a", class: BOX }], { direction: "out" }))
        expect(page).not.toEqual([]);
      return refs.map(({ id }) => id).sort();
    };
    // The owner of the shelves limits them for every user but the administrator.
    expect(await read({ ...admin, user: "ann" })).toEqual([]);
    expect(await read(ann)).toEqual(["box:a", "box:b", "box:c"]);
  });

  test("a read is narrowed by the condition, so an index serves it", async () => {
    const memory = new MemoryObjects({ nowMs: () => 0 });
    await memory.createClass(admin, { path: BOX, columns: [{ name: "owner", type: "varchar" }], indexes: ["owner"] });
    for await (const page of memory.visible.read(ann, ALL)) expect(page).toEqual([]);
    expect(memory.reads.map(({ where }) => where)).toEqual([[{ kind: "equals", column: "owner", values: ["ann"] }]]);
  });
});

describe("for a user with a hidden column", () => {
  const ann = withRules(WITHOUT_SECRET);

  test("its values are absent, and other values are there", async () => {
    expect((await read(ann)).map(({ values }) => values)).toEqual(
      (["ann", "bob", "ann", "ann"] as const).map((owner, at): Row => ({ name: "abcd"[at] ?? "", owner })),
    );
    const [object] = await objects.visible.get(ann, REFS);
    expect(object?.values).toEqual({ name: "a", owner: "ann" });
    expect(object?.hidden.has("secret")).toBe(true);
  });

  test("no read is narrowed by it, unless its owner selects by it for every caller", async () => {
    const where = [{ kind: "equals", column: "secret", values: ["s2"] }] as const;
    await expect(read(ann, { ...ALL, where })).rejects.toMatchObject({ code: "not_found" });
    const selects = ({ values }: ObjectRow) => values["secret"] === "s2";
    const found = await read(ann, { ...ALL, where, selects });
    expect([names(found), secrets(found)]).toEqual([["b"], [undefined]]);
  });
});

test("where one group opens rows and another one columns, a value needs one group that opens both", async () => {
  const found = await read(withRules(...BY_PARTS));
  expect([names(found), secrets(found)]).toEqual([
    ["a", "b", "c", "d"],
    ["s1", undefined, "s3", "s4"],
  ]);
});

test("a class that may not be read does not exist, and is left out below a class that may", async () => {
  const none = withRules({ class: BOX, access: "none" });
  await expect(read(none)).rejects.toMatchObject({ code: "not_found" });
  expect(await objects.visible.get(none, REFS)).toEqual([undefined, undefined, undefined]);
  const part = withRules({ class: BOX, access: "read" }, { class: CRATE, access: "none" });
  expect(names(await read(part))).toEqual(["a", "b", "c"]);
});

test("the owner's limit holds beside the rules", async () => {
  const ann: Principal = { ...admin, user: "ann" };
  const shelf = { class: SHELF, subtree: false };
  expect(names(await read(ann, shelf))).toEqual(["x"]);
  expect(names(await objects.visible.get(ann, [{ id: "shelf:y", class: SHELF }]))).toEqual([undefined]);
  expect(names(await read(admin, shelf))).toEqual(["x", "y"]);
});

test("the same is answered as by a query, under every rule", async () => {
  for (const rules of [[OWN], [WITHOUT_SECRET], BY_PARTS, [{ ...OWN, where: "secret > 's2'", hidden: ["secret"] }]]) {
    const ann = withRules(...rules);
    const asked = await query.rows(ann, `select * from ${BOX}/ order by name limit -1`);
    const found = await read(ann);
    expect(found.map(({ id }) => id)).toEqual(asked.map(({ id }) => id));
    expect(found.map(({ values }) => values["secret"] ?? null)).toEqual(asked.map((row) => row["secret"] ?? null));
  }
});
