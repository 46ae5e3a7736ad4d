import { beforeEach, describe, expect, test } from "vitest";
import { CHANGE_BATCH_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { ObjectStore } from "../../../store/objects.ts";
import { ObjectService, type ClassChange, type ClassSpec } from "../index.ts";
import {
  admin,
  BOX,
  objects,
  other,
  store,
  behind,
  watched,
  calls,
  stoppable,
  useWriters,
  held,
  found,
  equal,
  valuesOf,
  removedOnes,
  keyOf,
} from "../../../../test/helpers/objects/write-world.ts";

useWriters();

test("a word that two columns share stays found, though a controller whose clock is ahead drops it for one of them", async () => {
  const path = "/matrix/note";
  const columns = ["one", "two"].map((name) => ({ name, type: "text" as const }));
  await objects.createClass(admin, { path, columns, options: { keyMode: "manu", autosearch: true } });
  await objects.unrestricted.insert(admin, path, [{ id: "n", one: "disk" }]);
  const late = new ObjectService({
    stores: watched,
    runtime: { ...testRuntime(behind), random: seededRandom(3) },
  });
  await late.catalog(admin);
  const ref = { id: "note:n" };
  const changing = held("change");
  const adding = late.unrestricted.update(admin, ref, [{ column: "two", operation: "set", value: "disk" }]);
  await changing.arrived;
  for (const value of ["disk full", ""])
    await objects.unrestricted.update(admin, ref, [{ column: "one", operation: "set", value }]);
  changing.goOn();
  expect(await adding).toBe(true);
  expect((await valuesOf(ref.id))?.two).toBe("disk");
  expect(await found({ kind: "words", words: ["disk"] }, path)).toEqual([ref.id]);
  expect(await found({ kind: "words", words: ["full"] }, path)).toEqual([]);
  await late.close();
});

describe("a controller that wakes in the middle of a write", () => {
  const LINE: ClassSpec = { path: "/matrix/line", kind: "record", columns: [{ name: "text", type: "varchar" }] };

  beforeEach(async () => {
    await objects.createClass(admin, BOX);
    await objects.createClass(admin, LINE);
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "old" }]);
    await other.catalog(admin);
  });

  /** Before `call` it stands still for longer than its lease lasts, and `change` is made elsewhere. */
  async function across<T>(
    call: keyof ObjectStore,
    { path, change, write }: { readonly path: string; readonly change: ClassChange; write(): Promise<T> },
  ): Promise<T> {
    const asleep = held(call);
    const written = write();
    await asleep.arrived;
    await stoppable.stop();
    await other.alterClass(admin, path, change);
    asleep.goOn();
    stoppable.goOn();
    return written;
  }

  async function numberOf(path: string, name: string): Promise<number | undefined> {
    return (await other.catalog(admin)).get(path)?.column(name)?.number;
  }

  test("keeps the version of an object that its class asks for since", async () => {
    const change: ClassChange = { kind: "set options", options: { version: true } };
    const write = () =>
      objects.unrestricted.update(admin, { id: "box:old" }, [{ column: "size", operation: "set", value: 7 }]);
    expect(await across("change", { path: BOX.path, change, write })).toBe(true);
    const versions: Row[] = [];
    for await (const page of other.unrestricted.history(admin, { id: "box:old" }))
      versions.push(...page.map(({ values }) => values ?? {}));
    expect(versions).toMatchObject([{ name: "old", size: 7 }]);
  });

  test("gives a record what an index asks for that was made meanwhile", async () => {
    const change: ClassChange = { kind: "add index", name: "text" };
    const write = () => objects.unrestricted.insert(admin, LINE.path, [{ text: "x" }]);
    const [id = ""] = await across("append", { path: LINE.path, change, write });
    const cid = (await other.catalog(admin)).get(LINE.path)?.cid ?? 0;
    const [record] = await store.getRecords([{ cid, id: id.slice("line:".length) }]);
    expect(record?.terms).toEqual([`a${await numberOf(LINE.path, "text")}=x`]);
  });

  test("keeps the version of a removal that its class asks for since", async () => {
    const change: ClassChange = { kind: "set options", options: { version: true } };
    const write = () => objects.unrestricted.remove(admin, [{ id: "box:old" }]);
    expect(await across("change", { path: BOX.path, change, write })).toBe(1);
    expect(await removedOnes()).toEqual(["box:old"]);
  });
});

describe("what a write asks of the store", () => {
  const counted = async (work: () => Promise<unknown>): Promise<Record<string, number>> => {
    calls.splice(0);
    await work();
    const counts: Record<string, number> = {};
    for (const call of calls) counts[call] = (counts[call] ?? 0) + 1;
    return counts;
  };

  test("of words that no other write crosses is one change, of a full batch too", async () => {
    await objects.createClass(admin, { ...BOX, options: { autosearch: true } });
    const rows = Array.from({ length: CHANGE_BATCH_MAX }, (_, at) => ({ name: `n${at}`, note: "disk full" }));
    expect((await counted(() => objects.unrestricted.insert(admin, BOX.path, rows))).change).toBe(1);
    const full = [{ column: "note", operation: "set", value: "full again" }] as const;
    expect((await counted(() => objects.unrestricted.update(admin, { id: "box:n0" }, full))).change).toBe(2);
  });

  test("of records that are removed is their removal, a full batch at a time, and nothing of objects", async () => {
    const path = "/matrix/line";
    await objects.createClass(admin, { path, kind: "record", columns: [{ name: "text", type: "varchar" }] });
    const ids = await objects.unrestricted.insert(
      admin,
      path,
      Array.from({ length: CHANGE_BATCH_MAX }, () => ({ text: "x" })),
    );
    const refs = ids.map((id) => ({ id }));
    const counts = await counted(async () =>
      expect(await objects.unrestricted.remove(admin, refs)).toBe(CHANGE_BATCH_MAX),
    );
    expect(counts).toEqual({ getRecords: 1, edges: CHANGE_BATCH_MAX, removeRecords: 1 });
  });

  test("of records that are gone is a look for them, and nobody is told", async () => {
    const path = "/matrix/line";
    await objects.createClass(admin, { path, kind: "record", columns: [{ name: "text", type: "varchar" }] });
    const [id = ""] = await objects.unrestricted.insert(admin, path, [{ text: "x" }]);
    await objects.unrestricted.remove(admin, [{ id }]);
    const told: unknown[] = [];
    objects.unrestricted.onChange((changes) => told.push(changes));
    const counts = await counted(async () => expect(await objects.unrestricted.remove(admin, [{ id }])).toBe(0));
    expect([counts, told]).toEqual([{ getRecords: 1 }, []]);
  });
});

describe("edges of an object", () => {
  test("are replaced by a set, all of them, however many pages they are", async () => {
    await objects.createClass(admin, BOX);
    const names = Array.from({ length: OBJECT_PAGE_MAX + 1 }, (_, at) => `n${at}`);
    await objects.unrestricted.insert(
      admin,
      BOX.path,
      names.map((name) => ({ name })),
    );
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "hub", holds: names.map((name) => `box:${name}`) }]);
    await objects.unrestricted.update(admin, { id: "box:hub" }, [
      { column: "holds", operation: "set", value: "box:n0" },
    ]);
    const { items } = await store.edges(await keyOf("box:hub"), "out", { limit: 10 });
    expect(items.map(({ to }) => to.id)).toEqual(["n0"]);
  });
});

describe("an update that follows from what it reads", () => {
  const grown = (values: Row) => [{ column: "size", operation: "set", value: Number(values.size) + 1 }] as const;

  test("loses nothing of another controller, and writes nothing where there is nothing to change", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "a", size: 1 }]);
    await other.catalog(admin);
    const ref = { id: "box:a" };
    const both = [objects, other].map((by) =>
      by.unrestricted.update(admin, ref, [], { compute: ({ values }) => grown(values) }),
    );
    expect(await Promise.all(both)).toEqual([true, true]);
    expect(await valuesOf("box:a")).toMatchObject({ size: 3 });
    const written = calls.filter((call) => call === "change").length;
    expect(await objects.unrestricted.update(admin, ref, [], { compute: () => undefined })).toBe(false);
    expect(
      await objects.unrestricted.update(admin, { id: "box:none" }, [], { compute: ({ values }) => grown(values) }),
    ).toBe(false);
    expect(calls.filter((call) => call === "change")).toHaveLength(written);
  });
});

describe("what a source brings", () => {
  const path = "/matrix/free";
  const record = (x: number, more: object = {}) => ({
    values: { x },
    timeMs: realClock.nowMs(),
    identity: "s/1/0",
    ...more,
  });

  beforeEach(() =>
    objects.createClass(admin, { path, columns: [{ name: "x", type: "int" }], indexes: ["x"] }).then(() => undefined),
  );

  test("again under one identity is the same object: born once, found by its present value alone", async () => {
    const first = record(1);
    const [id = ""] = await objects.unrestricted.ingest(admin, path, [first]);
    const [born] = await objects.unrestricted.get(admin, [{ id }]);
    expect(await objects.unrestricted.ingest(admin, path, [{ ...first, values: { x: 2 } }])).toEqual([id]);
    expect(await objects.unrestricted.get(admin, [{ id }])).toMatchObject([
      { values: { x: 2 }, ctimeMs: born?.ctimeMs },
    ]);
    expect([await found(equal("x", 1), path), await found(equal("x", 2), path)]).toEqual([[], [id]]);
  });

  test("for the first time, and says so, is written without a look at what is there", async () => {
    await objects.unrestricted.ingest(admin, path, [record(1, { isNew: true })]);
    expect(calls).not.toContain("trace");
    await objects.unrestricted.ingest(admin, path, [record(1, { isNew: false })]);
    expect(calls).toContain("trace");
  });
});
