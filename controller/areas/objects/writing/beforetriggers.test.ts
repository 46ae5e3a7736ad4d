import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Row } from "../../../../common/value.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { MemoryDatabase } from "../../../../test/helpers/engines/memory/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { Principal } from "../../permissions/index.ts";
import { ObjectService, type ObjectChange, type TriggeredWrite } from "../index.ts";

const admin = testPrincipal();
const BOX = "/matrix/box";
const LINE = "/matrix/line";

let objects: ObjectService;
/** Writes for which the triggers were called, in order; `callers` are the users. */
let seen: TriggeredWrite[];
let callers: Principal[];
let told: ObjectChange[];
/** The trigger: returns the object to be written. */
let trigger: (object: Row) => Row | Promise<Row>;
let announces: boolean;

beforeEach(async () => {
  seen = [];
  callers = [];
  told = [];
  trigger = (object) => object;
  announces = false;
  const engine = new MemoryDatabase(realClock).engine({ clock: realClock });
  await engine.createTenant("matrix");
  objects = new ObjectService({
    stores: engine,
    runtime: testRuntime(realClock),
    triggers: {
      before: async (principal, _, write) => {
        seen.push(write);
        callers.push(principal);
        return { object: await trigger(write.object), announced: announces };
      },
      after: () => Promise.resolve(),
    },
  });
  await objects.createEdgeType(admin, { name: "holds", remedy: "" });
  await objects.createClass(admin, {
    path: BOX,
    columns: [
      { name: "name", type: "varchar" },
      { name: "size", type: "int" },
      { name: "ports", type: "set", elements: ["int"] },
      { name: "labels", type: "map" },
      { name: "steps", type: "list" },
    ],
    keys: ["name"],
  });
  const columns = ["text", "host", "level"].map((name) => ({ name, type: "varchar" as const }));
  await objects.createClass(admin, { path: LINE, kind: "record", columns });
  objects.unrestricted.onChange((changes) => told.push(...changes));
});

afterEach(() => objects.close());

async function triggered(path: string, more: { readonly before?: boolean; readonly disabled?: boolean } = {}) {
  const rest = { name: "t", text: "", language: "lua", level: 1 } as const;
  await objects.putTrigger(admin, { class: path, before: true, disabled: false, ...rest, ...more });
}

async function valuesOf(id: string): Promise<Row | undefined> {
  return (await objects.unrestricted.get(admin, [{ id }]))[0]?.values;
}

async function heldBy(id: string): Promise<string[]> {
  const held: string[] = [];
  for await (const page of objects.unrestricted.edges(admin, [{ id }], { type: "holds", direction: "out" }))
    held.push(...page.map(({ target }) => target));
  return held.sort();
}

const FULL: Row = { size: 1, ports: [1, 2], labels: { a: "x" }, steps: [{ of: [1] }, "two"] };

describe("a trigger before the write of an object", () => {
  test("sees what would be written and what was there", async () => {
    await triggered(BOX);
    await objects.unrestricted.insert(admin, BOX, [{ name: "a", size: 1, holds: ["box:z"] }]);
    await objects.unrestricted.update(admin, { id: "box:a" }, [{ column: "size", operation: "set", value: 2 }]);
    await objects.unrestricted.remove(admin, [{ id: "box:a" }]);
    const of = { class: BOX, id: "box:a" };
    const [one, two] = [1, 2].map((size) => ({ name: "a", size }));
    expect(seen).toEqual([
      { action: "INSERT", ...of, object: { ...one, holds: ["box:z"] }, old: undefined },
      { action: "UPDATE", ...of, object: two, old: one },
      { action: "DELETE", ...of, object: two, old: two },
    ]);
  });

  test.each<[what: string, left: Row, values: Row]>([
    ["a value it sets", { size: 7 }, { ...FULL, size: 7 }],
    ["a value it takes away", { size: null }, { ports: [1, 2], labels: { a: "x" }, steps: FULL.steps ?? null }],
    ["elements it adds", { ports: [1, 2, 3] }, { ...FULL, ports: [1, 2, 3] }],
    ["a key it adds", { labels: { a: "x", b: "y" } }, { ...FULL, labels: { a: "x", b: "y" } }],
    ["a key it takes away", { labels: { b: "y" } }, { ...FULL, labels: { b: "y" } }],
    ["what it changes deep inside", { steps: [{ of: [2] }, "two"] }, { ...FULL, steps: [{ of: [2] }, "two"] }],
  ])("decides what is written: %s", async (_, left, values) => {
    await triggered(BOX);
    trigger = (object) => ({ ...object, ...left });
    await objects.unrestricted.insert(admin, BOX, [{ name: "a", ...FULL }]);
    expect(await valuesOf("box:a")).toEqual({ name: "a", ...values });
  });

  test("empties what it leaves empty, though an empty table of Lua is a list as well as a map", async () => {
    await triggered(BOX);
    await objects.unrestricted.insert(admin, BOX, [{ name: "a", ...FULL }]);
    trigger = (object) => ({ ...object, ports: {}, labels: [], steps: {} });
    await objects.unrestricted.update(admin, { id: "box:a" }, [{ column: "size", operation: "set", value: 2 }]);
    expect(told.at(-1)?.fields).toMatchObject({ size: 2, steps: [] });
    const { ports = [], labels = {}, steps } = (await valuesOf("box:a")) ?? {};
    expect({ ports, labels, steps }).toEqual({ ports: [], labels: {}, steps: [] });
  });

  test("leaves the rest to other writers: what it only hands back is not written", async () => {
    await triggered(BOX);
    await objects.unrestricted.insert(admin, BOX, [{ name: "a", ...FULL }]);
    await objects.unrestricted.insert(admin, BOX, [{ name: "b", ports: [], labels: {}, steps: [] }]);
    trigger = ({ ...object }) => ({ ...structuredClone(object), vtime: 5, ...(object.name === "b" && EMPTY_IN_LUA) });
    for (const id of ["box:a", "box:b"]) {
      await objects.unrestricted.update(admin, { id }, [{ column: "size", operation: "set", value: 2 }]);
      expect(told.at(-1)).toMatchObject({ id, fields: { size: 2 }, before: { values: expect.anything() as Row } });
      expect(Object.keys(told.at(-1)?.fields ?? {})).toEqual(["size"]);
    }
  });

  test("clears nothing that was not there", async () => {
    await triggered(BOX);
    await objects.unrestricted.insert(admin, BOX, [{ name: "a" }]);
    trigger = (object) => ({ ...object, ports: null, steps: null });
    await objects.unrestricted.update(admin, { id: "box:a" }, [{ column: "size", operation: "set", value: 2 }]);
    expect(told.at(-1)?.fields).toEqual({ size: 2 });
  });

  test("is overruled by the type of a column: a list is no map", async () => {
    await triggered(BOX);
    trigger = (object) => ({ ...object, labels: ["x"] });
    await expect(objects.unrestricted.insert(admin, BOX, [{ name: "a", labels: { 0: "x" } }])).rejects.toMatchObject({
      code: "invalid",
    });
  });

  test("decides on relations too", async () => {
    await objects.unrestricted.insert(
      admin,
      BOX,
      ["x", "y", "z"].map((name) => ({ name })),
    );
    await triggered(BOX);
    trigger = (object) => ({ ...object, holds: ["box:y", "box:z"] });
    await objects.unrestricted.insert(admin, BOX, [{ name: "a", holds: ["box:x"] }, { name: "b" }]);
    expect([await heldBy("box:a"), await heldBy("box:b")]).toEqual([
      ["box:y", "box:z"],
      ["box:y", "box:z"],
    ]);
    trigger = (object) => object;
    await objects.unrestricted.insert(admin, BOX, [{ name: "c", holds: ["box:x"] }]);
    expect(await heldBy("box:c")).toEqual(["box:x"]);
  });

  test("may not change the columns that make the id, but those of an object with another id", async () => {
    await triggered(BOX);
    trigger = (object) => ({ ...object, name: "other" });
    await expect(objects.unrestricted.insert(admin, BOX, [{ name: "a" }])).rejects.toThrow("cannot be changed");
    await objects.unrestricted.insert(admin, BOX, [{ id: "box:mine", name: "a" }]);
    expect(await valuesOf("box:mine")).toEqual({ name: "other" });
  });

  test("runs for no class but its own, and not when it is disabled or runs after the write", async () => {
    await triggered(LINE);
    await triggered(BOX, { disabled: true });
    await objects.unrestricted.insert(admin, BOX, [{ name: "a" }]);
    await triggered(BOX, { before: false });
    await objects.unrestricted.insert(admin, BOX, [{ name: "b" }]);
    await objects.unrestricted.remove(admin, [{ id: "box:a" }]);
    expect(seen).toEqual([]);
  });

  test("has the change told only if it says so", async () => {
    await triggered(BOX);
    for (announces of [true, false]) {
      await objects.unrestricted.insert(admin, BOX, [{ name: "a" }]);
      await objects.unrestricted.update(admin, { id: "box:a" }, [{ column: "size", operation: "set", value: 2 }]);
      await objects.unrestricted.remove(admin, [{ id: "box:a" }]);
    }
    expect(told.map(({ announced = false }) => announced)).toEqual([true, true, true, false, false, false]);
  });

  test("writes as a further step of its chain, and not to what waits for it", async () => {
    await triggered(BOX);
    await triggered(LINE);
    trigger = async (object) => {
      const [caller = admin] = callers;
      if (seen.length === 1) await objects.unrestricted.insert(caller, LINE, [{ text: "of the trigger" }]);
      return object;
    };
    await objects.unrestricted.insert(admin, BOX, [{ name: "a" }]);
    const [first, second] = callers.map(({ chain }) => chain);
    expect(second).toMatchObject({ id: first?.id, steps: 2 });
    expect([first?.steps, first?.holds.length, second?.holds.length]).toEqual([1, 1, 2]);
    expect(second?.holds).toEqual(expect.arrayContaining([...(first?.holds ?? [])]));
    trigger = async (object) => {
      await objects.unrestricted.update(callers.at(-1) ?? admin, { id: "box:a" }, [
        { column: "size", operation: "set", value: 1 },
      ]);
      return object;
    };
    await expect(objects.unrestricted.insert(admin, BOX, [{ name: "a" }])).rejects.toMatchObject({ code: "invalid" });
  });
});

describe("a trigger before the write of a record", () => {
  test("sees it whole, and decides what it holds and whether it is told", async () => {
    await triggered(LINE);
    announces = true;
    trigger = () => ({ text: "changed", level: "info" });
    const [id = ""] = await objects.unrestricted.insert(admin, LINE, [{ text: "given", host: "h" }]);
    expect(seen).toEqual([{ action: "INSERT", class: LINE, id, object: { text: "given", host: "h" }, old: undefined }]);
    expect(await valuesOf(id)).toEqual({ text: "changed", level: "info" });
    expect(told).toMatchObject([{ id, announced: true }]);
    announces = false;
    await objects.unrestricted.remove(admin, [{ id }]);
    expect(seen[1]).toMatchObject({ action: "DELETE", id, object: { text: "changed", level: "info" } });
    expect(told[1]).not.toHaveProperty("announced");
  });
});

const EMPTY_IN_LUA = { ports: {}, labels: [], steps: {} };
