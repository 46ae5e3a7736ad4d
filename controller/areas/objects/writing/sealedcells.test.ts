import { afterEach, beforeEach, expect, test } from "vitest";
import type { Row } from "../../../../common/value.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { MemoryDatabase } from "../../../../test/helpers/engines/memory/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { ObjectStore } from "../../../store/objects.ts";
import { ObjectService, type ObjectChange } from "../index.ts";

const admin = testPrincipal();
const DOOR = "/matrix/system/door";

let objects: ObjectService;
let store: ObjectStore;
let told: ObjectChange[];

beforeEach(async () => {
  const engine = new MemoryDatabase(realClock).engine({ clock: realClock });
  await engine.createTenant("matrix");
  store = (await engine.tenant("matrix")).objects;
  objects = new ObjectService({ stores: engine, runtime: testRuntime(realClock) });
  objects.registerSystemClass({
    path: "/system/door",
    columns: [
      { name: "name", type: "varchar", meaning: "Name" },
      { name: "pin", type: "varchar", sealed: true },
      { name: "codes", type: "map", sealed: true },
      { name: "note", type: "varchar", meaning: "Note" },
    ],
    keys: ["name"],
    guard: { reading: { permission: "objects:read" } },
  });
  await objects.unrestricted.insert(admin, DOOR, [{ name: "front", pin: "a", codes: { x: "1", y: "2" }, note: "oak" }]);
  told = [];
  objects.unrestricted.onChange((changes) => told.push(...changes));
});

afterEach(() => objects.close());

/** Times of the cells of the object, by their keys. */
async function times(): Promise<ReadonlyMap<string, number>> {
  const cid = (await objects.catalog(admin)).get(DOOR)?.cid ?? 0;
  const [entity] = await store.get([{ cid, id: "front" }]);
  return new Map(entity?.cells.keys.map((key) => [key, entity.cells.get(key)?.timeUs ?? 0]));
}

async function valuesOf(id: string): Promise<Row | undefined> {
  return (await objects.unrestricted.get(admin, [{ id }]))[0]?.values;
}

test("values of sealed columns take another form where they lie, just above what was there, and nobody is told", async () => {
  const before = await times();
  const anew = (values: Row): Row => ({ ...values, pin: "A", codes: { x: "1", y: "22" }, note: "not sealed" });
  expect(await objects.exchangeSealed(admin, { id: "door:front" }, anew)).toBe(true);
  expect(await valuesOf("door:front")).toEqual({ name: "front", pin: "A", codes: { x: "1", y: "22" }, note: "oak" });
  const later = [...(await times())].map(([key, timeUs]) => timeUs - (before.get(key) ?? 0));
  expect(later.filter((us) => us !== 0)).toEqual([1, 1]);
  expect(told).toEqual([]);
});

test("a value that is not there any more does not come back in another form", async () => {
  const stale = { ...(await valuesOf("door:front")) };
  const away = { column: "pin", operation: "set", value: undefined } as const;
  await objects.unrestricted.update(admin, { id: "door:front" }, [away]);
  expect(await objects.exchangeSealed(admin, { id: "door:front" }, () => stale)).toBe(true);
  expect(await valuesOf("door:front")).not.toHaveProperty("pin");
});

test("an object that is not there has nothing to exchange", async () => {
  const asked: Row[] = [];
  const anew = (values: Row): Row => (asked.push(values), values);
  expect(await objects.exchangeSealed(admin, { id: "door:none" }, anew)).toBe(false);
  expect(asked).toEqual([]);
});
