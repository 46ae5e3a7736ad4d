import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { encodeTime } from "ulid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { again, all, uniqueCid } from "../../controller/store/contract/harness.ts";
import type { ObjectStore, StoredRecord } from "../../controller/store/objects.ts";
import { Cassandra } from "../../controller/store/cluster/cassandra/cassandra.ts";
import { RECORD_LIVES } from "../../controller/store/cluster/records/places.ts";
import { keyspaceOf } from "../../controller/store/cluster/schema.ts";
import { clusterRuntime, openTestClusterEngine, type TestClusterEngine } from "../helpers/cluster/cluster.ts";
import { nodetool } from "../helpers/cluster/nodetool.ts";
import { openRing, type Ring } from "../helpers/cluster/ring.ts";

const CID = uniqueCid();
const SECOND_MS = 1_000;
const DAY_MS = 24 * 3_600 * SECOND_MS;
const LIVES = { moment: 5 * SECOND_MS, days: 2 * DAY_MS, months: 60 * DAY_MS, years: 400 * DAY_MS } as const;
const OF_EACH = 50;
const DEADLINE_MS = 120_000;
const TIME_DIGITS = 10;
const beganMs = Date.now();

let ring: Ring;
let engine: TestClusterEngine;
let cassandra: Cassandra;
let objects: ObjectStore;
let keyspace: string;
let appended = 0;

beforeAll(async () => {
  ring = await openRing();
  engine = await openTestClusterEngine({ tenants: ["matrix"], settings: ring.settings });
  keyspace = keyspaceOf(engine.prefix, "matrix");
  ({ objects } = await engine.tenant("matrix"));
  const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = ring.settings;
  cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
});
afterAll(async () => {
  await cassandra?.close();
  await engine?.[Symbol.asyncDispose]();
});

function append(lifeMs: number): Promise<void> {
  const nowMs = Date.now();
  const records = Array.from({ length: OF_EACH }, (): StoredRecord => {
    appended += 1;
    const id = encodeTime(nowMs, TIME_DIGITS) + String(appended).padStart(16, "0");
    return { cid: CID, id, value: Buffer.from(`record ${appended}`), terms: ["t"], expiresAtMs: nowMs + lifeMs };
  });
  return again(() => objects.append(records));
}

async function count(): Promise<number> {
  const span = { cid: CID, fromMs: beganMs - DAY_MS, toMs: beganMs + DAY_MS };
  return (await all(100, (page) => objects.timeline({ ...span, terms: [] }, page))).length;
}

/** Names of a table's files on the first node, after a flush of its memory. */
async function files(table: string): Promise<readonly string[]> {
  const at = ring.members.findIndex(({ name }) => name === "cassandra-1");
  const node = ring.members[at]!;
  if (node.kind !== "cassandra") throw new Error("cassandra-1 is no node of Cassandra.");
  await nodetool(node, ring.daemons[at]!, ["flush", keyspace, table]);
  const folders = await readdir(join(node.dir, "data", "data", keyspace));
  const folder = folders.find((name) => name.startsWith(`${table}-`)) ?? "";
  const names = await readdir(join(node.dir, "data", "data", keyspace, folder));
  return names.filter((name) => name.endsWith("-Data.db")).sort();
}

/** Removes the delay of ten days after the end of a file, and lets each new file trigger the check for expired ones. */
async function hurry(): Promise<void> {
  for (const { table, window } of RECORD_LIVES) {
    const query = "SELECT compaction FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";
    const [row] = await cassandra.read({ query, params: [keyspace, table] }, cassandra.deadline());
    const compaction = new Map(row?.compaction as ReadonlyMap<string, string>);
    expect(compaction.get("class")).toMatch(/TimeWindowCompactionStrategy$/);
    expect(compaction.get("compaction_window_unit")).toBe(window.unit);
    const options = [...compaction.set("expired_sstable_check_frequency_seconds", "0")];
    const map = options.map(([name, value]) => `'${name}': '${value}'`).join(", ");
    const alter = `ALTER TABLE ${keyspace}.${table} WITH gc_grace_seconds = 0 AND compaction = {${map}}`;
    await cassandra.write([{ query: alter, params: [] }], cassandra.deadline());
  }
}

test(
  "a file of records goes as a whole when all in it have ended, whatever lives longer beside them",
  async () => {
    await hurry();
    for (const lifeMs of [LIVES.moment, LIVES.months, LIVES.years]) await append(lifeMs);
    const of = (table: string): Promise<readonly string[]> => files(`records_${table}`);
    const [ending, months, years] = [await of("days"), await of("months"), await of("years")];
    expect([ending.length, months.length, years.length]).toEqual([1, 1, 1]);
    await expect.poll(count, { timeout: DEADLINE_MS }).toBe(2 * OF_EACH);
    // Cassandra checks for expired files when it writes one, and counts in whole seconds.
    const endedMs = Date.now() + 2 * SECOND_MS;
    await expect.poll(() => Date.now(), { timeout: DEADLINE_MS }).toBeGreaterThan(endedMs);
    await append(LIVES.days);
    await expect.poll(() => of("days"), { timeout: DEADLINE_MS }).not.toContain(ending[0]);
    const [left] = await of("days");
    expect(left, "of those that live on").toBeDefined();
    for (const lifeMs of [LIVES.months, LIVES.years]) await append(lifeMs);
    // Expired records did not cause a rewrite of the records beside them.
    expect((await of("days"))[0]).toBe(left);
    expect(await of("months")).toEqual(expect.arrayContaining([...months]));
    expect(await of("years")).toEqual(expect.arrayContaining([...years]));
    expect(await count()).toBe(5 * OF_EACH);
  },
  2 * DEADLINE_MS,
);
