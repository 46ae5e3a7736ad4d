import { describe, expect, test } from "vitest";
import {
  admin,
  THING,
  LINE,
  engine,
  stores,
  a,
  b,
  useDefinitions,
  kept,
  readAll,
  columnNumber,
  borneBy,
} from "../../../../test/helpers/objects/definitions-world.ts";

useDefinitions();

/** Removed objects that still have versions. */
async function removedThings(): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of a.unrestricted.removed(admin, THING.path)) ids.push(...page.map(({ id }) => id));
  return ids;
}

async function cidOf(path: string): Promise<number> {
  return (await a.catalog(admin)).get(path)?.cid ?? 0;
}

/**
 * Stops B just before `writing` reaches the store, for longer than its lease lasts. Meanwhile A acts; then B continues.
 */
async function acrossStop<T>(
  writing: () => Promise<T>,
  meanwhile: () => Promise<unknown>,
  call: "change" | "append" = "change",
): Promise<T> {
  const held = stores.hold(call);
  const written = writing();
  written.catch(() => undefined);
  const { goOn } = await held;
  try {
    await stores.stop();
    await meanwhile();
  } finally {
    goOn();
    stores.goOn();
  }
  return written;
}

describe("a controller that was stopped between its check and its write", () => {
  test("adds what an index asks for that was made meanwhile", async () => {
    const index = () => a.alterClass(admin, THING.path, { kind: "add index", name: "size" });
    await acrossStop(() => b.unrestricted.insert(admin, THING.path, [{ id: "new", size: 7 }]), index);
    expect(await borneBy(`a${await columnNumber(THING.path, "size")}=7`)).toEqual(["new"]);
    expect(await a.unrestricted.get(admin, [{ id: "thing:new" }])).toMatchObject([{ values: { size: 7 } }]);
    kept();
  });

  test("keeps each version of an object as soon as its class asks for it", async () => {
    const keep = () => a.alterClass(admin, THING.path, { kind: "set options", options: { version: true } });
    expect(
      await acrossStop(
        () => b.unrestricted.update(admin, { id: "thing:old" }, [{ column: "size", operation: "set", value: 2 }]),
        keep,
      ),
    ).toBe(true);
    const { items } = await (await engine.tenant("matrix")).objects.history(
      { cid: await cidOf(THING.path), id: "old" },
      {},
      { limit: 10 },
    );
    expect(items).toHaveLength(1);
    kept();
  });

  test("keeps the version of a removal as soon as its class asks for it", async () => {
    const keep = () => a.alterClass(admin, THING.path, { kind: "set options", options: { version: true } });
    expect(await acrossStop(() => b.unrestricted.remove(admin, [{ id: "thing:old" }]), keep)).toBe(1);
    expect(await removedThings()).toEqual(["thing:old"]);
    kept();
  });

  test("leaves no versions of what it removes with them, though its class keeps them only since", async () => {
    const keep = (version: boolean) => a.alterClass(admin, THING.path, { kind: "set options", options: { version } });
    await keep(true);
    await a.unrestricted.insert(admin, THING.path, [{ id: "dead", size: 1 }]);
    await a.unrestricted.remove(admin, [{ id: "thing:dead" }]);
    await keep(false);
    const both = [{ id: "thing:old" }, { id: "thing:dead" }];
    expect(
      await acrossStop(
        () => b.unrestricted.remove(admin, both, { withVersions: true }),
        () => keep(true),
      ),
    ).toBe(2);
    expect(await removedThings()).toEqual([]);
    kept();
  });

  test("adds to records what an index asks for that was made meanwhile", async () => {
    const index = () => a.alterClass(admin, LINE.path, { kind: "add index", name: "color" });
    const [id = ""] = await acrossStop(
      () => b.unrestricted.insert(admin, LINE.path, [{ color: "red" }]),
      index,
      "append",
    );
    const { objects } = await engine.tenant("matrix");
    const [record] = await objects.getRecords([{ cid: await cidOf(LINE.path), id: id.slice("line:".length) }]);
    expect(record?.terms).toEqual([`a${await columnNumber(LINE.path, "color")}=red`]);
    kept();
  });

  test("adds it to a record that it writes anew after a removal, too", async () => {
    const index = () => a.alterClass(admin, LINE.path, { kind: "add index", name: "color" });
    const [id = ""] = await a.unrestricted.insert(admin, LINE.path, [{ color: "red" }]);
    await a.unrestricted.remove(admin, [{ id }]);
    const anew = () => b.unrestricted.insert(admin, LINE.path, [{ id, color: "red" }], { rewrites: true });
    await acrossStop(anew, index, "append");
    const { objects } = await engine.tenant("matrix");
    const [record] = await objects.getRecords([{ cid: await cidOf(LINE.path), id: id.slice("line:".length) }]);
    expect(record?.terms).toEqual([`a${await columnNumber(LINE.path, "color")}=red`]);
    kept();
  });

  test("does not say ok to a value of a column that was dropped, nor of another one of that name", async () => {
    const drop = () => a.alterClass(admin, THING.path, { kind: "drop column", name: "size" });
    await expect(
      acrossStop(() => b.unrestricted.insert(admin, THING.path, [{ id: "new", size: 7 }]), drop),
    ).rejects.toMatchObject({
      code: "conflict",
    });
    await a.alterClass(admin, THING.path, { kind: "add column", column: { name: "size", type: "varchar" } });
    const swap = async () => {
      await a.alterClass(admin, THING.path, { kind: "drop column", name: "size" });
      await a.alterClass(admin, THING.path, { kind: "add column", column: { name: "size", type: "int" } });
    };
    const update = () =>
      b.unrestricted.update(admin, { id: "thing:old" }, [{ column: "size", operation: "set", value: "big" }]);
    await expect(acrossStop(update, swap)).rejects.toMatchObject({ code: "conflict" });
    expect(await b.unrestricted.get(admin, [{ id: "thing:old" }])).toMatchObject([{ values: { color: "red" } }]);
    kept();
  });

  test("is not disturbed by what does not concern its write", async () => {
    const add = () =>
      a.alterClass(admin, THING.path, { kind: "add column", column: { name: "weight", type: "double" } });
    expect(await acrossStop(() => b.unrestricted.insert(admin, THING.path, [{ id: "new", size: 7 }]), add)).toEqual([
      "thing:new",
    ]);
    await b.unrestricted.update(admin, { id: "thing:new" }, [{ column: "weight", operation: "set", value: 2.5 }]);
    expect(await a.unrestricted.get(admin, [{ id: "thing:new" }])).toMatchObject([
      { values: { size: 7, weight: 2.5 } },
    ]);
    kept();
  });

  test("leaves nothing in a class that was dropped meanwhile, and nothing in the new one of that path", async () => {
    const before = await cidOf(LINE.path);
    await a.unrestricted.remove(admin, [{ id: "thing:old" }]);
    const old = await cidOf(THING.path);
    const again = async () => {
      await a.dropClass(admin, THING.path);
      await a.createClass(admin, THING);
    };
    await expect(
      acrossStop(() => b.unrestricted.insert(admin, THING.path, [{ id: "new", color: "red" }]), again),
    ).rejects.toMatchObject({ code: "conflict" });
    await expect(
      acrossStop(
        () => b.unrestricted.insert(admin, LINE.path, [{ color: "red" }]),
        () => a.dropClass(admin, LINE.path),
        "append",
      ),
    ).rejects.toMatchObject({ code: "conflict" });
    const { objects } = await engine.tenant("matrix");
    expect(await objects.get([{ cid: old, id: "new" }])).toEqual([undefined]);
    expect((await objects.timeline({ cid: before, fromMs: 0, toMs: 2 ** 47 }, { limit: 10 })).items).toEqual([]);
    expect(await readAll({}, b)).toEqual([]);
    expect(await b.unrestricted.insert(admin, THING.path, [{ id: "new", color: "blue" }])).toEqual(["thing:new"]);
    expect(await readAll({ where: [{ kind: "equals", column: "color", values: ["blue"] }] }, a)).toHaveLength(1);
    kept();
  });

  test("reads by the definitions of now, even before any of its timers could tell it that its lease is over", async () => {
    await stores.stop();
    await a.alterClass(admin, THING.path, { kind: "drop index", name: "color" });
    await a.unrestricted.insert(admin, THING.path, [{ id: "new", color: "green" }]);
    const where = [{ kind: "equals" as const, column: "color", values: ["green"] }];
    const reading = readAll({ where }, b);
    stores.goOn();
    expect((await reading).map((row) => row.id)).toContain("thing:new");
    kept();
  });
});
