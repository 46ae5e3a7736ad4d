import { afterAll, beforeAll, expect, test } from "vitest";
import { mapLimited } from "../../common/concurrency.ts";
import { BUCKET_LEVEL_SETTLES_MS, EDGE_BUCKETS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { again, all, bytes, seedOfRun, text, uniqueCid } from "../../controller/store/contract/harness.ts";
import type { EdgeEnd, EntityKey } from "../../controller/store/objects.ts";
import { Cassandra } from "../../controller/store/cluster/cassandra/cassandra.ts";
import { edgeHash, levelOfBucket, type EdgeSide } from "../../controller/store/cluster/edges/places.ts";
import { keyspaceOf } from "../../controller/store/cluster/schema.ts";
import { realClock, seededRandom } from "../helpers/time/clock.ts";
import { clusterRuntime, openTestClusterEngine, type TestClusterEngine } from "../helpers/cluster/cluster.ts";
import { mendRing, openRing, type Ring } from "../helpers/cluster/ring.ts";

const CID = uniqueCid();
const TYPE = "to";
/** Each level counts every 256th edge. */
const SAMPLE = 256;
/** More samples than the buckets of level 1 are made for. */
const FAR = 2 * 16 * EDGE_BUCKETS + 20;
const WRITERS = 4;
const CHANGES_PER_CALL = 5;
const CALLS_PER_PHASE = 15;
const PHASE_WAIT_MS = 240_000;
const DEADLINE_MS = 1_200_000;
const SCRUBBED_PER_PAGE = 500;
const HUB: EntityKey = { cid: CID, id: "hub" };
const SIDES = ["out", "in"] as const;

let ring: Ring;
let controllers: TestClusterEngine[];
let cassandra: Cassandra;
let keyspace: string;
let aheadMs = 0;
let lastUs = 0;
const clock: Clock = { ...realClock, nowMs: () => realClock.nowMs() + aheadMs };
/** From now on, writes use the known bucket levels. */
const settle = (): void => void (aheadMs += 2 * BUCKET_LEVEL_SETTLES_MS);
const nextUs = (): number => (lastUs = Math.max(lastUs + 1, clock.nowMs() * 1_000));

beforeAll(async () => {
  ring = await openRing();
  const { settings } = ring;
  const first = await openTestClusterEngine({ tenants: ["matrix"], settings, clock });
  controllers = [first, await openTestClusterEngine({ prefix: first.prefix, tenants: [], settings, clock })];
  keyspace = keyspaceOf(first.prefix, "matrix");
  const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = settings;
  cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
});
afterAll(async () => {
  if (ring !== undefined) await mendRing(ring);
  await cassandra?.close();
  for (const engine of [...(controllers ?? [])].reverse()) await engine[Symbol.asyncDispose]();
});

const storeOf = (controller: number) => controllers[controller % controllers.length]!.tenant("matrix");

/** The edge from the hub to a far object, or from the far object to the hub. */
function placed(side: EdgeSide, far: EntityKey): { readonly from: EntityKey; readonly edge: EdgeEnd } {
  return side === "out" ? { from: HUB, edge: { type: TYPE, to: far } } : { from: far, edge: { type: TYPE, to: HUB } };
}

/** Keys whose edges count for the level of that side. */
function farsOf(side: EdgeSide): readonly EntityKey[] {
  const keys: EntityKey[] = [];
  for (let n = 0; keys.length < FAR; n += 1) {
    const key = { cid: CID, id: `${side}-${n}` };
    if (edgeHash(side, placed(side, key)) % SAMPLE === 0) keys.push(key);
  }
  return keys;
}

const FARS = { out: farsOf("out"), in: farsOf("in") };

/** The value of each existing edge, by the id of its far end. */
const known = { out: new Map<string, string>(), in: new Map<string, string>() };

async function change(writer: number, side: EdgeSide, keys: readonly EntityKey[], drops: readonly boolean[]) {
  const values = keys.map((_, at) => (drops[at] ? undefined : `${side} ${nextUs()}`));
  const { objects } = await storeOf(writer);
  const changes = keys.map((far, at) => {
    const { from, edge } = placed(side, far);
    const value = values[at];
    const timeUs = nextUs();
    return value === undefined
      ? { key: from, timeUs, dropEdges: [edge] }
      : { key: from, timeUs, addEdges: [{ ...edge, value: bytes(value) }] };
  });
  await again(() => objects.change(changes));
  for (const [at, { id }] of keys.entries()) {
    const value = values[at];
    if (value === undefined) known[side].delete(id);
    else known[side].set(id, value);
  }
}

/** Each writer has its own far objects, and sets or removes some of their edges each time. */
async function churn(writer: number, until: () => boolean, counts: number[]): Promise<void> {
  const random = seededRandom(seed + writer);
  const side = SIDES[writer % 2]!;
  const own = FARS[side].filter((_, at) => at % 2 === Math.floor(writer / 2));
  while (!until()) {
    const start = Math.floor(random.next() * own.length);
    const keys = own.slice(start, start + CHANGES_PER_CALL);
    await change(
      writer,
      side,
      keys,
      keys.map(() => random.next() < 0.4),
    );
    counts[writer]! += 1;
  }
}

/** Every edge must be returned once, with its last value, from both ends and by the comparison of both ends. */
async function agree(): Promise<void> {
  const { objects, scrub } = await storeOf(1);
  for (const side of SIDES) {
    const edges = await all(50, (page) => objects.edges(HUB, side, page));
    const told = edges.map(({ from, to, value }) => [(side === "out" ? to : from).id, text(value!)] as const);
    expect(told.length, side).toBe(new Map(told).size);
    expect(new Map([...told].sort()), side).toEqual(new Map([...known[side]].sort()));
    const other = side === "out" ? "in" : "out";
    const ends = await mapLimited(FARS[side], 16, async (far) => {
      const found = await again(() => objects.edges(far, other, { limit: 10 }));
      return found.items.length;
    });
    expect(ends, side).toEqual(FARS[side].map(({ id }) => (known[side].has(id) ? 1 : 0)));
  }
  for (const end of ["source", "target"] as const)
    for (let cursor: string | undefined, isLast = false; !isLast; isLast = cursor === undefined) {
      const page = { limit: SCRUBBED_PER_PAGE, beforeUs: nextUs(), ...(cursor !== undefined && { cursor }) };
      const compared = await again(() => scrub.edges(end, page));
      expect(compared, end).toMatchObject({ missing: 0, superfluous: 0, examples: [] });
      ({ cursor } = compared);
    }
}

async function levels(side: EdgeSide): Promise<readonly number[]> {
  const query = `SELECT bucket FROM ${keyspace}.edges_${side} WHERE ${side === "out" ? "id" : "to_id"} = ? ALLOW FILTERING`;
  const rows = await cassandra.read({ query, params: [HUB.id] }, cassandra.deadline());
  return [...new Set(rows.map(({ bucket }) => levelOfBucket(Number(bucket))))].sort();
}

const seed = seedOfRun("edges");

test(
  "edges at several levels are told once, with their last value, from both ends, after nodes were lost while they were set and dropped",
  async () => {
    const { objects } = await storeOf(0);
    const births = [HUB, ...FARS.out, ...FARS.in].map((key) => ({ key, timeUs: nextUs(), birth: true as const }));
    for (let from = 0; from < births.length; from += 100)
      await again(() => objects.change(births.slice(from, from + 100)));
    const add = async (from: number, to: number): Promise<void> => {
      for (const side of SIDES)
        for (let at = from; at < to; at += CHANGES_PER_CALL) {
          const keys = FARS[side].slice(at, Math.min(to, at + CHANGES_PER_CALL));
          await change(
            at,
            side,
            keys,
            keys.map(() => false),
          );
        }
    };
    await add(0, FAR / 2);
    settle();
    const counts = new Array<number>(WRITERS).fill(0);
    let ended = false;
    const work = Promise.all(Array.from({ length: WRITERS }, (_, writer) => churn(writer, () => ended, counts)));
    const failed = work.then(
      () => undefined,
      (error: unknown) => error,
    );
    const goOn = async (): Promise<void> => {
      const before = [...counts];
      await expect
        .poll(() => Math.min(...counts.map((count, at) => count - before[at]!)), { timeout: PHASE_WAIT_MS })
        .toBeGreaterThanOrEqual(CALLS_PER_PHASE);
    };
    try {
      await goOn();
      await ring.kill("cassandra-2");
      await goOn();
      await mendRing(ring);
      settle();
      await ring.pause("cassandra-3");
      await goOn();
      await mendRing(ring);
      await goOn();
    } finally {
      ended = true;
    }
    expect(await failed).toBeUndefined();
    await add(0, FAR);
    settle();
    await add(0, 40);
    for (const side of SIDES) expect(await levels(side), side).toEqual([0, 1, 2]);
    await agree();
    await ring.kill("cassandra-1");
    await agree();
  },
  DEADLINE_MS,
);
