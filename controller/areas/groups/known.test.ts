import { afterAll, beforeAll, expect, test } from "vitest";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import { GroupService } from "./service.ts";
import type { GroupContent } from "./types.ts";
import { visibleObjects } from "../query/index.ts";

const admin = testPrincipal();
let engine: TestEngine;
let objects: ObjectService;
let groups: GroupService;
let made = 0;

beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  await objects.createClass(admin, {
    path: "/matrix/ent",
    columns: [{ name: "host", type: "varchar" }],
    keys: ["host"],
  });
  await objects.createClass(admin, { path: "/matrix/ent/box", columns: [{ name: "secret", type: "varchar" }] });
  const knownNames = (_: unknown, names: ReadonlySet<string>) =>
    Promise.resolve(new Set(["ann", "bob"].filter((name) => names.has(name))));
  const catalogOf: ObjectService["catalog"] = (principal) => objects.catalog(principal);
  groups = new GroupService({ runtime, stores: engine, catalogOf, knownNames });
});
afterAll(async () => {
  await groups.close();
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const warningsOf = async (content: GroupContent): Promise<readonly string[]> =>
  (await groups.create(admin, { name: `g${made++}`, ...content })).warnings;

test("a column that no class of the path has is refused, with the name that was probably meant", async () => {
  for (const [content, message] of [
    [{ fields: { "/matrix/ent": "*,-secrte" } }, "fields: there is no column secrte; did you mean secret?"],
    [{ fields: { "/matrix/ent/box": "host,nothing" } }, "fields: there is no column nothing."],
    [
      { readexps: ["/matrix/ent: hots = 'a' or secret = 'b'"] },
      "readexps: there is no column hots; did you mean host?",
    ],
    [{ fields: { "/": "-hsot" } }, "fields: there is no column hsot; did you mean host?"],
  ] as const) {
    await expect(warningsOf(content), message).rejects.toMatchObject({ code: "invalid", message });
  }
});

test("columns of classes below, fields of all objects, and columns in any case are taken", async () => {
  expect(
    await warningsOf({
      readonly: ["/matrix/ent/"],
      fields: { "/matrix/ent": "*,-Secret" },
      readexps: ["/matrix/ent: CTIME > 1 and host = 'a'", "CTIME > 1 and Secret = 'a'"],
    }),
  ).toEqual([]);
});

test("a column of a condition without a class, which no class has, is told: a class with it may be made later", async () => {
  expect(await warningsOf({ readexps: ["colour = 'red' and hots = 'a'"] })).toEqual([
    "readexps: no class has a column colour now.",
    "readexps: no class has a column hots now; did you mean host?",
  ]);
});

test("a type of edges is a column of every object", async () => {
  await objects.createEdgeType(admin, { name: "uplink", remedy: "" });
  expect(await warningsOf({ fields: { "/matrix/ent": "*,-uplink" }, readexps: ["Uplink is null"] })).toEqual([]);
});

test("marks of records are columns of a class, and of no class where none is named", async () => {
  await objects.createClass(admin, { path: "/matrix/line", kind: "record", columns: [] });
  expect(
    await warningsOf({ readexps: ["/matrix/line: marks is null"], fields: { "/matrix/line": "-_rawbytes" } }),
  ).toEqual([]);
  expect(await warningsOf({ readexps: ["marks is null"] })).toEqual(["readexps: no class has a column marks now."]);
});

test("a row condition about raw bytes is refused, unless the class has a column of that name itself", async () => {
  await objects.createClass(admin, { path: "/matrix/raw", kind: "record", columns: [] });
  const refused = {
    code: "invalid",
    message: "readexps: a row condition does not ask for _rawbytes, which notifications do not hold; ask for marks.",
  };
  for (const condition of ["_rawbytes is null", "marks is null or not (_RAWBYTES = '')"])
    await expect(warningsOf({ readexps: [`/matrix/raw: ${condition}`] }), condition).rejects.toMatchObject(refused);
  const columns = [{ name: "_RawBytes", type: "varchar" }] as const;
  await objects.createClass(admin, { path: "/matrix/own", kind: "record", columns });
  expect(await warningsOf({ readexps: ["/matrix/own: _rawbytes is null"] })).toEqual([]);
});

test("a class that is not there is told, and taken, as it may be made later", async () => {
  const told = [
    "There is no class /matrix/etn now; did you mean /matrix/ent?",
    "There is no class /matrix/quite/other now.",
  ];
  expect(
    await warningsOf({
      readonly: ["/matrix/etn", "/"],
      fields: { "/matrix/quite/other": "-a" },
      readexps: ["/matrix/quite/other: a = 1"],
    }),
  ).toEqual(told);
});

test("a member that is no user is refused; one that the group has stays", async () => {
  const message = "member: there is no user /plant/nobody.";
  await expect(warningsOf({ member: ["U/ann", "U/plant/nobody"] })).rejects.toMatchObject({ code: "invalid", message });
  const { id } = await groups.create(admin, { name: "shift", member: ["U/ann", "U/plant/bob"] });
  await expect(groups.update(admin, { id, member: ["U/eve"] })).rejects.toMatchObject({ code: "invalid" });
  expect((await groups.find(admin, id)).member).toEqual(["U/ann", "U/plant/bob"]);
});

test("a member whose user is gone does not keep the group from being changed", async () => {
  const old = new GroupService({ runtime: testRuntime(realClock), stores: engine });
  const { id } = await old.create(admin, { name: "old", member: ["U/gone"] });
  await old.close();
  const { member } = await groups.update(admin, { id, member: ["U/gone", "U/ann"], readonly: ["/matrix/ent"] });
  expect(member).toEqual(["U/gone", "U/ann"]);
});
