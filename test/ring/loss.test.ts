import { afterAll, beforeAll, expect, test } from "vitest";
import { seedOfRun } from "../../controller/store/contract/harness.ts";
import type { TenantStore } from "../../controller/store/engine.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { openTestClusterEngine, type TestClusterEngine } from "../helpers/cluster/cluster.ts";
import { prove } from "../helpers/runs/evidence.ts";
import { fillDisk, freeDisk, hasSmallDisk, mendRing, openRing, type Ring } from "../helpers/cluster/ring.ts";
import { SMALL_DISKS } from "../helpers/cluster/ring-setup.ts";
import { Load, type LoadOptions } from "./load.ts";

/** True: every loss, for `npm run soak`. Otherwise one for each promise. */
const ALL = Number(process.env.ODP_RING_TIMES ?? 1) > 1;
/** Minimum number of rounds of every worker of the load in each phase. */
const ROUNDS = { before: 3, during: 10, after: 4 } as const;
/** Calls answered with a fault while two of three are lost: more than the load has workers, so each repeats a call. */
const FAULTS = 12;
/** Maximum number of repeats of a call while one of three is lost. */
const FAULTS_PER_CALL_MAX = 3;
const LATE_ROUNDS = 3;
/** The same while two of three are lost: no real limit. */
const MANY = 200;
/** The lost member may be the one in use, with one write in progress for every worker that writes to etcd. */
const IN_FLIGHT_MAX = 5;
/** More than a member has reserved, so that it certainly reaches the end of its disk. */
const GROWTH_MAX_MIB = 400;

const seeds = new Map<string, number>();
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
  /** True: part of every run. */
  readonly always?: true;
  /** Maximum number of etcd writes whose outcome stays unknown; none if no etcd member is lost. */
  readonly unknownMax?: number;
}

const leader = async (): Promise<string> => (await ring.etcdLeader()) ?? "etcd-1";
const othersThan = (leads: string): readonly string[] =>
  ["etcd-1", "etcd-2", "etcd-3"].filter((member) => member !== leads);
const followers = async (): Promise<readonly string[]> => othersThan(await leader());

const LOSSES: readonly Loss[] = [
  { name: "a Cassandra node is killed", how: "kill", members: async () => ["cassandra-2"], always: true },
  {
    name: "an etcd member that follows is killed",
    how: "kill",
    members: async () => (await followers()).slice(0, 1),
    unknownMax: IN_FLIGHT_MAX,
  },
  {
    name: "the etcd member that leads is killed",
    how: "kill",
    members: async () => [await leader()],
    unknownMax: IN_FLIGHT_MAX * FAULTS_PER_CALL_MAX,
  },
  {
    name: "a Cassandra node and the leader of etcd are killed at once",
    how: "kill",
    members: async () => ["cassandra-1", await leader()],
    unknownMax: IN_FLIGHT_MAX * FAULTS_PER_CALL_MAX,
  },
  { name: "a Cassandra node is paused", how: "pause", members: async () => ["cassandra-3"] },
  {
    name: "an etcd member that follows is paused",
    how: "pause",
    members: async () => (await followers()).slice(0, 1),
    unknownMax: IN_FLIGHT_MAX,
  },
  {
    name: "the etcd member that leads is paused",
    how: "pause",
    always: true,
    members: async () => [await leader()],
    unknownMax: IN_FLIGHT_MAX * FAULTS_PER_CALL_MAX,
  },
];

test.each(LOSSES.filter(({ always }) => ALL || always))(
  "writing and reading go on while $name, and when it is back",
  async ({ name, how, members, unknownMax = 0 }) => {
    const load = await begun(name);
    for (const member of await members()) await ring[how](member);
    await load.goOn(ROUNDS.during);
    await mendRing(ring);
    await load.goOn(ROUNDS.after);
    await finished(name, load, "ring-loss");
    expect(load.tally.unknown, "unknown outcomes").toBeLessThanOrEqual(unknownMax);
  },
);

const MAJORITIES: readonly Loss[] = [
  { name: "two of three Cassandra nodes are killed", how: "kill", members: async () => ["cassandra-1", "cassandra-2"] },
  {
    name: "two of three etcd members are killed",
    how: "kill",
    always: true,
    members: async () => {
      // Called only once: a second call could return another leader, and both entries could then be the same member.
      const leads = await leader();
      return [leads, ...othersThan(leads).slice(0, 1)];
    },
  },
];

test.each(MAJORITIES.filter(({ always }) => ALL || always))(
  "while $name every call says so by its deadline, and the same calls succeed when they are back",
  async ({ name, how, members }) => {
    const load = await begun(name, { leaseMayEnd: true, faultsPerCallMax: MANY });
    await Promise.all((await members()).map((member) => ring[how](member)));
    await load.fail(FAULTS);
    await mendRing(ring);
    await load.goOn(ROUNDS.after);
    await finished(name, load, "ring-majority-lost");
  },
);

test.each(ALL ? SMALL_DISKS : SMALL_DISKS.slice(0, 1))(
  "writing and reading go on while the disk of %s is full, and when there is room again",
  async (member) => {
    if (!(await hasSmallDisk(member))) {
      if (process.env.ODP_REQUIRE_CLUSTER === "1")
        throw new Error("A disk that can be filled takes root: mount -t tmpfs.");
      return console.log(`${member} lies on no small disk, so it is not filled: that takes root.`);
    }
    const name = `the disk of ${member} is full`;
    const load = await begun(name);
    await fillDisk(member);
    const grownMiB = await growUntil(async () => !(await ring.serves(member)));
    expect(grownMiB, "what the others took until the member gave up").toBeLessThan(GROWTH_MAX_MIB);
    await load.goOn(ROUNDS.during);
    await freeDisk(member);
    // A node whose disk was full has ended itself, or answers no call until it is restarted.
    await ring.kill(member);
    await mendRing(ring);
    await load.goOn(ROUNDS.after);
    await finished(name, load, "ring-disk-full");
  },
);

test("a write that was given up on a member that hangs is not done over a later one when the member wakes", async () => {
  await mendRing(ring);
  const [member = ""] = await followers();
  const endpoint = ring.settings.etcdEndpoints[ring.members.findIndex(({ name }) => name === member)] ?? "";
  await using stuck = await openTestClusterEngine({
    prefix: engine.prefix,
    tenants: [],
    settings: { ...ring.settings, etcdEndpoints: [endpoint] },
  });
  const { kv } = await stuck.tenant("matrix");
  for (let round = 0; round < LATE_ROUNDS; round++) {
    const key = `late/${round}`;
    await settled(() => kv.put(key, Uint8Array.of(1)));
    await ring.pause(member);
    await expect(kv.put(key, Uint8Array.of(2))).rejects.toMatchObject({ code: "unknown_outcome" });
    await settled(() => store.kv.put(key, Uint8Array.of(3)));
    await ring.resume(member);
    // Uses the same connection, after the abandoned call.
    await settled(() => kv.put("behind", Uint8Array.of(round)));
    expect((await kv.get(key))?.value).toEqual(Uint8Array.of(3));
  }
  prove("ring-loss", { loss: "a write given up while its etcd member was paused", rounds: LATE_ROUNDS });
});

/** Writes until there is an effect; returns how much was written. */
async function growUntil(enough: () => Promise<boolean>): Promise<number> {
  const bytes = new Uint8Array(500_000).fill(7);
  let written = 0;
  for (let at = 0; written < GROWTH_MAX_MIB && !(await enough()); at++, written++) {
    await settled(() => store.kv.put(`growth/${at % 8}`, bytes));
    await settled(() =>
      store.objects.change([
        { key: { cid: 1, id: `growth-${at % 8}` }, timeUs: 1_000 + at, birth: true, cells: new Map([["1", bytes]]) },
      ]),
    );
  }
  return written;
}

async function settled(write: () => Promise<unknown>): Promise<void> {
  await expect.poll(() => write().then(() => true), { timeout: 60_000 }).toBe(true);
}

async function begun(name: string, options: Partial<LoadOptions> = {}): Promise<Load> {
  await mendRing(ring);
  const seed = seedOfRun(name);
  seeds.set(name, seed);
  const load = new Load(store, { random: seededRandom(seed), faultsPerCallMax: FAULTS_PER_CALL_MAX, ...options });
  await load.begin();
  await load.goOn(ROUNDS.before);
  return load;
}

async function finished(
  name: string,
  load: Load,
  promise: "ring-loss" | "ring-majority-lost" | "ring-disk-full",
): Promise<void> {
  expect(await load.end()).toEqual([]);
  const { writes, reads, unavailable, unknown, longestMs } = load.tally;
  console.log(
    `${name}: ${writes} writes, ${reads} reads, ${unavailable} unavailable, ${unknown} unknown outcomes, longest wait ${longestMs} ms`,
  );
  for (const fault of new Set(load.faults)) console.log(`  ${fault.slice(0, 300)}`);
  prove(promise, { loss: name, seeds: [seeds.get(name) ?? 0], writes, reads, unavailable, unknown, longestMs });
}
