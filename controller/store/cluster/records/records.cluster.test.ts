import { Client } from "cassandra-driver";
import { encodeTime } from "ulid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RECORD_SHARD_BYTES } from "../../../../common/limits.ts";
import {
  clusterRuntime,
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../../test/helpers/cluster/cluster.ts";
import { all, text, uniqueCid } from "../../contract/harness.ts";
import type { ObjectStore, StoredRecord } from "../../objects.ts";
import { Cassandra } from "../cassandra/cassandra.ts";
import { RECORD_LIVES, shardsOf, SHARD_NUMBERS } from "./places.ts";
import { keyspaceOf } from "../schema.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TIME_DIGITS = 10;
const LARGE_BYTES = 512 * 1_024;
const MANY = 40;
const TABLES = RECORD_LIVES.map(({ table }) => table);

type Ask = (this: Client, query: string | readonly { readonly query: string }[], ...args: unknown[]) => unknown;

describeCluster("records of an hour", () => {
  let engine: TestClusterEngine;
  let other: TestClusterEngine;
  let cassandra: Cassandra;
  let one: ObjectStore;
  let two: ObjectStore;
  /** The beginning of an hour, so that all records of a test are in one hour. */
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
  /** The tables of records that a call reads or writes, per request of the driver. */
  const askedBy = async (call: () => Promise<unknown>): Promise<readonly (readonly string[])[]> => {
    const prototype = Client.prototype as unknown as { execute: Ask; batch: Ask };
    const { execute, batch } = prototype;
    const asked: string[][] = [];
    const noting = (inner: Ask): Ask =>
      function (given, ...args) {
        const queries = typeof given === "string" ? [given] : given.map(({ query }) => query);
        const tables = TABLES.filter((table) => queries.some((query) => query.includes(`.${table} `)));
        if (tables.length > 0) asked.push(tables);
        return inner.call(this, given, ...args);
      };
    Object.assign(prototype, { execute: noting(execute), batch: noting(batch) });
    try {
      await call();
    } finally {
      Object.assign(prototype, { execute, batch });
    }
    return asked;
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
  /** Writes more than one controller may write into an hour with one shard. */
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

  test("records lie in the table for their lives, and only tables that an hour was written by are asked", async () => {
    const lives = [3 * DAY_MS, 100 * DAY_MS, 100 * DAY_MS + 1, undefined];
    for (const [at, table] of [TABLES[0], TABLES[1], TABLES[2], TABLES[2]].entries()) {
      const cid = uniqueCid();
      const lifeMs = lives[at];
      const written = [0, 1].map((n): StoredRecord => {
        return { ...record(cid, n), ...(lifeMs !== undefined && { expiresAtMs: startMs + n + lifeMs }) };
      });
      await one.append(written);
      for (const name of TABLES)
        expect((await rows(name, cid)).map(({ id: found }) => found).sort(), `${name}, ${lifeMs} ms`).toEqual(
          name === table ? written.map(({ id: given }) => given) : [],
        );
      const span = { cid, fromMs: startMs, toMs: startMs + HOUR_MS };
      for (const read of [
        () => two.timeline(span, { limit: 10 }),
        () => two.timeline({ ...span, terms: ["t"] }, { limit: 10 }),
        () => two.countRecords(span),
        () => two.getRecords([written[0]!]),
      ])
        expect(await askedBy(read), `${table} alone, and once`).toEqual([[table]]);
    }
  });

  test("each life of an hour has a number of shards of its own", async () => {
    const cid = uniqueCid();
    await filled(one, cid);
    const brief = { ...record(cid, 0), expiresAtMs: startMs + DAY_MS };
    await one.append([brief]);
    await one.append([{ ...record(cid, 0, undefined, ["more"]) }]);
    const listed = (await rows("record_hours", cid)).map(({ life, shards }) => [life, shards]);
    expect(listed).toEqual([
      [0, 1],
      [2, 1],
      [2, 2],
    ]);
    const many = 1 + Math.ceil((RECORD_SHARD_BYTES + 1) / LARGE_BYTES);
    const { found, count } = await told(two, cid);
    expect([found.length, count, found.at(-1)]).toEqual([many, many, text(brief.value)]);
    for (const term of brief.terms.concat("more")) expect((await told(two, cid, [term])).count).toBe(many);
    expect((await two.getRecords([brief]))[0]!.terms).toEqual(expect.arrayContaining(["t", "more"]));
  });

  test("a removal is one write for each shard, in the tables whose lives a record of that age may still have", async () => {
    for (const [days, tables] of [
      [0, TABLES],
      [3, TABLES],
      [5, TABLES.slice(1)],
      [100, TABLES.slice(1)],
      [102, TABLES.slice(2)],
    ] as const) {
      const doomed = { cid: uniqueCid(), id: id(3, startMs - days * DAY_MS) };
      const writes = await askedBy(() => one.removeRecords([doomed]));
      expect(writes, `${days} days`).toEqual(shardsOf(doomed.id, SHARD_NUMBERS).map(() => tables));
    }
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
