import { afterAll, beforeAll, expect, test } from "vitest";
import { seedOfRun } from "../../controller/store/contract/harness.ts";
import type { TenantStore } from "../../controller/store/engine.ts";
import { seededRandom } from "../helpers/clock.ts";
import { openTestClusterEngine, type TestClusterEngine } from "../helpers/cluster.ts";
import { prove } from "../helpers/evidence.ts";
import { fillDisk, freeDisk, hasSmallDisk, mendRing, openRing, type Ring, type SmallDisk } from "../helpers/ring.ts";
import { Load } from "./load.ts";

/** Rounds that every worker of the load does at least, in each phase. */
const ROUNDS = { before: 3, during: 10, after: 4 } as const;
/** Calls answered with a fault while two of three are lost: more than the load has workers, so that each has repeated a call. */
const FAULTS = 14;

let ring: Ring;
let engine: TestClusterEngine;
let store: TenantStore;

beforeAll(async () => {
  ring = await openRing();
  engine = await openTestClusterEngine({ tenants: ["matrix"], settings: ring.settings });
  store = await engine.tenant("matrix");
});
afterAll(async () => {
  if (ring !== undefined) await mendRing(ring);
  await engine?.[Symbol.asyncDispose]();
});

interface Loss {
  readonly name: string;
  readonly how: "kill" | "pause";
  readonly members: () => Promise<readonly string[]>;
}

const leader = async (): Promise<string> => (await ring.etcdLeader()) ?? "etcd-1";
const followers = async (): Promise<readonly string[]> => {
  const leads = await leader();
  return ["etcd-1", "etcd-2", "etcd-3"].filter((member) => member !== leads);
};

const LOSSES: readonly Loss[] = [
  { name: "a Cassandra node is killed", how: "kill", members: async () => ["cassandra-2"] },
  { name: "an etcd member that follows is killed", how: "kill", members: async () => (await followers()).slice(0, 1) },
  { name: "the etcd member that leads is killed", how: "kill", members: async () => [await leader()] },
  { name: "a Cassandra node and the leader of etcd are killed at once", how: "kill", members: async () => ["cassandra-1", await leader()] },
  { name: "a Cassandra node is paused", how: "pause", members: async () => ["cassandra-3"] },
  { name: "an etcd member that follows is paused", how: "pause", members: async () => (await followers()).slice(0, 1) },
  { name: "the etcd member that leads is paused", how: "pause", members: async () => [await leader()] },
];

test.each(LOSSES)("writing and reading go on while $name, and when it is back", async ({ name, how, members }) => {
  const load = await begun(name);
  for (const member of await members()) await ring[how](member);
  await load.goOn(ROUNDS.during);
  await mendRing(ring);
  await load.goOn(ROUNDS.after);
  await finished(name, load, "ring-loss");
});

const MAJORITIES: readonly Loss[] = [
  { name: "two of three Cassandra nodes are killed", how: "kill", members: async () => ["cassandra-1", "cassandra-2"] },
  { name: "two of three etcd members are killed", how: "kill", members: async () => [await leader(), ...(await followers()).slice(0, 1)] },
];

test.each(MAJORITIES)("while $name every call says so by its deadline, and the same calls succeed when they are back", async ({ name, how, members }) => {
  const load = await begun(name, { leaseMayEnd: true });
  await Promise.all((await members()).map((member) => ring[how](member)));
  await load.fail(FAULTS);
  await mendRing(ring);
  await load.goOn(ROUNDS.after);
  await finished(name, load, "ring-majority-lost");
});

const DISKS: readonly { readonly member: SmallDisk; readonly growth: number }[] = [
  { member: "etcd-3", growth: 40 },
  { member: "cassandra-3", growth: 60 },
];

test.each(DISKS)("writing and reading go on while the disk of $member is full, and when there is room again", async ({ member, growth }) => {
  if (!(await hasSmallDisk(member))) {
    if (process.env.ODP_REQUIRE_CLUSTER === "1") throw new Error("A disk that can be filled takes root: mount -t tmpfs.");
    return console.log(`${member} lies on no small disk, so it is not filled: that takes root.`);
  }
  const name = `the disk of ${member} is full`;
  const load = await begun(name);
  await fillDisk(member);
  await growStores(growth);
  await load.goOn(ROUNDS.during);
  await freeDisk(member);
  // What has met a full disk has ended itself, or serves nobody until it is started again.
  await ring.kill(member);
  await mendRing(ring);
  await load.goOn(ROUNDS.after);
  await finished(name, load, "ring-disk-full");
});

/** Writes so much that nobody gets by with the room a member has set aside. */
async function growStores(mebibytes: number): Promise<void> {
  const bytes = new Uint8Array(500_000).fill(7);
  for (let at = 0; at < 2 * mebibytes; at++) {
    await settled(() => store.kv.put(`growth/${at % 8}`, bytes));
    await settled(() => store.objects.change([{ key: { cid: 1, id: `growth-${at % 8}` }, timeUs: 1_000 + at, birth: true, cells: new Map([["1", bytes]]) }]));
  }
}

async function settled(write: () => Promise<unknown>): Promise<void> {
  await expect.poll(() => write().then(() => true), { timeout: 60_000 }).toBe(true);
}

async function begun(name: string, options: { readonly leaseMayEnd?: boolean } = {}): Promise<Load> {
  await mendRing(ring);
  const load = new Load(store, { random: seededRandom(seedOfRun(name)), ...options });
  load.begin();
  await load.goOn(ROUNDS.before);
  return load;
}

async function finished(name: string, load: Load, promise: "ring-loss" | "ring-majority-lost" | "ring-disk-full"): Promise<void> {
  expect(await load.end()).toEqual([]);
  const { writes, reads, unavailable, unknown, longestMs } = load.tally;
  console.log(`${name}: ${writes} writes, ${reads} reads, ${unavailable} unavailable, ${unknown} unknown outcomes, longest wait ${longestMs} ms`);
  for (const fault of new Set(load.faults)) console.log(`  ${fault}`);
  prove(promise, { loss: name, writes, reads, unavailable, unknown, longestMs });
}
