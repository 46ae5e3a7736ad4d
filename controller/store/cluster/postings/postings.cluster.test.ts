import { afterAll, beforeAll, expect, test } from "vitest";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../../test/helpers/cluster/cluster.ts";
import { keepWarnings } from "../../../../test/helpers/cluster/cassandra-warnings.ts";
import { all } from "../../contract/harness.ts";
import type { EntityChange, EntityKey, ObjectStore } from "../../objects.ts";
import { Cassandra } from "../cassandra/cassandra.ts";
import { keyHash } from "./hashes.ts";
import { BucketLevels } from "./bucket-levels.ts";
import { keyspaceOf } from "../schema.ts";

const CID = 5;
/** The present: data derived from a late write gets the present time, and its successor does not remove it. */
const BASE_US = Date.now() * 1_000;

/** In one partition, a read could not pass so many without a warning. */
const LEAVING = 2_000;

/** Sample ids, which are one in 256: a few represent thousands. */
function samples(count: number): EntityKey[] {
  const keys: EntityKey[] = [];
  for (let n = 0; keys.length < count; n += 1) {
    const key = { cid: CID, id: `n${n}` };
    if (keyHash(key) % 256 === 0) keys.push(key);
  }
  return keys;
}

describeCluster("postings of a frequent term", () => {
  let engine: TestClusterEngine;
  let second: TestClusterEngine;
  let one: ObjectStore;
  let other: ObjectStore;
  let cassandra: Cassandra;
  beforeAll(async () => {
    engine = await openTestClusterEngine({ tenants: ["matrix"] });
    second = await openTestClusterEngine({ prefix: engine.prefix, tenants: [] });
    one = (await engine.tenant("matrix")).objects;
    other = (await second.tenant("matrix")).objects;
    const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = clusterSettings();
    cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
  });
  afterAll(async () => {
    await cassandra?.close();
    await second?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
  });

  const level = async (term: string): Promise<number> => {
    const levels = new BucketLevels({ cassandra, keyspace: keyspaceOf(engine.prefix, "matrix") });
    return (await levels.stored([term], cassandra.deadline())).get(term) ?? 0;
  };
  const birth = (key: EntityKey, term: string): EntityChange => ({
    key,
    timeUs: BASE_US,
    birth: true,
    addTerms: [term],
  });
  const found = async (objects: ObjectStore, terms: readonly string[], limit: number): Promise<readonly string[]> =>
    (await all(limit, (page) => objects.find({ terms }, page))).map(({ key }) => key.id).sort();

  test("are spread over more partitions as more ids come, and both controllers find and remove all of them", async () => {
    const term = "a1=frequent";
    const keys = samples(80);
    const others = Array.from({ length: 40 }, (_, n) => ({ cid: CID, id: `other ${n}` }));
    expect(await level(term)).toBe(0);
    for (const key of keys) await one.change([birth(key, term)]);
    const raised = await level(term);
    expect(raised).toBe(3);
    // The second controller does not know the new level: it writes at level 0, some of the keys for the second time.
    await other.change([...others, ...keys.slice(0, 20)].map((key) => ({ ...birth(key, term), timeUs: BASE_US + 1 })));
    const ids = [...keys, ...others].map(({ id }) => id).sort();
    for (const objects of [one, other])
      for (const limit of [3, 1_000]) expect(await found(objects, [term], limit)).toEqual(ids);
    const left = keys.slice(10, 60);
    await other.change(left.map((key) => ({ key, timeUs: BASE_US + 2, dropTerms: [term] })));
    const leftIds = new Set(left.map(({ id }) => id));
    for (const objects of [one, other])
      expect(await found(objects, [term], 7)).toEqual(ids.filter((id) => !leftIds.has(id)));
    expect(await level(term)).toBe(raised);
  });

  test("that many ids have left lie in the way of nobody, however far they are spread", async () => {
    const term = "a1=left";
    for (const key of samples(40)) await one.change([birth(key, term)]);
    expect(await level(term)).toBeGreaterThan(0);
    const warnings = keepWarnings();
    try {
      for (let from = 0; from < LEAVING; from += 100) {
        const keys = Array.from({ length: 100 }, (_, n) => ({ cid: CID, id: `leaves ${from + n}` }));
        await one.change(keys.map((key) => birth(key, term)));
        await one.change(keys.map((key) => ({ key, timeUs: BASE_US + 1, dropTerms: [term] })));
      }
      expect(await found(one, [term], 100)).toHaveLength(40);
    } finally {
      warnings.stop();
    }
    // Cassandra warns of a read that passes 1,000 tombstones.
    expect(warnings.take().filter((text) => text.includes("tombstone"))).toEqual([]);
  });

  test("do not rise by ids that come and go again and again", async () => {
    const term = "a1=flipping";
    const keys = samples(10);
    for (let flip = 0; flip < 6; flip += 1) {
      const timeUs = BASE_US + 10 + 2 * flip;
      await one.change(keys.map((key) => ({ ...birth(key, term), timeUs })));
      await one.change(keys.map((key) => ({ key, timeUs: timeUs + 1, dropTerms: [term] })));
    }
    expect(await level(term)).toBe(0);
    expect(await found(one, [term], 10)).toEqual([]);
  });

  test("narrow each other, and a rare term is not narrowed by a frequent one", async () => {
    const [frequent, half, rare] = ["a2=frequent", "a3=half", "a4=rare"];
    const keys = Array.from({ length: 600 }, (_, n) => ({ cid: 6, id: `k${n}` }));
    await one.change(
      keys.map((key, n) => ({
        ...birth(key, frequent),
        addTerms: [frequent, ...(n % 2 === 0 ? [half] : []), ...(n % 300 === 0 ? [rare] : [])],
      })),
    );
    const even = keys.filter((_, n) => n % 2 === 0).map(({ id }) => id);
    for (const limit of [11, 1_000]) expect(await found(one, [frequent, half], limit)).toEqual([...even].sort());
    expect(await found(one, [frequent, rare], 10)).toEqual(["k0", "k300"]);
    expect(await found(one, [frequent, "a4=none"], 10)).toEqual([]);
    const { terms } = await one.estimate({ terms: [frequent, rare, half] });
    expect(terms.map(({ term, isRead }) => [term, isRead])).toEqual([
      [rare, true],
      [half, false],
      [frequent, false],
    ]);
    let turn = 0;
    const pages = await all(17, (page) => [one, other][turn++ % 2]!.find({ terms: [frequent, half] }, page));
    expect(turn).toBeGreaterThan(2);
    expect(pages.map(({ key }) => key.id).sort()).toEqual([...even].sort());
  });
});
