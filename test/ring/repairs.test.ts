import { afterAll, beforeAll, expect, test } from "vitest";
import { mapLimited } from "../../common/concurrency.ts";
import { REPAIRS_PER_READ } from "../../common/limits.ts";
import { Cassandra } from "../../controller/store/cluster/cassandra/cassandra.ts";
import { again } from "../../controller/store/contract/harness.ts";
import type { TableRepair } from "../../controller/store/scrub.ts";
import { clusterRuntime, openTestClusterEngine, type TestClusterEngine } from "../helpers/cluster/cluster.ts";
import { nodetool } from "../helpers/cluster/nodetool.ts";
import { mendRing, openRing, type Ring } from "../helpers/cluster/ring.ts";

const AT_ONCE = 32;

let ring: Ring;
let engine: TestClusterEngine;

beforeAll(async () => {
  ring = await openRing();
  engine = await openTestClusterEngine({ tenants: ["matrix"], settings: ring.settings });
});
afterAll(async () => engine?.[Symbol.asyncDispose]());

/** Repeats the call until a node that was just lost is recognised as lost. */
async function repairs(): Promise<readonly TableRepair[]> {
  const { scrub } = await engine.tenant("matrix");
  return again(() => scrub.repairs());
}

async function repair(name: string, ...words: readonly string[]): Promise<void> {
  const at = ring.members.findIndex((member) => member.name === name);
  const member = ring.members[at]!;
  if (member.kind !== "cassandra") throw new Error(`${name} is no node of Cassandra.`);
  await nodetool(member, ring.daemons[at]!, ["repair", ...words, `${engine.prefix}_matrix`]);
}

test("a table counts as repaired when nodetool has repaired it on every node, since the first of these repairs", async () => {
  const never = await repairs();
  expect(never.map(({ table }) => table)).toEqual(
    expect.arrayContaining(["present", "postings", "edges_out", "edges_in", "records_days", "contents"]),
  );
  expect(never.filter(({ repairedMs }) => repairedMs !== undefined)).toEqual([]);
  expect(never.filter(({ isDerived }) => isDerived).map(({ table }) => table)).toEqual(["edges_in", "postings"]);

  const [first = "", ...others] = nodes();
  const last = others.pop() ?? "";
  const beganMs = Date.now();
  await repair(first, "--full", "-pr");
  const firstMs = Date.now();
  for (const name of others) await repair(name, "--full", "-pr");
  // A preview, or a repair that leaves a node out, does not synchronise the data.
  await repair(last, "--full", "-pr", "--preview");
  const [left = "", ...kept] = others;
  const hosts = [first, ...kept, last].flatMap((name) => ["-hosts", addressOf(name)]);
  expect(hosts).not.toContain(addressOf(left));
  await repair(last, "--full", ...hosts);
  expect((await repairs()).filter(({ repairedMs }) => repairedMs !== undefined)).toEqual([]);

  await repair(last, "--full", "-pr");
  const times = (await repairs()).map(({ repairedMs }) => repairedMs ?? 0);
  expect(times).toHaveLength(never.length);
  expect(Math.min(...times)).toBeGreaterThanOrEqual(beganMs - 1_000);
  expect(Math.max(...times)).toBeLessThanOrEqual(firstMs);
});

test("what was repaired is told while a node is away, and a repair that does not reach it does not count", async () => {
  for (const name of nodes()) await repair(name, "--full", "-pr");
  const before = await repairs();
  expect(before.filter(({ repairedMs }) => repairedMs === undefined)).toEqual([]);
  await ring.kill("cassandra-3");
  try {
    expect(await repairs()).toEqual(before);
    for (const name of ["cassandra-1", "cassandra-2"])
      await expect(repair(name, "--full")).rejects.toThrow(/Repair command #\d+ failed with error/);
    expect(await repairs()).toEqual(before);
  } finally {
    await mendRing(ring);
  }
});

test("repairs in as many pieces as fill several pages count together", async () => {
  const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = ring.settings;
  const cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
  // Later than the earlier nodetool repairs.
  const beganMs = Date.now() + 3_600_000;
  const pieces = 2 * REPAIRS_PER_READ + 1;
  const width = 2n ** 64n / BigInt(pieces);
  try {
    const tables = (await repairs()).map(({ table }) => table);
    await mapLimited([...Array(pieces).keys()], AT_ONCE, (at) => {
      const after = -(2n ** 63n) + BigInt(at) * width;
      const range = `(${after},${at === pieces - 1 ? -(2n ** 63n) : after + width}]`;
      const values = `now(), '${engine.prefix}_matrix', {'${tables.join("', '")}'}, ${beganMs + at}, {'${range}'}`;
      const columns = "parent_id, keyspace_name, columnfamily_names, started_at, successful_ranges";
      const query = `INSERT INTO system_distributed.parent_repair_history (${columns}) VALUES (${values})`;
      return again(() => cassandra.write([{ query, params: [] }], cassandra.deadline()));
    });
    expect((await repairs()).filter(({ repairedMs }) => repairedMs !== beganMs)).toEqual([]);
  } finally {
    await cassandra.close();
  }
});

function nodes(): readonly string[] {
  return ring.members.filter(({ kind }) => kind === "cassandra").map(({ name }) => name);
}

function addressOf(name: string): string {
  const member = ring.members.find((one) => one.name === name);
  if (member?.kind !== "cassandra") throw new Error(`${name} is no node of Cassandra.`);
  return member.address;
}
