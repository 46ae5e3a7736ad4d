import { describe, expect, test } from "vitest";
import { CATALOG_ACKNOWLEDGE_DEADLINE_MS } from "../../../../common/limits.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { TenantCatalog } from "./catalog.ts";
import {
  admin,
  THING,
  LINE,
  engine,
  stores,
  a,
  b,
  useDefinitions,
  controller,
  kept,
  readAll,
  columnNumber,
  borneBy,
} from "../../../../test/helpers/objects/definitions-world.ts";

useDefinitions();

describe("a change of definitions", () => {
  test("waits for a write that began before it on another controller, and a class with a new object is not dropped", async () => {
    await a.unrestricted.remove(admin, [{ id: "thing:old" }]);
    const held = stores.hold("change");
    const writing = b.unrestricted.insert(admin, THING.path, [{ id: "new", size: 7 }]);
    const { goOn } = await held;
    let settled = false;
    const dropping = a.dropClass(admin, THING.path).finally(() => {
      settled = true;
    });
    dropping.catch(() => undefined);
    // The mark is there, so the change was made and new writes are refused. The attempted row fits no class, so the
    // class never gets an object.
    await expect
      .poll(
        () =>
          a.unrestricted
            .insert(admin, THING.path, [{ id: "late", nowhere: 1 }])
            .catch((error: { code?: string }) => error.code),
        { timeout: 30_000 },
      )
      .toBe("unavailable");
    expect(settled).toBe(false);
    goOn();
    expect(await writing).toEqual(["thing:new"]);
    await expect(dropping).rejects.toMatchObject({ code: "conflict" });
    expect(await b.unrestricted.insert(admin, THING.path, [{ id: "more" }])).toEqual(["thing:more"]);
    kept();
  });

  test("does not wait for a controller that was stopped while it acknowledged the one before", async () => {
    await a.unrestricted.remove(admin, [{ id: "thing:old" }]);
    const acknowledging = stores.hold("txn");
    const adding = a.alterClass(admin, THING.path, { kind: "add column", column: { name: "weight", type: "double" } });
    const { goOn } = await acknowledging;
    await stores.stop();
    goOn();
    await adding;
    for (const name of ["height", "depth"])
      await a.alterClass(admin, THING.path, { kind: "add column", column: { name, type: "double" } });
    await a.dropClass(admin, THING.path);
    stores.goOn();
    await expect(b.unrestricted.insert(admin, THING.path, [{ id: "new" }])).rejects.toMatchObject({
      code: "not_found",
    });
    kept();
  });

  test("is known to every other controller when it resolves", async () => {
    for (let at = 0; at < 10; at++) {
      await a.createClass(admin, { path: `/matrix/fresh${at}`, columns: [{ name: "x", type: "int" }] });
      expect(await b.unrestricted.insert(admin, `/matrix/fresh${at}`, [{ x: at }])).toHaveLength(1);
    }
    kept();
  });

  test("that takes something away gives up when another controller lives and does not acknowledge; one that adds does not need it", async () => {
    const clock = new TestClock(realClock.nowMs());
    const impatient = controller(engine, clock);
    await a.unrestricted.remove(admin, [{ id: "thing:old" }]);
    await impatient.catalog(admin);
    const held = stores.hold("change");
    const writing = b.unrestricted.insert(admin, LINE.path.replace("line", "thing"), [{ id: "slow" }]);
    const { goOn } = await held;
    const timers = clock.waiting;
    const dropping = impatient.dropClass(admin, THING.path);
    dropping.catch(() => undefined);
    await expect.poll(() => clock.waiting, { timeout: 30_000 }).toBeGreaterThan(timers);
    await expect
      .poll(
        () =>
          a.unrestricted.insert(admin, THING.path, [{ id: "late" }]).catch((error: { code?: string }) => error.code),
        {
          timeout: 30_000,
        },
      )
      .toBe("unavailable");
    clock.advance(CATALOG_ACKNOWLEDGE_DEADLINE_MS);
    await expect(dropping).rejects.toMatchObject({ code: "unavailable" });
    const timersLeft = clock.waiting;
    const adding = impatient.alterClass(admin, THING.path, {
      kind: "add column",
      column: { name: "weight", type: "double" },
    });
    await expect
      .poll(async () => (await a.catalog(admin)).get(THING.path)?.column("weight"), { timeout: 30_000 })
      .toBeDefined();
    // The definition is there before its controller knows, and waits for the other one.
    await expect.poll(() => clock.waiting, { timeout: 30_000 }).toBeGreaterThan(timersLeft);
    clock.advance(CATALOG_ACKNOWLEDGE_DEADLINE_MS);
    expect((await adding).column("weight")).toBeDefined();
    goOn();
    expect(await writing).toEqual(["thing:slow"]);
    await impatient.close();
    kept();
  });

  test("that was begun by a controller which went away leaves the class as it was", async () => {
    const { kv } = await engine.tenant("matrix");
    const gone = new TenantCatalog({
      kv,
      runtime: { ...testRuntime(realClock), random: seededRandom(99) },
      owners: new Map(),
    });
    await gone.open();
    await gone.acknowledged(await gone.change((draft) => draft.markDropping(THING.path)));
    await expect(b.unrestricted.insert(admin, THING.path, [{ id: "new" }])).rejects.toMatchObject({
      code: "unavailable",
    });
    await gone.close();
    await expect
      .poll(() => b.unrestricted.insert(admin, THING.path, [{ id: "new" }]).catch(() => "refused"), { timeout: 30_000 })
      .toEqual(["thing:new"]);
    kept();
  });

  test("of an index is followed by readers before writers stop to keep it", async () => {
    const held = stores.hold("change");
    const writing = b.unrestricted.insert(admin, THING.path, [{ id: "slow", color: "green" }]);
    const { goOn } = await held;
    const dropping = a.alterClass(admin, THING.path, { kind: "drop index", name: "color" });
    await expect
      .poll(
        async () =>
          (
            await a.unrestricted.explain(admin, {
              class: THING.path,
              subtree: false,
              where: [{ kind: "equals", column: "color", values: ["red"] }],
            })
          ).used,
        {
          timeout: 30_000,
        },
      )
      .toEqual([]);
    // Another controller may still query by the index, so it holds what is written now.
    await a.unrestricted.insert(admin, THING.path, [{ id: "meanwhile", color: "green" }]);
    expect(await borneBy(`a${await columnNumber(THING.path, "color")}=green`)).toEqual(["meanwhile"]);
    goOn();
    await writing;
    expect((await dropping).column("color")?.indexed).toBe(false);
    kept();
  });
});

test("a word that is dropped by a controller which dies right then stays with another column that got it meanwhile", async () => {
  const path = "/matrix/note";
  const columns = [
    { name: "one", type: "text" as const },
    { name: "two", type: "text" as const },
  ];
  await a.createClass(admin, { path, columns, options: { keyMode: "manu", autosearch: true } });
  const longAgoMs = realClock.nowMs() - 60_000;
  await a.unrestricted.insert(admin, path, [{ id: "n", one: "disk" }], { atMs: longAgoMs });
  const behind = controller(engine, { ...realClock, nowMs: () => realClock.nowMs() - 5_000 });
  const dropping = stores.hold("change");
  const emptied = b.unrestricted.update(admin, { id: "note:n" }, [{ column: "one", operation: "set", value: "" }]);
  const drop = await dropping;
  await behind.unrestricted.update(admin, { id: "note:n" }, [{ column: "two", operation: "set", value: "disk" }]);
  const dying = stores.hold("trace");
  drop.goOn();
  const { goOn } = await dying;
  expect(await readAll({ class: path, where: [{ kind: "words", words: ["disk"] }] }, a)).toHaveLength(1);
  goOn();
  await emptied;
  await behind.close();
});

test("an upsert whose time was settled before loses to what is newer and to a removal, on whichever controller it comes again", async () => {
  const nowMs = realClock.nowMs();
  const upsert = {
    values: { id: "k", size: 1, color: "red" },
    timeMs: nowMs,
    identity: "s/1",
    writeUs: (nowMs - 10_000) * 1_000,
  };
  await a.unrestricted.ingest(admin, THING.path, [upsert]);
  await b.unrestricted.update(admin, { id: "thing:k" }, [{ column: "size", operation: "set", value: 2 }]);
  await a.unrestricted.ingest(admin, THING.path, [upsert]);
  expect(await b.unrestricted.get(admin, [{ id: "thing:k" }])).toMatchObject([{ values: { size: 2, color: "red" } }]);
  expect(await a.unrestricted.remove(admin, [{ id: "thing:k" }])).toBe(1);
  await b.unrestricted.ingest(admin, THING.path, [upsert]);
  expect(await b.unrestricted.get(admin, [{ id: "thing:k" }])).toEqual([undefined]);
  await b.unrestricted.insert(admin, THING.path, [{ id: "k" }]);
  expect((await a.unrestricted.get(admin, [{ id: "thing:k" }]))[0]?.values).toEqual({});
});
