import { describe, expect, test } from "vitest";
import { RANGE_SLOTS } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { StoppableStores } from "../../../../test/helpers/engines/stoppable-stores.ts";
import type { ClassSpec } from "../index.ts";
import {
  admin,
  BOX,
  engine,
  told,
  useIndexes,
  controller,
  answered,
  unready,
  becomesReady,
  equals,
  addIndex,
} from "../../../../test/helpers/objects/index-world.ts";

useIndexes();

const RACK: ClassSpec = {
  path: "/matrix/box/rack",
  columns: [{ name: "slots", type: "int" }],
  options: { keyMode: "manu" },
};
const LINE: ClassSpec = {
  path: "/matrix/line",
  kind: "record",
  columns: [
    { name: "size", type: "int" },
    { name: "text", type: "text" },
  ],
};

describe("an index that is added to a class with objects", () => {
  test("has all of them when it is ready, those of subclasses too: values, ranges, elements, keys, words", async () => {
    const [a, b] = [controller(), controller()];
    await a.createClass(admin, BOX);
    await a.createClass(admin, RACK);
    await a.unrestricted.insert(admin, BOX.path, [
      { id: "one", size: 1, color: "red", parts: [1, 2], config: { os: "linux" }, note: "disk full" },
      { id: "two", size: 20 },
    ]);
    await a.unrestricted.insert(admin, RACK.path, [{ id: "r", size: 3, parts: [2], note: "disk new" }]);
    await b.unrestricted.update(admin, { id: "box:one" }, [
      { column: "parts", operation: "add", value: [3] },
      { column: "size", operation: "set", value: 2 },
    ]);
    for (const name of ["size", "color", "parts", "config"]) await addIndex(a, name);
    for (const path of [BOX.path, RACK.path])
      await b.alterClass(admin, path, { kind: "set options", options: { autosearch: true } });
    await becomesReady(b);
    for (const by of [a, b]) {
      await expect
        .poll(
          () =>
            by.unrestricted.explain(admin, {
              class: RACK.path,
              subtree: true,
              where: [{ kind: "words", words: ["disk"] }],
            }),
          { timeout: 30_000 },
        )
        .toMatchObject({ used: [{}] });
      expect(await answered({ kind: "range", column: "size", from: 2, to: 3 }, by)).toEqual(["box:one", "rack:r"]);
      expect(await answered(equals("size", 2), by)).toEqual(["box:one"]);
      expect(await answered(equals("color", "red"), by)).toEqual(["box:one"]);
      expect(await answered(equals("parts", 3), by)).toEqual(["box:one"]);
      expect(await answered(equals("parts", 2), by)).toEqual(["box:one", "rack:r"]);
      expect(await answered(equals("config", "os"), by)).toEqual(["box:one"]);
      expect(await answered({ kind: "words", words: ["disk"] }, by)).toEqual(["box:one", "rack:r"]);
    }
    const [row] = await b.unrestricted.get(admin, [{ id: "box:two" }]);
    expect(row?.vtimeMs).toBe(row?.ctimeMs);
  });

  test("has the records there are, and none that was removed", async () => {
    const a = controller();
    await a.createClass(admin, LINE);
    const ids = await a.unrestricted.insert(admin, LINE.path, [
      { size: 1, text: "disk full" },
      { size: 2 },
      { size: 1 },
    ]);
    await a.unrestricted.remove(admin, [{ id: ids[2]! }]);
    await addIndex(a, "size", LINE.path);
    await a.alterClass(admin, LINE.path, { kind: "set options", options: { autosearch: true } });
    await becomesReady(a);
    expect(await answered(equals("size", 1), a, LINE.path)).toEqual([ids[0]]);
    expect(await answered({ kind: "words", words: ["full"] }, a, LINE.path)).toEqual([ids[0]]);
  });

  test("is not used before a controller whose write began before it has ended that write", async () => {
    const stores = new StoppableStores(engine);
    const [a, b] = [controller(), controller(stores)];
    await a.createClass(admin, BOX);
    await a.unrestricted.insert(admin, BOX.path, [{ id: "old", size: 1 }]);
    await b.catalog(admin);
    const held = stores.hold("change");
    const writing = b.unrestricted.insert(admin, BOX.path, [{ id: "slow", size: 1 }]);
    const { goOn } = await held;
    const adding = addIndex(a, "size");
    await expect.poll(() => unready(a), { timeout: 30_000 }).toEqual(["/matrix/box size write-only"]);
    // Enough writes for the one old object to be indexed, if the pass did not wait.
    for (let at = 0; at < 50; at++) await a.unrestricted.insert(admin, BOX.path, [{ id: `more${at}`, size: 2 }]);
    expect(told).toEqual([]);
    expect(
      (await a.unrestricted.explain(admin, { class: BOX.path, subtree: false, where: [equals("size", 1)] })).used,
    ).toEqual([]);
    // A write in flight on another controller does not keep this one from closing.
    await a.close();
    const c = controller();
    goOn();
    await Promise.allSettled([writing, adding]);
    await becomesReady(c);
    expect(await answered(equals("size", 1), c)).toEqual(["box:old", "box:slow"]);
  });

  test("has what a controller wrote that was stopped during the change and went on long after it was ready", async () => {
    const stores = new StoppableStores(engine);
    const [a, b] = [controller(), controller(stores)];
    await a.createClass(admin, BOX);
    await a.unrestricted.insert(admin, BOX.path, [{ id: "old", size: 1 }]);
    await b.catalog(admin);
    const held = stores.hold("change");
    const writing = b.unrestricted.update(admin, { id: "box:old" }, [{ column: "size", operation: "set", value: 2 }]);
    const { goOn } = await held;
    await stores.stop();
    await addIndex(a, "size");
    await becomesReady(a);
    expect(await answered(equals("size", 1), a)).toEqual(["box:old"]);
    goOn();
    stores.goOn();
    expect(await writing).toBe(true);
    expect(await answered(equals("size", 2), a)).toEqual(["box:old"]);
  });

  test("keeps the numbers of its own column although another one had numbers of later times", async () => {
    const a = controller();
    // With them two slots are left.
    const others = Array.from({ length: RANGE_SLOTS - 2 }, (_, at) => `other${at}`);
    await a.createClass(admin, {
      ...BOX,
      columns: [...BOX.columns, ...["weight", "height", ...others].map((name) => ({ name, type: "int" as const }))],
      indexes: ["weight", ...others],
    });
    await a.unrestricted.insert(admin, BOX.path, [{ id: "one", size: 5 }]);
    await a.unrestricted.update(admin, { id: "box:one" }, [{ column: "weight", operation: "set", value: 70 }]);
    await a.alterClass(admin, BOX.path, { kind: "drop index", name: "weight" });
    for (const name of ["size", "height", "weight"]) await addIndex(a, name);
    await becomesReady(a);
    expect(await answered({ kind: "range", column: "size", from: 5, to: 5 }, a)).toEqual(["box:one"]);
    expect(await answered({ kind: "range", column: "weight", from: 70 }, a)).toEqual(["box:one"]);
    // Slots are few: the values of this one are indexed, ranges are not.
    expect(
      (
        await a.unrestricted.explain(admin, {
          class: BOX.path,
          subtree: false,
          where: [{ kind: "range", column: "height", from: 1 }],
        })
      ).used,
    ).toEqual([]);
  });

  test("of a class is kept beside that of a subclass, and either may go", async () => {
    const a = controller();
    await a.createClass(admin, BOX);
    await a.createClass(admin, { ...RACK, indexes: ["size"] });
    await a.unrestricted.insert(admin, RACK.path, [{ id: "r", size: 1 }]);
    await addIndex(a, "size");
    await becomesReady(a);
    await a.unrestricted.update(admin, { id: "rack:r" }, [{ column: "size", operation: "set", value: 2 }]);
    expect(await answered({ kind: "range", column: "size", from: 2 }, a)).toEqual(["rack:r"]);
    await a.alterClass(admin, BOX.path, { kind: "drop index", name: "size" });
    expect(await answered({ kind: "range", column: "size", from: 2 }, a, RACK.path)).toEqual(["rack:r"]);
  });

  test("comes with a key that is added: ids of older objects were not made of it", async () => {
    const a = controller();
    await a.createClass(admin, BOX);
    await a.unrestricted.insert(admin, BOX.path, [{ id: "old", color: "red" }]);
    await a.alterClass(admin, BOX.path, { kind: "add key", name: "color" });
    await becomesReady(a);
    expect(await a.unrestricted.insert(admin, BOX.path, [{ color: "red", size: 2 }])).toEqual(["box:red"]);
    expect(await answered(equals("color", "red"), a)).toEqual(["box:old", "box:red"]);
  });

  test("that an object does not fit into says so, and is dropped", async () => {
    const a = controller();
    await a.createClass(admin, BOX);
    await a.unrestricted.insert(admin, BOX.path, [{ id: "big", parts: Array.from({ length: 1_500 }, (_, at) => at) }]);
    await addIndex(a, "parts");
    await expect
      .poll(() => a.indexStates(admin), { timeout: 30_000 })
      .toContainEqual(
        expect.objectContaining({
          class: BOX.path,
          column: "parts",
          state: "backfill",
          total: 1,
          problem: expect.stringContaining("900 indexed values") as string,
        }),
      );
    await a.alterClass(admin, BOX.path, { kind: "drop index", name: "parts" });
    await addIndex(a, "size");
    await becomesReady(a);
    const { kv } = await engine.tenant("matrix");
    await expect.poll(async () => (await kv.list("objectindexing/pass/")).entries, { timeout: 30_000 }).toEqual([]);
  });

  test("of a class of the platform that got it with a new version of the program is filled, too", async () => {
    const thing = {
      path: "/system/thing",
      columns: [{ name: "size", type: "int" as const, meaning: "Size" }],
      options: { keyMode: "manu" as const },
      guard: { reading: { permission: "objects:read" as const } },
    };
    const [older, newer] = [controller(), controller()];
    older.registerSystemClass(thing);
    newer.registerSystemClass({ ...thing, indexes: ["size"] });
    await older.unrestricted.insert(admin, "/matrix/system/thing", [{ id: "one", size: 1 }]);
    await becomesReady(newer);
    expect(await answered(equals("size", 1), newer, "/matrix/system/thing")).toEqual(["thing:one"]);
  });

  test("moves no end of the objects that it is filled with", async () => {
    const a = controller();
    await a.createClass(admin, { ...BOX, options: { keyMode: "manu", ttlSeconds: 6_000 } });
    await a.unrestricted.insert(admin, BOX.path, [{ id: "one", size: 1 }]);
    const { cid } = (await a.catalog(admin)).get(BOX.path)!;
    const endsAtMs = async () => (await (await engine.tenant("matrix")).objects.get([{ cid, id: "one" }]))[0]?.endsAtMs;
    const before = await endsAtMs();
    await addIndex(a, "size");
    await becomesReady(a);
    expect(await endsAtMs()).toBe(before);
    expect(before).toBeGreaterThan(realClock.nowMs());
    expect(await answered(equals("size", 1), a, BOX.path)).toEqual(["box:one"]);
  });
});
