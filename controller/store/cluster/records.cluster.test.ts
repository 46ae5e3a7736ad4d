import { encodeTime } from "ulid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RECORD_SHARD_BYTES } from "../../../common/limits.ts";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../test/helpers/cluster.ts";
import { all, text, uniqueCid } from "../contract/harness.ts";
import type { ObjectStore, StoredRecord } from "../objects.ts";
import { Cassandra } from "./cassandra.ts";
import { lifeOf, livesLeft, RECORD_LIVES, shardsOf, SHARD_NUMBERS } from "./record-places.ts";
import { keyspaceOf } from "./schema.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TIME_DIGITS = 10;
const LARGE_BYTES = 512 * 1_024;
const MANY = 40;

describeCluster("records of an hour", () => {
  let engine: TestClusterEngine;
  let other: TestClusterEngine;
  let cassandra: Cassandra;
  let one: ObjectStore;
  let two: ObjectStore;
  /** The beginning of an hour, so that all of a test lies in one. */
  const startMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;

  beforeAll(async () => {
    engine = await openTestClusterEngine({ tenants: ["matrix"] });
    other = await openTestClusterEngine({ prefix: engine.prefix, tenants: [] });
    one = (await engine.tenant("matrix")).objects;
    two = (await other.tenant("matrix")).objects;
    const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = clusterSettings();
    cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
  });
  afterAll(async () => {
    await cassandra?.close();
    await other?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
  });

  const id = (n: number, atMs = startMs): string => encodeTime(atMs + n, TIME_DIGITS) + `${n * 97}`.padStart(16, "0");
  const record = (cid: number, n: number, value = `v${n}`, terms: readonly string[] = ["t"]): StoredRecord => ({
    ...{ cid, id: id(n), value: Buffer.from(value), terms },
  });
  const rows = async (table: string, cid: number): Promise<readonly { readonly [column: string]: unknown }[]> => {
    const query = `SELECT * FROM ${keyspaceOf(engine.prefix, "matrix")}.${table} WHERE cid = ? ALLOW FILTERING`;
    return cassandra.read({ query, params: [cid] }, cassandra.deadline());
  };
  const told = async (objects: ObjectStore, cid: number, terms: readonly string[] = []) => {
    const span = { cid, fromMs: startMs - HOUR_MS, toMs: startMs + 2 * HOUR_MS };
    const found = await all(7, (page) => objects.timeline({ ...span, terms }, page));
    let [count, cursor] = [0, undefined as string | undefined];
    do {
      const part = await objects.countRecords(span, cursor);
      [count, cursor] = [count + part.count, part.cursor];
    } while (cursor !== undefined);
    return { found: found.map(({ value }) => text(value.subarray(0, 20))), count };
  };
  /** More than an hour of one shard takes from one controller. */
  const filled = async (objects: ObjectStore, cid: number): Promise<void> => {
    for (let n = 0; n * LARGE_BYTES <= RECORD_SHARD_BYTES; n += 1)
      await objects.append([{ ...record(cid, 500 + n, undefined, ["large"]), value: Buffer.alloc(LARGE_BYTES, "l") }]);
  };

  test("much of it is spread over more shards; a replay of what was written before is told and counted once", async () => {
    const cid = uniqueCid();
    const early = Array.from({ length: MANY }, (_, n) => record(cid, n));
    await one.append(early);
    await filled(one, cid);
    const numbers = (await rows("record_hours", cid)).map(({ shards }) => shards);
    expect(numbers.sort()).toEqual([1, 2]);
    await one.append(early);
    await two.append(early);
    const stored = await rows("records_years", cid);
    const shards = new Set(stored.map(({ shard }) => shard));
    expect([...shards].sort()).toEqual([0, 1]);
    expect(stored.length, "some lie in both").toBeGreaterThan(MANY + RECORD_SHARD_BYTES / LARGE_BYTES + 1);
    for (const objects of [one, two]) {
      const { found, count } = await told(objects, cid, ["t"]);
      expect(found).toEqual(early.map(({ value }) => text(value)).reverse());
      expect(count).toBe(MANY + RECORD_SHARD_BYTES / LARGE_BYTES + 1);
      expect((await told(objects, cid)).found.slice(-MANY)).toEqual(found);
    }
    expect((await two.getRecords(early)).map((found) => text(found!.value))).toEqual(
      early.map(({ value }) => text(value)),
    );
  });

  test("records lie in the table of their life, and an hour is listed by the lives it has", async () => {
    const cid = uniqueCid();
    const ends = [DAY_MS, 30 * DAY_MS, 400 * DAY_MS].map((lengthMs) => startMs + lengthMs);
    await one.append([record(cid, 4), ...ends.map((expiresAtMs, n) => ({ ...record(cid, n), expiresAtMs }))]);
    const stored = await Promise.all(RECORD_LIVES.map(({ table }) => rows(table, cid)));
    expect(stored.map((some) => some.map((row) => row["id"]).sort())).toEqual([[id(0)], [id(1)], [id(2), id(4)]]);
    expect((await rows("record_hours", cid)).map(({ life, shards }) => [life, shards])).toEqual([
      [0, 1],
      [1, 1],
      [2, 1],
    ]);
    expect((await told(two, cid)).found).toEqual(["v4", "v2", "v1", "v0"]);
    expect((await told(two, cid)).count).toBe(4);
  });

  test("what was removed stays removed, also where it is repeated by another number of shards", async () => {
    const cid = uniqueCid();
    const early = Array.from({ length: MANY }, (_, n) => record(cid, n));
    await one.append(early);
    await one.removeRecords(early.slice(0, 30));
    await filled(one, cid);
    await one.append(early);
    const left = early.slice(30).map(({ value }) => text(value));
    expect((await told(two, cid, ["t"])).found).toEqual([...left].reverse());
    await two.removeRecords(early.slice(30));
    expect((await told(one, cid, ["t"])).found).toEqual([]);
    expect(await one.getRecords(early)).toEqual(early.map(() => undefined));
  });

  test("of different bytes under one id in two shards the same one stands for every reader, with the terms of both", async () => {
    const cid = uniqueCid();
    const first = Array.from({ length: MANY }, (_, n) => record(cid, n, `first ${n}`, ["a"]));
    const second = first.map((of, n): StoredRecord => ({ ...of, value: Buffer.from(`second ${n}`), terms: ["b"] }));
    await one.append(first);
    await filled(one, cid);
    await one.append(second);
    const standing = (await one.getRecords(first)).map((found) => text(found!.value));
    expect(new Set(standing.map((value) => value.split(" ")[0])).size, "both kinds stand somewhere").toBe(2);
    expect((await told(two, cid)).found.slice(-MANY)).toEqual([...standing].reverse());
    for (const term of ["a", "b"])
      expect(standing).toEqual(expect.arrayContaining([...(await told(two, cid, [term])).found]));
  });

  test("the next hour begins with the number that the last one came to, and a controller that starts takes it over", async () => {
    const cid = uniqueCid();
    await filled(one, cid);
    const next = { ...record(cid, 0), id: id(0, startMs + HOUR_MS) };
    await two.append([next]);
    const hours = await rows("record_hours", cid);
    expect(hours.filter(({ hour }) => hour === startMs / HOUR_MS + 1).map(({ shards }) => shards)).toEqual([2]);
    expect((await told(one, cid, ["t"])).found).toEqual([text(next.value)]);
  });
});

test("ids of one entry stay together for 32, and then go on in the next shard; random ones are spread evenly", () => {
  const prefix = `${encodeTime(0, TIME_DIGITS)}ABCDEFGHJKMN`;
  const counting = Array.from({ length: 128 }, (_, n) => `${prefix}0${encodeTime(n, 3).slice(-3)}`);
  const shards = counting.map((one) => shardsOf(one, [4])[0]!);
  for (let from = 0; from < 128; from += 32) expect(new Set(shards.slice(from, from + 32)).size).toBe(1);
  expect(new Set(shards).size).toBe(4);
  const random = Array.from(
    { length: 8_000 },
    (_, n) => prefix.slice(0, 10) + encodeTime((n * 7_919_993) % 2 ** 45, 16),
  );
  const counts = new Array<number>(8).fill(0);
  for (const one of random) counts[shardsOf(one, [8])[0]!]! += 1;
  expect(Math.min(...counts)).toBeGreaterThan(600);
  expect(shardsOf(prefix + "0000", SHARD_NUMBERS).length).toBeLessThanOrEqual(SHARD_NUMBERS.length);
});

test("a record that is too old for a life is removed from the tables of longer ones alone", () => {
  const [first, second] = RECORD_LIVES.map(({ longestMs }) => longestMs) as [number, number];
  const one = `${encodeTime(0, TIME_DIGITS)}ABCDEFGHJKMNPQRS`;
  expect([0, first, first + 2 * DAY_MS, second + 2 * DAY_MS].map((nowMs) => livesLeft(one, nowMs))).toEqual([
    [0, 1, 2],
    [0, 1, 2],
    [1, 2],
    [2],
  ]);
  expect([first, first + 1, second + 1, undefined].map((expiresAtMs) => lifeOf({ id: one, expiresAtMs }))).toEqual([
    0, 1, 2, 2,
  ]);
});
