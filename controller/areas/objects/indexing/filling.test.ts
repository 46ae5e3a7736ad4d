import { describe, expect, test } from "vitest";
import { INDEX_FILL_PAGE_ROWS } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { StoppableStores } from "../../../../test/helpers/engines/stoppable-stores.ts";
import type { ObjectService } from "../index.ts";
import { encodeCell } from "../values/codec.ts";
import {
  admin,
  BOX,
  engine,
  letGo,
  told,
  useIndexes,
  controller,
  readAll,
  answered,
  unready,
  becomesReady,
  equals,
  addIndex,
} from "../../../../test/helpers/objects/index-world.ts";

useIndexes();

describe("filling an index", () => {
  const COUNT = 2 * INDEX_FILL_PAGE_ROWS + 50;
  let stores: StoppableStores;
  let a: ObjectService;
  let b: ObjectService;

  /** B is about to write the second page of the objects. */
  async function halfway(): Promise<{ goOn(): void }> {
    stores = new StoppableStores(engine);
    b = controller(stores);
    await b.createClass(admin, BOX);
    await b.unrestricted.insert(
      admin,
      BOX.path,
      Array.from({ length: COUNT }, (_, at) => ({ id: `o${at}`, size: at % 10 })),
    );
    const first = stores.hold("change");
    await addIndex(b, "size");
    const { goOn } = await first;
    const second = stores.hold("change");
    goOn();
    const held = await second;
    letGo.push(
      () => held.goOn(),
      () => stores.goOn(),
    );
    a = controller();
    await a.catalog(admin);
    return held;
  }

  test("is gone on with by another controller, from where the first one had got to", async () => {
    const { goOn } = await halfway();
    const reached = (await a.indexStates(admin)).find(({ column }) => column === "size");
    expect(reached).toMatchObject({ class: BOX.path, state: "backfill", total: COUNT });
    // One page, which may be shorter than was asked for.
    expect(reached?.done).toBeGreaterThan(0);
    expect(reached?.done).toBeLessThanOrEqual(INDEX_FILL_PAGE_ROWS);
    await stores.stop();
    await becomesReady(a);
    expect(told.filter(({ msg }) => msg === "objects are brought into new indexes").at(-1)).toMatchObject({
      done: reached?.done,
      total: COUNT,
    });
    expect(await answered(equals("size", 3), a)).toHaveLength(COUNT / 10);
    await a.unrestricted.update(admin, { id: "box:o3" }, [{ column: "size", operation: "set", value: 77 }]);
    goOn();
    stores.goOn();
    await becomesReady(b);
    for (const by of [a, b])
      await expect
        .poll(() => answered({ kind: "range", column: "size", from: 9 }, by), { timeout: 30_000 })
        .toHaveLength(COUNT / 10 + 1);
  });

  test("ends when the index is dropped, and another one on the same column has a way of its own", async () => {
    const { goOn } = await halfway();
    await a.alterClass(admin, BOX.path, { kind: "drop index", name: "size" });
    await addIndex(a, "size");
    expect(await unready(a)).toEqual(["/matrix/box size write-only"]);
    goOn();
    await becomesReady(a);
    await expect
      .poll(() => told.map(({ msg }) => msg), { timeout: 30_000 })
      .toEqual([
        "objects are brought into new indexes",
        "new indexes were dropped",
        "objects are brought into new indexes",
        "new indexes are ready",
      ]);
    expect(await answered({ kind: "range", column: "size", from: 3, to: 3 }, a)).toHaveLength(COUNT / 10);
  });

  test("brings back nothing that is removed meanwhile, nor its class", async () => {
    const { goOn } = await halfway();
    await a.unrestricted.remove(
      admin,
      Array.from({ length: COUNT }, (_, at) => ({ id: `box:o${at}` })),
    );
    await a.dropClass(admin, BOX.path);
    goOn();
    await becomesReady(a);
    await a.createClass(admin, { ...BOX, indexes: ["size"] });
    expect(await readAll({}, a)).toEqual([]);
    await expect.poll(() => told.at(-1)?.msg, { timeout: 30_000 }).toBe("new indexes were dropped");
  });
});

test("a refresh writes what the indexes lack, and leaves everything else as it is", async () => {
  const a = controller();
  await a.createClass(admin, { ...BOX, indexes: ["size"], options: { keyMode: "manu", autosearch: true } });
  await a.unrestricted.insert(admin, BOX.path, [{ id: "one", size: 5, note: "disk" }]);
  const view = (await a.catalog(admin)).get(BOX.path)!;
  const cell = (name: "size" | "note", value: number | string) =>
    [String(view.column(name)?.number), encodeCell(name === "size" ? "int" : "text", value, name)] as const;
  // As a write is whose controller went away before it had come to the words, and of an index that was lost.
  const written = {
    key: { cid: view.cid, id: "one" },
    timeUs: (realClock.nowMs() + 1_000) * 1_000,
    cells: new Map([cell("size", 6), cell("note", "full")]),
  };
  await (await engine.tenant("matrix")).objects.change([written]);
  const before = await a.unrestricted.get(admin, [{ id: "box:one" }]);
  expect(await answered(equals("size", 6), a)).toEqual([]);
  expect(await a.unrestricted.refresh(admin, [{ id: "box:one" }, { id: "box:none" }])).toBe(1);
  expect(await answered(equals("size", 6), a)).toEqual(["box:one"]);
  expect(await answered({ kind: "range", column: "size", from: 6 }, a)).toEqual(["box:one"]);
  expect(await answered({ kind: "words", words: ["full"] }, a)).toEqual(["box:one"]);
  expect(await a.unrestricted.get(admin, [{ id: "box:one" }])).toEqual(before);
});
