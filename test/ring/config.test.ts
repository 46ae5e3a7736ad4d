import { afterAll, beforeAll, expect, test } from "vitest";
import type { Random } from "../../common/time.ts";
import { ConfigService } from "../../controller/areas/config/index.ts";
import { seedOfRun, uniqueName } from "../../controller/store/contract/harness.ts";
import { clusterRuntime, openTestClusterEngine, type TestClusterEngine } from "../helpers/cluster/cluster.ts";
import { ConfigClients } from "../helpers/areas/config-clients.ts";
import { configWorld } from "../helpers/areas/config.ts";
import { prove } from "../helpers/runs/evidence.ts";
import { mendRing, openRing, type Ring } from "../helpers/cluster/ring.ts";

/** Number of repeats, set by `npm run soak`, which also runs every loss. */
const TIMES = Number(process.env.ODP_RING_TIMES ?? 1);
const CLIENTS = 6;
const KEYS = 3;
/** Calls of every client: before a loss, from the loss on, and after the repair. */
const CALLS = { before: 4, during: 12, after: 8 } as const;

let ring: Ring;
let engines: readonly TestClusterEngine[] = [];
let worlds: readonly ReturnType<typeof configWorld>[] = [];

beforeAll(async () => {
  ring = await openRing();
  const { settings } = ring;
  const first = await openTestClusterEngine({ tenants: ["matrix"], settings, random: startingAt(0) });
  const { prefix } = first;
  engines = [first, await openTestClusterEngine({ prefix, tenants: [], settings, random: startingAt(0.9) })];
  worlds = engines.map((engine) => configWorld(engine));
});
afterAll(async () => {
  if (ring !== undefined) await mendRing(ring);
  for (const world of worlds) await world[Symbol.asyncDispose]();
  for (const engine of engines.toReversed()) await engine[Symbol.asyncDispose]();
});

interface Loss {
  readonly name: string;
  readonly how: "kill" | "pause";
  readonly who: "leader" | "follower" | "majority";
  /** True: part of every run. */
  readonly always?: true;
}

const LOSSES: readonly Loss[] = [
  { name: "the etcd member that leads is killed", how: "kill", who: "leader", always: true },
  { name: "the etcd member that leads is paused", how: "pause", who: "leader" },
  { name: "an etcd member that follows is killed", how: "kill", who: "follower" },
  { name: "an etcd member that follows is paused", how: "pause", who: "follower" },
  { name: "two of three etcd members are paused", how: "pause", who: "majority", always: true },
];
const ROUNDS = Array.from({ length: TIMES }, (_, round) =>
  LOSSES.filter(({ always }) => TIMES > 1 || always).map((loss) => ({ ...loss, round })),
).flat();

test.each(ROUNDS)(
  "what clients at two controllers saw while $name can have happened one by one (round $round)",
  async ({ name, how, who, round }) => {
    await mendRing(ring);
    const seed = seedOfRun(`${name} ${round}`);
    const place = uniqueName("/matrix/ring");
    const clients = new ConfigClients({
      services: worlds.map((world) => new ConfigService(world)),
      keys: Array.from({ length: KEYS }, (_, key) => `${place}/${key}`),
      clients: CLIENTS,
      seed,
    });
    await clients.make(CALLS.before);
    const members = await membersOf(who);
    // Calls are in progress when the members stop and when they return.
    await Promise.all([
      who === "majority" ? clients.fail() : clients.make(CALLS.during),
      ...members.map((member) => ring[how](member)),
    ]);
    await Promise.all([clients.make(CALLS.after), mendRing(ring)]);
    expect(clients.impossible(), `seed ${seed}`).toEqual([]);
    const { calls, refused, unknown } = clients.tally;
    console.log(`${name}: ${calls} calls, ${refused} refused, ${unknown} of unknown outcome`);
    prove("config-linearizable", { loss: name, seed, clients: CLIENTS, controllers: worlds.length, calls });
  },
);

/** A controller stays with its etcd member while that works. Those of this test use different ones, which may lag. */
function startingAt(chance: number): Random {
  return { ...clusterRuntime.random, next: () => chance };
}

async function membersOf(who: Loss["who"]): Promise<readonly string[]> {
  const leader = (await ring.etcdLeader()) ?? "etcd-1";
  const [follower = ""] = ["etcd-1", "etcd-2", "etcd-3"].filter((member) => member !== leader);
  if (who === "majority") return [leader, follower];
  return [who === "leader" ? leader : follower];
}
