import { ulid } from "ulid";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../../test/helpers/cluster/cluster.ts";
import type { ObjectStore, Page, PageRequest, TermsRequest } from "../../objects.ts";
import { Cassandra } from "../cassandra/cassandra.ts";
import { keyspaceOf } from "../schema.ts";
import type { Tables } from "../tables.ts";
import { WordTable } from "./words.ts";

const DAY_MS = 86_400_000;
/** So small that a few words need nested partitions. */
const SMALL = { partitionWords: 3, sampleOneIn: 2 };

type Lister = (request: TermsRequest, page: PageRequest) => Promise<Page<string> | undefined>;

async function listed(list: Lister, request: TermsRequest, limit = 7): Promise<string[]> {
  const found = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await list(request, { limit, ...(cursor === undefined ? {} : { cursor }) });
    if (page === undefined) throw new Error("no list");
    for (const term of page.items) found.add(term);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return [...found].sort();
}

describeCluster("the list of words", () => {
  let engine: TestClusterEngine;
  let objects: ObjectStore;
  let cassandra: Cassandra;
  let tables: Tables;
  let cid = 500;
  beforeAll(async () => {
    engine = await openTestClusterEngine({ tenants: ["matrix"] });
    objects = (await engine.tenant("matrix")).objects;
    const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = clusterSettings();
    cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
    tables = { cassandra, keyspace: keyspaceOf(engine.prefix, "matrix") };
  });
  afterAll(async () => {
    await cassandra?.close();
    await engine?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    cid += 1;
  });

  const rows = async (query: string): Promise<readonly Record<string, unknown>[]> =>
    cassandra.read({ query: query.replace("words", `${tables.keyspace}.words`), params: [] }, cassandra.deadline());

  test("is split where it grows, and two controllers that know of different splits find every word", async () => {
    const [one, other] = [new WordTable(tables, SMALL), new WordTable(tables, SMALL)];
    const words = Array.from({ length: 60 }, (_, n) => `w${["di", "dis", "磁", "\u{1f600}"][n % 4]}${n % 10}x${n}`);
    for (const [at, word] of words.entries())
      await (at % 3 === 0 ? other : one).add([word, words[at >> 1]!], { cid }, cassandra.deadline());
    const partitions = await rows(
      `SELECT word, writetime(present) AS time FROM words WHERE cid = ${cid} AND kind = 0 AND beginning = ''`,
    );
    expect(partitions.length).toBeGreaterThan(9);
    const third = new WordTable(tables, SMALL);
    for (const beginning of [
      "w",
      "wd",
      "wdis",
      "wdis1",
      "wdis1x2",
      "w磁",
      "w磁2",
      "w\u{1f600}",
      "wdis3x13",
      "wnever",
    ]) {
      const wanted = words.filter((word) => word.startsWith(beginning)).sort();
      for (const limit of [3, 1_000])
        expect([beginning, await listed(third.list.bind(third), { beginning, cid }, limit)]).toEqual([
          beginning,
          wanted,
        ]);
    }
  });

  test("is written once for each word, also of changes at the same time", async () => {
    const words = new WordTable(tables);
    const times = async () =>
      (
        await rows(
          `SELECT word, writetime(present) AS time, ttl(present) AS ttl FROM words WHERE cid = ${cid} AND kind = 1 AND beginning = ''`,
        )
      ).map((row) => `${String(row.word)} ${String(row.ttl)}`);
    const add = () => words.add(["wa", "wb", "a1=no", "c7"], { cid }, cassandra.deadline());
    await Promise.all([add(), add(), add()]);
    await add();
    expect(await times()).toEqual(["a null", "b null"]);
    // The writer does not notice rows that are removed directly, so it does not write them again.
    await cassandra.write([{ query: `TRUNCATE ${tables.keyspace}.words`, params: [] }], cassandra.deadline());
    await add();
    expect(await times()).toEqual([]);
    words.forget();
    await add();
    expect(await times()).toEqual(["a null", "b null"]);
  });

  test("of records goes with them, a day later, and the longest life counts", async () => {
    const nowMs = clusterRuntime.clock.nowMs();
    const value = new Uint8Array();
    const record = (word: string, days: number) => ({
      cid,
      id: ulid(nowMs),
      value,
      terms: [word],
      expiresAtMs: nowMs + days * DAY_MS,
    });
    await objects.append([record("wlong", 5), record("wshort", 1)]);
    await objects.append([record("wlong", 1)]);
    const found = await rows(
      `SELECT word, ttl(present) AS ttl FROM words WHERE cid = ${cid} AND kind = 1 AND beginning = ''`,
    );
    const days = found.map((row) => [row.word, Math.floor((Number(row.ttl) * 1_000) / DAY_MS)] as const);
    expect(days.map(([word]) => word)).toEqual(["long", "short"]);
    for (const [word, life] of days) expect(life).toBeGreaterThanOrEqual(word === "long" ? 5 : 1);
    for (const [word, life] of days) expect(life).toBeLessThanOrEqual(word === "long" ? 7 : 3);
    expect(await listed(objects.terms.bind(objects), { beginning: "wlo", cid })).toEqual(["wlong"]);
  });

  test("is not told of terms that are no words", async () => {
    expect(await objects.terms({ beginning: "a17=" }, { limit: 10 })).toBeUndefined();
  });
});
