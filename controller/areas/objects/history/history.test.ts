import { beforeEach, describe, expect, test, vi } from "vitest";
import type { HistoryRange, ObjectVersion } from "../index.ts";
import {
  admin,
  HOST,
  objects,
  nowMs,
  useHistory,
  setNow,
  moment,
  readAll,
  sizesAt,
  edgesAt,
} from "../../../../test/helpers/objects/history-world.ts";

useHistory();

const GONE_WITHIN_MS = 20_000;

/** Ids of objects that are gone. */
async function removed(fromMs?: number): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of objects.unrestricted.removed(admin, HOST.path, fromMs === undefined ? {} : { fromMs }))
    ids.push(...page.map(({ id }) => id));
  return ids;
}

async function historyOf(id: string, range?: HistoryRange): Promise<ObjectVersion[]> {
  const versions: ObjectVersion[] = [];
  for await (const page of objects.unrestricted.history(admin, { id }, range)) versions.push(...page);
  return versions;
}

describe("versions of an object", () => {
  test("are all there, newest first, with its removal, until they are removed as well", async () => {
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    const first = moment();
    await objects.unrestricted.update(admin, { id: "host:a" }, [{ column: "size", operation: "set", value: 2 }]);
    const second = moment();
    await objects.unrestricted.remove(admin, [{ id: "host:a" }]);
    expect((await historyOf("host:a")).map((version) => version.values)).toEqual([
      undefined,
      { name: "a", size: 2 },
      { name: "a", size: 1 },
    ]);
    expect((await historyOf("host:a", { fromMs: first, toMs: second })).map((version) => version.values?.size)).toEqual(
      [2],
    );
    expect(await historyOf("host:never")).toEqual([]);
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "back" }]);
    await objects.unrestricted.remove(admin, [{ id: "host:back" }]);
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "back" }]);
    expect(await removed()).toEqual(["host:a"]);
    expect(await removed(moment())).toEqual([]);
    await objects.unrestricted.remove(admin, [{ id: "host:a" }], { withVersions: true });
    expect(await historyOf("host:a")).toEqual([]);
    expect(await removed()).toEqual([]);
    expect(await sizesAt(first)).toEqual({});
  });

  test("are refused by name where a class keeps none", async () => {
    await objects.createClass(admin, { ...HOST, path: "/matrix/cmdb/rack", options: {} });
    await expect(
      objects.unrestricted.removed(admin, "/matrix/cmdb/rack")[Symbol.asyncIterator]().next(),
    ).rejects.toMatchObject({
      code: "invalid",
    });
    await expect(historyOf("rack:r")).rejects.toMatchObject({
      code: "invalid",
      message: "[Valid] class /matrix/cmdb/rack keeps no versions of its objects.",
    });
  });
});

describe("a class that keeps versions for a time", () => {
  const MINUTE_MS = 60_000;
  const set = (value: number) =>
    objects.unrestricted.update(admin, { id: "host:a" }, [{ column: "size", operation: "set", value }]);
  const sizes = async (id = "host:a") => (await historyOf(id)).map(({ values }) => values?.size);
  /** Waits until the store has removed the versions of an hour ago that have ended since. */
  const gone = (check: () => Promise<void>) => vi.waitFor(check, { timeout: GONE_WITHIN_MS });

  beforeEach(async () => {
    await objects.createEdgeType(admin, { name: "link", remedy: "" });
    await objects.alterClass(admin, HOST.path, { kind: "set options", options: { versionTtlSeconds: 60 } });
  });

  test("loses those that a later one superseded, and not the last one nor those that tell of edges", async () => {
    await objects.unrestricted.insert(admin, HOST.path, [
      { name: "a", size: 1 },
      { name: "b", size: 1 },
    ]);
    moment();
    await set(2);
    moment();
    await objects.unrestricted.update(admin, { id: "host:a" }, [{ column: "link", operation: "set", value: "host:b" }]);
    moment();
    await set(4);
    moment();
    await set(5);
    await gone(async () => expect(await sizes()).toEqual([5, 2]));
    expect(await sizes("host:b")).toEqual([1]);
    expect(await sizesAt(moment())).toEqual({ "host:a": 5, "host:b": 1 });
    expect(await edgesAt("out", ["host:a"], moment())).toEqual(["host:a link host:b"]);
  });

  test("forgets that an object was removed, but not what it was until then", async () => {
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    moment();
    await objects.unrestricted.remove(admin, [{ id: "host:a" }]);
    await gone(async () => expect([await sizes(), await removed()]).toEqual([[undefined], []]));
    expect(await sizesAt(moment(), { ids: ["host:a"] })).toEqual({});
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 2 }]);
    expect(await sizesAt(moment())).toEqual({ "host:a": 2 });
  });

  test("refuses what lies further back, for objects, edges and the plan, and says since when it has all", async () => {
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    const asOfMs = moment();
    setNow(asOfMs + MINUTE_MS);
    expect(await sizesAt(asOfMs)).toEqual({ "host:a": 1 });
    setNow(nowMs + 1);
    const refused = {
      code: "invalid",
      message: `[Valid] class ${HOST.path} has its earlier versions since ${new Date(asOfMs + 1).toISOString()} alone.`,
    };
    await expect(sizesAt(asOfMs)).rejects.toMatchObject(refused);
    await expect(readAll({ asOfMs, class: "/matrix/cmdb", subtree: true })).rejects.toMatchObject({ code: "invalid" });
    await expect(edgesAt("out", ["host:a"], asOfMs)).rejects.toMatchObject(refused);
    await expect(
      objects.unrestricted.explain(admin, { class: HOST.path, subtree: false, asOfMs }),
    ).rejects.toMatchObject(refused);
  });

  test("refuses what ended before the time was made longer, or the option was taken away", async () => {
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    const before = moment();
    setNow(nowMs + 2 * MINUTE_MS);
    const changedMs = nowMs;
    await objects.alterClass(admin, HOST.path, { kind: "set options", options: { versionTtlSeconds: 3_600 } });
    await expect(sizesAt(before)).rejects.toMatchObject({ code: "invalid" });
    setNow(nowMs + 30 * MINUTE_MS);
    await expect(sizesAt(before)).rejects.toMatchObject({ code: "invalid" });
    expect(await sizesAt(changedMs + MINUTE_MS)).toEqual({ "host:a": 1 });
    await objects.alterClass(admin, HOST.path, { kind: "set options", options: { versionTtlSeconds: undefined } });
    setNow(nowMs + 120 * MINUTE_MS);
    expect(await sizesAt(changedMs + 35 * MINUTE_MS)).toEqual({ "host:a": 1 });
    await expect(sizesAt(before)).rejects.toMatchObject({ code: "invalid" });
  });

  test("takes a minute at least", async () => {
    const options = { versionTtlSeconds: 59 };
    await expect(objects.alterClass(admin, HOST.path, { kind: "set options", options })).rejects.toMatchObject({
      code: "invalid",
      message: "[Valid] versionttl is a number of seconds from 60.",
    });
  });
});

describe("a version written at a time of its own", () => {
  test("lies in the history at that time, holds nothing of later ones, and leaves those as they were", async () => {
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    const between = moment();
    await objects.unrestricted.update(admin, { id: "host:a" }, [
      { column: "tasks", operation: "set", value: ["late"] },
    ]);
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 5 }], { atMs: between });
    expect((await historyOf("host:a")).map((version) => version.values)).toEqual([
      { name: "a", size: 1, tasks: ["late"] },
      { name: "a", size: 5 },
      { name: "a", size: 1 },
    ]);
    expect(await sizesAt(between)).toEqual({ "host:a": 5 });
    // Current values are made of cells, each with the time of its own last write.
    expect(await sizesAt(moment())).toEqual({ "host:a": 5 });
  });

  test("and before the object was inserted, or after it was removed, is known of that time alone", async () => {
    const early = moment();
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    const living = moment();
    await objects.unrestricted.remove(admin, [{ id: "host:a" }]);
    await objects.unrestricted.insert(admin, HOST.path, [{ name: "a", size: 3 }], { atMs: early });
    expect(await sizesAt(early)).toEqual({ "host:a": 3 });
    expect(await sizesAt(living)).toEqual({ "host:a": 1 });
    expect(await sizesAt(moment())).toEqual({});
  });
});
