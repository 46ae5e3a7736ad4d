import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { BUCKET_LEVEL_SETTLES_MS, EDGE_BUCKETS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../../test/helpers/cluster/cluster.ts";
import { keepWarnings } from "../../../../test/helpers/cluster/cassandra-warnings.ts";
import { all } from "../../contract/harness.ts";
import type { TenantStore } from "../../engine.ts";
import type { EdgeEnd, EntityKey, ObjectStore } from "../../objects.ts";
import { Cassandra } from "../cassandra/cassandra.ts";
import { edgeHash, edgesName, levelOfBucket, type EdgeSide } from "./places.ts";
import { edgeLevels } from "./rows.ts";
import { keyspaceOf } from "../schema.ts";

const CID = 11;
const TYPE = "to";
/** One in this many edges is a sample by which a level is counted. */
const SAMPLE = 256;
/** Enough samples for level 1: more than the buckets of level 0 are made for. */
const SAMPLES = 16 * EDGE_BUCKETS + 1;
/** More dropped edges in each of the first buckets than a read may pass without a warning. */
const DROPPED = 9_600;
const DROPPED_AT_ONCE = 200;
/** Page size of a scrub, far above the number of edges here. */
const ALL = 1_000;

describeCluster("edges of an object", () => {
  let engine: TestClusterEngine;
  let store: TenantStore;
  let second: TestClusterEngine;
  let other: ObjectStore;
  let cassandra: Cassandra;
  let keyspace: string;
  let hubs = 0;
  let hub: EntityKey;
  let aheadMs = 0;
  let lastUs = 0;
  const clock: Clock = { ...realClock, nowMs: () => realClock.nowMs() + aheadMs };
  const nextUs = (): number => (lastUs = Math.max(lastUs + 1, clock.nowMs() * 1_000));
  /** Later writes use the known levels. */
  const settle = (): void => void (aheadMs += 2 * BUCKET_LEVEL_SETTLES_MS);
  beforeAll(async () => {
    engine = await openTestClusterEngine({ tenants: ["matrix"], clock });
    store = await engine.tenant("matrix");
    second = await openTestClusterEngine({ tenants: [], prefix: engine.prefix, clock });
    other = (await second.tenant("matrix")).objects;
    keyspace = keyspaceOf(engine.prefix, "matrix");
    const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = clusterSettings();
    cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
  });
  afterAll(async () => {
    await cassandra?.close();
    await second?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    hub = { cid: CID, id: `hub-${hubs++}` };
    await store.objects.change([{ key: hub, timeUs: nextUs(), birth: true }]);
  });

  /** The first keys whose edges are samples at one side. */
  function samples(side: EdgeSide, count: number): readonly EntityKey[] {
    const keys: EntityKey[] = [];
    for (let n = 0; keys.length < count; n += 1) {
      const far = { cid: CID, id: `${hub.id}-${n}` };
      const placed = side === "out" ? { from: hub, edge: to(far) } : { from: far, edge: to(hub) };
      if (edgeHash(side, placed) % SAMPLE === 0) keys.push(far);
    }
    return keys;
  }
  const to = (key: EntityKey): EdgeEnd => ({ type: TYPE, to: key });
  const add = (objects: ObjectStore, from: EntityKey, edge: EdgeEnd & { readonly value?: Uint8Array }) =>
    objects.change([{ key: from, timeUs: nextUs(), birth: true, addEdges: [edge] }]);
  const drop = (objects: ObjectStore, from: EntityKey, edge: EdgeEnd) =>
    objects.change([{ key: from, timeUs: nextUs(), dropEdges: [edge] }]);
  const levelOf = async (side: EdgeSide, key: EntityKey): Promise<number> => {
    const name = edgesName(side, key);
    return (await edgeLevels({ cassandra, keyspace }).stored([name], cassandra.deadline())).get(name) ?? 0;
  };
  const idsOf = async (objects: ObjectStore, key: EntityKey, side: EdgeSide, limit = 50): Promise<readonly string[]> =>
    (await all(limit, (page) => objects.edges(key, side, page)))
      .map(({ from, to: target }) => (side === "out" ? target : from).id)
      .sort();
  const levelsOfRows = async (side: EdgeSide): Promise<readonly number[]> => {
    const where = side === "out" ? "id = ?" : "to_id = ?";
    const query = `SELECT bucket FROM ${keyspace}.edges_${side} WHERE ${where} ALLOW FILTERING`;
    const rows = await cassandra.read({ query, params: [hub.id] }, cassandra.deadline());
    return [...new Set(rows.map(({ bucket }) => levelOfBucket(Number(bucket))))].sort();
  };

  test.each(["out", "in"] as const)(
    "going %s are spread over more partitions as more of them come, and each is told once, whoever wrote it",
    async (side) => {
      const keys = samples(side, SAMPLES + 40);
      const write = (objects: ObjectStore, key: EntityKey): Promise<void> =>
        side === "out" ? add(objects, hub, to(key)) : add(objects, key, to(hub));
      for (const key of keys.slice(0, SAMPLES)) await write(store.objects, key);
      expect(await levelOf(side, hub)).toBe(1);
      settle();
      // The other controller does not know the new level yet.
      for (const [at, key] of keys.slice(SAMPLES).entries()) await write(at % 2 === 0 ? store.objects : other, key);
      // Set again at another level than before.
      for (const key of keys.slice(0, 10)) await write(store.objects, key);
      expect(await levelsOfRows(side)).toEqual([0, 1]);
      const ids = keys.map(({ id }) => id).sort();
      for (const limit of [7, 500]) expect(await idsOf(store.objects, hub, side, limit)).toEqual(ids);
      expect(await idsOf(other, hub, side)).toEqual(ids);
    },
  );

  test("that lie at several levels have their latest value, and are dropped from all", async () => {
    const keys = samples("out", SAMPLES);
    const [first = hub, next = hub] = keys;
    const value = (text: string): Uint8Array => Buffer.from(text);
    await add(store.objects, hub, { ...to(first), value: value("old") });
    await add(store.objects, hub, { ...to(next), value: value("old") });
    for (const key of keys.slice(2)) await add(store.objects, hub, to(key));
    settle();
    await add(store.objects, hub, { ...to(first), value: value("new") });
    const valueOf = async (id: string): Promise<string> => {
      const edges = await all(50, (page) => other.edges(hub, "out", page));
      return edges
        .filter((edge) => edge.to.id === id)
        .map((edge) => Buffer.from(edge.value ?? []).toString())
        .join();
    };
    expect([await valueOf(first.id), await valueOf(next.id)]).toEqual(["new", "old"]);
    expect(await idsOf(other, first, "in")).toEqual([hub.id]);
    await drop(other, hub, to(first));
    expect(await idsOf(store.objects, hub, "out")).not.toContain(first.id);
    expect(await idsOf(store.objects, first, "in")).toEqual([]);
    await store.objects.change([{ key: hub, timeUs: nextUs(), death: true }]);
    expect([await levelsOfRows("out"), await idsOf(store.objects, next, "in")]).toEqual([[], []]);
  });

  test("a write that arrives late is undone by a removal that came before it and is later", async () => {
    const [late = hub, ...keys] = samples("out", SAMPLES + 1);
    const lateUs = nextUs();
    await drop(store.objects, hub, to(late));
    for (const key of keys) await add(store.objects, hub, to(key));
    expect(await levelOf("out", hub)).toBe(1);
    settle();
    await store.objects.change([{ key: hub, timeUs: lateUs, addEdges: [to(late)] }]);
    expect(await idsOf(store.objects, hub, "out")).not.toContain(late.id);
  });

  test("that were dropped at several levels stay so whatever arrives later, until they are set again", async () => {
    const [first = hub, ...keys] = samples("out", SAMPLES + 1);
    await add(store.objects, hub, to(first));
    const between = nextUs();
    for (const key of keys) await add(store.objects, hub, to(key));
    settle();
    const recent = nextUs();
    await drop(other, hub, to(first));
    for (const timeUs of [between, recent]) {
      await store.objects.change([{ key: hub, timeUs, addEdges: [to(first)] }]);
      expect(await idsOf(other, hub, "out")).not.toContain(first.id);
      expect(await idsOf(other, first, "in")).toEqual([]);
    }
    await add(other, hub, to(first));
    for (const objects of [store.objects, other]) {
      expect(await idsOf(objects, hub, "out")).toEqual([first, ...keys].map(({ id }) => id).sort());
      expect(await idsOf(objects, first, "in")).toEqual([hub.id]);
    }
    settle();
    await add(store.objects, hub, to(first));
    expect(await idsOf(other, hub, "out", 5)).toEqual([first, ...keys].map(({ id }) => id).sort());
  });

  test("that were set for ever and then for a time end then, at whatever level they lie", async () => {
    const [first = hub, ...keys] = samples("out", SAMPLES + 1);
    await add(store.objects, hub, to(first));
    for (const key of keys) await add(store.objects, hub, to(key));
    settle();
    const expiresAtMs = clock.nowMs() + 1_500;
    await store.objects.change([{ key: hub, timeUs: nextUs(), expiresAtMs, addEdges: [to(first)] }]);
    await expect.poll(() => idsOf(other, hub, "out"), { timeout: 30_000 }).not.toContain(first.id);
    expect(await idsOf(other, hub, "out")).toHaveLength(keys.length);
  });

  test("that were dropped by the thousand lie in the way of nobody", async () => {
    for (const key of samples("out", SAMPLES)) await add(store.objects, hub, to(key));
    settle();
    const warnings = keepWarnings();
    try {
      for (let from = 0; from < DROPPED; from += DROPPED_AT_ONCE) {
        const edges = Array.from({ length: DROPPED_AT_ONCE }, (_, n) => to({ cid: CID, id: `gone ${from + n}` }));
        await store.objects.change([{ key: hub, timeUs: nextUs(), addEdges: edges }]);
        await store.objects.change([{ key: hub, timeUs: nextUs(), dropEdges: edges }]);
      }
      expect(await idsOf(store.objects, hub, "out", 500)).toHaveLength(SAMPLES);
    } finally {
      warnings.stop();
    }
    // Cassandra warns of a read that passes 1,000 tombstones.
    expect(warnings.take().filter((text) => text.includes("tombstone"))).toEqual([]);
  });

  test("are compared at both ends wherever they lie", async () => {
    const keys = samples("out", SAMPLES);
    for (const key of keys) await add(store.objects, hub, to(key));
    settle();
    const [again = hub, dropped = hub] = keys;
    await add(store.objects, hub, to(again));
    await drop(store.objects, hub, to(dropped));
    const beforeUs = nextUs();
    for (const end of ["source", "target"] as const) {
      let cursor: string | undefined;
      do {
        const page = await store.scrub.edges(end, { limit: ALL, beforeUs, ...(cursor !== undefined && { cursor }) });
        expect(page).toMatchObject({ missing: 0, superfluous: 0, examples: [] });
        cursor = page.cursor;
      } while (cursor !== undefined);
    }
  });
});
