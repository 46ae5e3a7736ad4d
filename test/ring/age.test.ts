import { afterAll, beforeAll, expect, test } from "vitest";
import type { EntityChange, EntityKey, ObjectStore } from "../../controller/store/objects.ts";
import { again, all } from "../../controller/store/contract/harness.ts";
import { openTestClusterEngine, type TestClusterEngine } from "../helpers/cluster/cluster.ts";
import { openRing } from "../helpers/cluster/ring.ts";

/** Factor for the numbers of the short form; `npm run soak` sets it. */
const AGE = Number(process.env.ODP_TEST_AGE ?? 1);
/** More than an index query survives on a ring if an object's versions and edges share its partition. */
const VERSIONS = 1_600 * AGE;
const EDGES = 3_000 * AGE;
const BATCH = 100;
const BASE_US = Date.now() * 1_000;
const AGED: EntityKey = { cid: 9, id: "aged" };
const FRESH: EntityKey = { cid: 9, id: "fresh" };

let engine: TestClusterEngine;
let objects: ObjectStore;

beforeAll(async () => {
  const { settings } = await openRing();
  engine = await openTestClusterEngine({ tenants: ["matrix"], settings });
  ({ objects } = await engine.tenant("matrix"));
});
afterAll(async () => engine?.[Symbol.asyncDispose]());

async function changes(count: number, change: (n: number) => EntityChange): Promise<void> {
  for (let from = 0; from < count; from += BATCH)
    await again(() =>
      objects.change(Array.from({ length: Math.min(BATCH, count - from) }, (_, n) => change(from + n))),
    );
}

async function found(terms: readonly string[]): Promise<readonly string[]> {
  return (await all(100, (page) => objects.find({ terms }, page))).map(({ key }) => key.id).sort();
}

test("an object with thousands of versions and edges is found by class, value and range, and so are the others", async () => {
  for (const key of [AGED, FRESH])
    await again(() =>
      objects.change([{ key, timeUs: BASE_US, birth: true, addTerms: ["c9", "a1=value"], numbers: new Map([[1, 5]]) }]),
    );
  await changes(VERSIONS, (n) => ({ key: AGED, timeUs: BASE_US + 1 + n, version: Uint8Array.of(n % 256) }));
  await changes(EDGES, (n) => ({
    key: AGED,
    timeUs: BASE_US + VERSIONS + 1 + n,
    addEdges: [{ type: "to", to: { cid: 9, id: `t${n}` } }],
  }));
  for (const terms of [["c9"], ["a1=value"], ["c9", "a1=value"]]) expect(await found(terms)).toEqual(["aged", "fresh"]);
  const ranged = await all(10, (page) => objects.find({ terms: ["c9"], ranges: [{ slot: 1, from: 5, to: 5 }] }, page));
  expect(ranged.map(({ key }) => key.id).sort()).toEqual(["aged", "fresh"]);
  expect(await all(500, (page) => objects.history(AGED, {}, page))).toHaveLength(VERSIONS);
  expect(await all(500, (page) => objects.edges(AGED, "out", page))).toHaveLength(EDGES);
});
