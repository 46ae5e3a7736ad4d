import { afterAll, beforeAll, expect, test } from "vitest";
import { again } from "../../controller/store/contract/harness.ts";
import type { TableRepair } from "../../controller/store/scrub.ts";
import { openTestClusterEngine, type TestClusterEngine } from "../helpers/cluster.ts";
import { nodetool } from "../helpers/nodetool.ts";
import { mendRing, openRing, type Ring } from "../helpers/ring.ts";

let ring: Ring;
let engine: TestClusterEngine;

beforeAll(async () => {
  ring = await openRing();
  engine = await openTestClusterEngine({ tenants: ["matrix"], settings: ring.settings });
});
afterAll(async () => engine?.[Symbol.asyncDispose]());

/** Asked again until a node that was lost this moment is known to be. */
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
  // One that only compares, or leaves a node out, makes nothing alike.
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

function nodes(): readonly string[] {
  return ring.members.filter(({ kind }) => kind === "cassandra").map(({ name }) => name);
}

function addressOf(name: string): string {
  const member = ring.members.find((one) => one.name === name);
  if (member?.kind !== "cassandra") throw new Error(`${name} is no node of Cassandra.`);
  return member.address;
}
