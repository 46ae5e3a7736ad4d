import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Row } from "../../../../common/value.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import {
  ObjectService,
  type ClassSpec,
  type HistoryRange,
  type ObjectRow,
  type ObjectVersion,
  type ReadRequest,
} from "../index.ts";

const admin = testPrincipal();
const EDGES = ["contain", "link"];
const HOST: ClassSpec = {
  path: "/matrix/cmdb/host",
  columns: [
    { name: "name", type: "varchar" },
    { name: "size", type: "int" },
    { name: "tasks", type: "set", elements: ["varchar"] },
  ],
  keys: ["name"],
  indexes: ["size"],
  options: { version: true },
};

const GONE_WITHIN_MS = 20_000;

let engine: TestEngine;
let objects: ObjectService;
/** Time of the next write: they are a second apart, independent of the stores' own clocks. */
let nowMs: number;

beforeEach(async () => {
  engine = await openTestEngine();
  nowMs = realClock.nowMs() - 3_600_000;
  const runtime = { ...testRuntime({ ...realClock, nowMs: () => nowMs }), random: seededRandom(1) };
  objects = new ObjectService({ stores: engine, runtime });
  await objects.createClass(admin, HOST);
});

afterEach(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

/** A time after everything that was written, and before everything that will be. */
function moment(): number {
  nowMs += 1_000;
  return nowMs - 500;
}

async function readAll(request: Partial<ReadRequest>): Promise<ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of objects.read(admin, { class: HOST.path, subtree: false, ...request })) rows.push(...page);
  return rows.sort((a, b) => (a.id < b.id ? -1 : 1));
}

async function sizesAt(asOfMs: number, request: Partial<ReadRequest> = {}): Promise<Row> {
  return Object.fromEntries((await readAll({ asOfMs, ...request })).map((row) => [row.id, row.values.size ?? null]));
}

/** Ids of objects that are gone. */
async function removed(fromMs?: number): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of objects.removed(admin, HOST.path, fromMs === undefined ? {} : { fromMs }))
    ids.push(...page.map(({ id }) => id));
  return ids;
}

async function edgesAt(direction: "out" | "in", ids: readonly string[], asOfMs?: number): Promise<string[]> {
  const edges: string[] = [];
  const request = { direction, ...(asOfMs === undefined ? {} : { asOfMs }) };
  for await (const page of objects.edges(
    admin,
    ids.map((id) => ({ id })),
    request,
  ))
    edges.push(...page.map((edge) => `${edge.source} ${edge.type} ${edge.target}`));
  return edges.sort();
}

async function historyOf(id: string, range?: HistoryRange): Promise<ObjectVersion[]> {
  const versions: ObjectVersion[] = [];
  for await (const page of objects.history(admin, { id }, range)) versions.push(...page);
  return versions;
}

describe("versions of an object", () => {
  test("are all there, newest first, with its removal, until they are removed as well", async () => {
    await objects.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    const first = moment();
    await objects.update(admin, { id: "host:a" }, [{ column: "size", operation: "set", value: 2 }]);
    const second = moment();
    await objects.remove(admin, [{ id: "host:a" }]);
    expect((await historyOf("host:a")).map((version) => version.values)).toEqual([
      undefined,
      { name: "a", size: 2 },
      { name: "a", size: 1 },
    ]);
    expect((await historyOf("host:a", { fromMs: first, toMs: second })).map((version) => version.values?.size)).toEqual(
      [2],
    );
    expect(await historyOf("host:never")).toEqual([]);
    await objects.insert(admin, HOST.path, [{ name: "back" }]);
    await objects.remove(admin, [{ id: "host:back" }]);
    await objects.insert(admin, HOST.path, [{ name: "back" }]);
    expect(await removed()).toEqual(["host:a"]);
    expect(await removed(moment())).toEqual([]);
    await objects.remove(admin, [{ id: "host:a" }], { withVersions: true });
    expect(await historyOf("host:a")).toEqual([]);
    expect(await removed()).toEqual([]);
    expect(await sizesAt(first)).toEqual({});
  });

  test("are refused by name where a class keeps none", async () => {
    await objects.createClass(admin, { ...HOST, path: "/matrix/cmdb/rack", options: {} });
    await expect(objects.removed(admin, "/matrix/cmdb/rack")[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: "invalid",
    });
    await expect(historyOf("rack:r")).rejects.toMatchObject({
      code: "invalid",
      message: "[Valid] class /matrix/cmdb/rack keeps no versions of its objects.",
    });
  });
});

describe("a class at an earlier time", () => {
  test("has what was changed and removed since, and not what was made since", async () => {
    await objects.insert(
      admin,
      HOST.path,
      ["a", "b", "c", "d"].map((name, size) => ({ name, size })),
    );
    const before = moment();
    await objects.update(admin, { id: "host:b" }, [{ column: "size", operation: "set", value: 10 }]);
    await objects.remove(admin, [{ id: "host:c" }, { id: "host:d" }]);
    await objects.insert(admin, HOST.path, [{ name: "e", size: 4 }]);
    const between = moment();
    await objects.insert(admin, HOST.path, [{ name: "c", size: 20 }]);
    expect(await sizesAt(before)).toEqual({ "host:a": 0, "host:b": 1, "host:c": 2, "host:d": 3 });
    expect(await sizesAt(between)).toEqual({ "host:a": 0, "host:b": 10, "host:e": 4 });
    expect(await sizesAt(moment())).toEqual({ "host:a": 0, "host:b": 10, "host:c": 20, "host:e": 4 });
    expect(await sizesAt(before - 3_600_000)).toEqual({});
    const [a, b] = await readAll({ asOfMs: between });
    expect([a?.ctimeMs, a?.vtimeMs, b?.ctimeMs, b?.vtimeMs]).toEqual([
      before - 500,
      before - 500,
      before - 500,
      between - 500,
    ]);
  });

  test("is read whole by conditions on values, as those of now would hide those of then, and by ids without a scan", async () => {
    await objects.insert(admin, HOST.path, [
      { name: "a", size: 1 },
      { name: "b", size: 1 },
    ]);
    const before = moment();
    await objects.update(admin, { id: "host:b" }, [{ column: "size", operation: "set", value: 2 }]);
    await objects.remove(admin, [{ id: "host:a" }]);
    const where = [{ kind: "equals" as const, column: "size", values: [1] }];
    expect(await sizesAt(before, { where })).toEqual({ "host:a": 1, "host:b": 1 });
    expect(await sizesAt(before, { ids: ["host:a", "host:none"] })).toEqual({ "host:a": 1 });
    expect(await sizesAt(moment(), { ids: ["host:a", "host:b"] })).toEqual({ "host:b": 2 });
    const plan = await objects.explain(admin, {
      class: HOST.path,
      subtree: false,
      where,
      asOfMs: Date.UTC(2026, 0, 2),
    });
    expect(plan).toEqual({
      steps: [
        `scan of class ${HOST.path}, as of 2026-01-02T00:00:00.000Z`,
        "graves of objects removed since, as of 2026-01-02T00:00:00.000Z",
      ],
      used: [],
    });
  });

  test("is refused by name where one class of a tree, or that of an id, keeps no versions", async () => {
    await objects.createClass(admin, { path: `${HOST.path}/virtual`, columns: [], options: { version: true } });
    await objects.insert(admin, `${HOST.path}/virtual`, [{ name: "v", size: 7 }]);
    expect(await sizesAt(moment(), { subtree: true })).toEqual({ "virtual:v": 7 });
    await objects.createClass(admin, { path: `${HOST.path}/old`, columns: [], options: { version: false } });
    const refusal = { code: "invalid", details: { class: `${HOST.path}/old` } };
    await expect(sizesAt(moment(), { subtree: true })).rejects.toMatchObject(refusal);
    await expect(sizesAt(moment(), { subtree: true, ids: ["old:1"] })).rejects.toMatchObject(refusal);
    expect(await sizesAt(moment(), { subtree: true, ids: ["virtual:v"] })).toEqual({ "virtual:v": 7 });
    await objects.createClass(admin, { path: "/matrix/log", kind: "record", columns: [], options: { version: true } });
    await expect(readAll({ class: "/matrix/log", asOfMs: nowMs })).rejects.toMatchObject({
      code: "invalid",
      details: { class: "/matrix/log" },
    });
  });

  test("that began to keep versions later knows of earlier times only what has not changed since", async () => {
    await objects.createClass(admin, { ...HOST, path: "/matrix/cmdb/disk", options: {} });
    const request = { class: "/matrix/cmdb/disk" };
    await objects.insert(admin, request.class, [
      { name: "a", size: 1 },
      { name: "b", size: 1 },
    ]);
    const before = moment();
    await objects.alterClass(admin, request.class, { kind: "set options", options: { version: true } });
    await objects.update(admin, { id: "disk:b" }, [{ column: "size", operation: "set", value: 2 }]);
    expect(await sizesAt(before, request)).toEqual({ "disk:a": 1 });
    expect(await sizesAt(moment(), request)).toEqual({ "disk:a": 1, "disk:b": 2 });
  });

  test("has no values of columns that were dropped since", async () => {
    await objects.insert(admin, HOST.path, [{ name: "a", size: 1, tasks: ["x", "y"] }]);
    const before = moment();
    await objects.update(admin, { id: "host:a" }, [{ column: "tasks", operation: "take", value: ["x"] }]);
    expect((await readAll({ asOfMs: before }))[0]?.values).toEqual({ name: "a", size: 1, tasks: ["x", "y"] });
    await objects.alterClass(admin, HOST.path, { kind: "drop column", name: "tasks" });
    expect((await readAll({ asOfMs: before }))[0]?.values).toEqual({ name: "a", size: 1 });
  });
});

describe("edges at an earlier time", () => {
  test("are those that were dropped since or whose source was removed, seen from both ends, and none that were made since", async () => {
    await objects.createEdgeType(admin, { name: "contain", remedy: "" });
    await objects.insert(admin, HOST.path, [{ name: "t" }, { name: "u" }]);
    await objects.insert(admin, HOST.path, [
      { name: "a", contain: ["host:t", "host:u"] },
      { name: "b", contain: "host:t" },
    ]);
    const before = moment();
    await objects.update(admin, { id: "host:a" }, [{ column: "contain", operation: "set", value: "host:u" }]);
    await objects.remove(admin, [{ id: "host:b" }]);
    await objects.insert(admin, HOST.path, [{ name: "c", contain: "host:t" }]);
    const all = ["host:a", "host:b", "host:c", "host:t", "host:u"];
    const then = ["host:a contain host:t", "host:a contain host:u", "host:b contain host:t"];
    const now = ["host:a contain host:u", "host:c contain host:t"];
    expect([await edgesAt("out", all, before), await edgesAt("in", all, before)]).toEqual([then, then]);
    expect([await edgesAt("out", all, moment()), await edgesAt("in", all, moment())]).toEqual([now, now]);
    await objects.createClass(admin, {
      path: "/matrix/cmdb/rack",
      columns: [{ name: "name", type: "varchar" }],
      keys: ["name"],
    });
    await objects.insert(admin, "/matrix/cmdb/rack", [{ name: "r", contain: "host:t" }]);
    await objects.update(admin, { id: "host:u" }, [{ column: "contain", operation: "set", value: "rack:r" }]);
    expect([await edgesAt("out", all, moment()), await edgesAt("in", all, moment())]).toEqual([now, now]);
    await expect(edgesAt("out", ["rack:r"], before)).rejects.toMatchObject({
      code: "invalid",
      details: { class: "/matrix/cmdb/rack" },
    });
  });

  test("are there until their target is removed, and not when it is made again, whether it has versions still or not", async () => {
    await objects.createEdgeType(admin, { name: "contain", remedy: "" });
    await objects.insert(admin, HOST.path, [{ name: "t" }, { name: "u" }]);
    await objects.insert(admin, HOST.path, [
      { name: "a", contain: ["host:t", "host:u"] },
      { name: "b", contain: "host:t" },
    ]);
    const moments = [moment()];
    await objects.remove(admin, [{ id: "host:t" }]);
    moments.push(moment());
    await objects.insert(admin, HOST.path, [{ name: "t" }]);
    moments.push(moment());
    await objects.update(admin, { id: "host:a" }, [{ column: "contain", operation: "add", value: "host:t" }]);
    moments.push(moment());
    const [both, one, again] = [
      ["host:a contain host:t", "host:a contain host:u", "host:b contain host:t"],
      ["host:a contain host:u"],
      ["host:a contain host:t", "host:a contain host:u"],
    ];
    const seen = async (direction: "in" | "out") =>
      Promise.all(moments.map((atMs) => edgesAt(direction, ["host:a", "host:b", "host:t", "host:u"], atMs)));
    expect([await seen("out"), await seen("in")]).toEqual([
      [both, one, one, again],
      [both, one, one, again],
    ]);
    await objects.remove(admin, [{ id: "host:t" }], { withVersions: true });
    moments.push(moment());
    await objects.insert(admin, HOST.path, [{ name: "t" }]);
    moments.push(moment());
    expect([await seen("out"), await seen("in")]).toEqual([
      [one, one, one, one, one, one],
      [one, one, one, one, one, one],
    ]);
  });

  test("are forgotten with the versions of their source", async () => {
    await objects.createEdgeType(admin, { name: "contain", remedy: "" });
    await objects.insert(admin, HOST.path, [{ name: "t" }]);
    await objects.insert(admin, HOST.path, [{ name: "a", contain: "host:t" }]);
    const before = moment();
    await objects.remove(admin, [{ id: "host:a" }], { withVersions: true });
    expect(await edgesAt("in", ["host:t"], before)).toEqual([]);
    const { items } = await (await engine.tenant("matrix")).objects.scan({ limit: 1_000 });
    expect(items.filter(({ key }) => key.cid === 0)).toEqual([]);
  });
});

/** The rows and edges of five objects. */
async function everything(asOf: { readonly asOfMs?: number }): Promise<unknown> {
  const ids = NAMES.map((name) => `host:${name}`);
  const rows = (await readAll(asOf)).map(({ id, values, vtimeMs, ctimeMs }) => ({ id, values, vtimeMs, ctimeMs }));
  return [rows, await edgesAt("out", ids, asOf.asOfMs), await edgesAt("in", ids, asOf.asOfMs)];
}

const NAMES = ["a", "b", "c", "d", "e"];
const STEPS = onCluster ? 8 : 30;

/** 13: finds something as soon as nothing is kept of when a removal took an edge away. */
test.each(onCluster ? [1] : [1, 13])(
  "whatever is done, as of each moment there is what there was at that moment (seed %i)",
  async (seed) => {
    const { next } = seededRandom(seed);
    const pick = <T>(items: readonly T[]): T => items[Math.floor(next() * items.length)] as T;
    const target = () => `host:${pick(NAMES)}`;
    await objects.createEdgeType(admin, { name: "contain", remedy: "" });
    await objects.createEdgeType(admin, { name: "link", remedy: "" });
    const steps = [
      () =>
        objects.insert(admin, HOST.path, [
          {
            name: pick(NAMES),
            size: Math.floor(next() * 9),
            ...(next() < 0.5 ? { [pick(EDGES)]: [target(), target()] } : {}),
          },
        ]),
      () =>
        objects.update(admin, { id: target() }, [
          {
            column: pick(EDGES),
            operation: pick(["set", "add", "take"] as const),
            value: pick(["", target(), [target(), target()]]),
          },
        ]),
      () =>
        objects.update(admin, { id: target() }, [
          { column: "tasks", operation: pick(["set", "add", "take"] as const), value: [pick(NAMES)] },
        ]),
      () => objects.remove(admin, [{ id: target() }], { withVersions: false }),
    ];
    const told: { readonly atMs: number; readonly was: unknown }[] = [];
    for (let step = 0; step < STEPS; step++) {
      await pick(steps)();
      told.push({ atMs: moment(), was: await everything({}) });
    }
    for (const { atMs, was } of told) expect(await everything({ asOfMs: atMs })).toEqual(was);
  },
);

describe("a class that keeps versions for a time", () => {
  const MINUTE_MS = 60_000;
  const set = (value: number) => objects.update(admin, { id: "host:a" }, [{ column: "size", operation: "set", value }]);
  const sizes = async (id = "host:a") => (await historyOf(id)).map(({ values }) => values?.size);
  /** Waits until the store has removed the versions of an hour ago that have ended since. */
  const gone = (check: () => Promise<void>) => vi.waitFor(check, { timeout: GONE_WITHIN_MS });

  beforeEach(async () => {
    await objects.createEdgeType(admin, { name: "link", remedy: "" });
    await objects.alterClass(admin, HOST.path, { kind: "set options", options: { versionTtlSeconds: 60 } });
  });

  test("loses those that a later one superseded, and not the last one nor those that tell of edges", async () => {
    await objects.insert(admin, HOST.path, [
      { name: "a", size: 1 },
      { name: "b", size: 1 },
    ]);
    moment();
    await set(2);
    moment();
    await objects.update(admin, { id: "host:a" }, [{ column: "link", operation: "set", value: "host:b" }]);
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
    await objects.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    moment();
    await objects.remove(admin, [{ id: "host:a" }]);
    await gone(async () => expect([await sizes(), await removed()]).toEqual([[undefined], []]));
    expect(await sizesAt(moment(), { ids: ["host:a"] })).toEqual({});
    await objects.insert(admin, HOST.path, [{ name: "a", size: 2 }]);
    expect(await sizesAt(moment())).toEqual({ "host:a": 2 });
  });

  test("refuses what lies further back, for objects, edges and the plan, and says since when it has all", async () => {
    await objects.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    const asOfMs = moment();
    nowMs = asOfMs + MINUTE_MS;
    expect(await sizesAt(asOfMs)).toEqual({ "host:a": 1 });
    nowMs += 1;
    const refused = {
      code: "invalid",
      message: `[Valid] class ${HOST.path} has its earlier versions since ${new Date(asOfMs + 1).toISOString()} alone.`,
    };
    await expect(sizesAt(asOfMs)).rejects.toMatchObject(refused);
    await expect(readAll({ asOfMs, class: "/matrix/cmdb", subtree: true })).rejects.toMatchObject({ code: "invalid" });
    await expect(edgesAt("out", ["host:a"], asOfMs)).rejects.toMatchObject(refused);
    await expect(objects.explain(admin, { class: HOST.path, subtree: false, asOfMs })).rejects.toMatchObject(refused);
  });

  test("refuses what ended before the time was made longer, or the option was taken away", async () => {
    await objects.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    const before = moment();
    nowMs += 2 * MINUTE_MS;
    const changedMs = nowMs;
    await objects.alterClass(admin, HOST.path, { kind: "set options", options: { versionTtlSeconds: 3_600 } });
    await expect(sizesAt(before)).rejects.toMatchObject({ code: "invalid" });
    nowMs += 30 * MINUTE_MS;
    await expect(sizesAt(before)).rejects.toMatchObject({ code: "invalid" });
    expect(await sizesAt(changedMs + MINUTE_MS)).toEqual({ "host:a": 1 });
    await objects.alterClass(admin, HOST.path, { kind: "set options", options: { versionTtlSeconds: undefined } });
    nowMs += 120 * MINUTE_MS;
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
    await objects.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    const between = moment();
    await objects.update(admin, { id: "host:a" }, [{ column: "tasks", operation: "set", value: ["late"] }]);
    await objects.insert(admin, HOST.path, [{ name: "a", size: 5 }], { atMs: between });
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
    await objects.insert(admin, HOST.path, [{ name: "a", size: 1 }]);
    const living = moment();
    await objects.remove(admin, [{ id: "host:a" }]);
    await objects.insert(admin, HOST.path, [{ name: "a", size: 3 }], { atMs: early });
    expect(await sizesAt(early)).toEqual({ "host:a": 3 });
    expect(await sizesAt(living)).toEqual({ "host:a": 1 });
    expect(await sizesAt(moment())).toEqual({});
  });
});
