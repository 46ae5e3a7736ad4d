import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AGENT_SESSION_LEASE_MS, CATALOG_LEASE_MS } from "../../../common/limits.ts";
import { Membership } from "../../../controller/areas/cluster/index.ts";
import { DepartedSessions } from "../../../controller/areas/hosts/session/departed.ts";
import { Presence } from "../../../controller/areas/hosts/session/presence.ts";
import { HostStatus } from "../../../controller/areas/hosts/status.ts";
import { Followers } from "../../../controller/areas/objects/definitions/followers.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import { openClusterEngine } from "../../../controller/store/cluster/index.ts";
import type { KvLease, KvStore } from "../../../controller/store/kv.ts";
import { startLocalCluster } from "../../../deploy/local/cluster.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { eventually } from "../../helpers/programs/programs.ts";
import { testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { wrappedKv } from "../../helpers/engines/wrapped-kv.ts";
import { perSecond, type Bench, type Figure } from "../driver/frame.ts";

const CONTROLLERS = 100;
const AGENTS = Number(process.env.ODP_BENCH_AGENTS ?? 100_000);
const AT_ONCE = 64;
const STEADY_MS = 10_000;
const DEADLINE_MS = 300_000;

interface Controller {
  readonly kv: KvStore;
  readonly presence: Presence;
  readonly lease: KvLease;
  readonly status: HostStatus;
  readonly departed: DepartedSessions;
  readonly membership: Membership;
}

/** Presence and definitions of a hundred controllers on a real etcd. Agents are emulated, and host writes counted. */
class Crowd {
  events = 0;
  written = 0;
  readonly all: Controller[] = [];
  readonly #kv: KvStore;

  constructor(kv: KvStore) {
    this.#kv = kv;
  }

  async join(at: number): Promise<void> {
    const kv = wrappedKv(this.#kv, {
      watch: (...call) => this.#counted(this.#kv.watch(...call)),
    });
    const controllerId = `c${String(at).padStart(3, "0")}`;
    const runtime = runtimeOf();
    const membership = await Membership.open({ kv, runtime, controllerId, version: "bench" });
    const presence = new Presence({ kv, runtime, controllerId });
    await presence.start();
    const status = new HostStatus({
      presence,
      runtime,
      controllerId,
      actAs: () => Promise.resolve(testPrincipal()),
      records: { find: () => Promise.resolve(undefined), note: () => Promise.resolve(++this.written > 0) },
    });
    const departed = new DepartedSessions({ kv, runtime, presence, status, controllers: membership });
    departed.start();
    const lease = await kv.lease(AGENT_SESSION_LEASE_MS);
    this.all.push({ kv, presence, lease, status, departed, membership });
  }

  async come(agent: number, at: number): Promise<void> {
    const controller = this.all[at % this.all.length];
    if (!controller) throw new RangeError("there is a controller");
    const name = { tenant: "matrix", host: `h${agent}` };
    const stored = { controller: controller.membership.own, nonce: `${agent}/${at}`, agentVersion: "b", sinceMs: 0 };
    controller.presence.began(
      name,
      await controller.presence.register(name, stored, () => Promise.resolve(controller.lease)),
    );
  }

  /** Removes a controller, with the same effect as a kill after its leases are over. */
  async die(): Promise<void> {
    const controller = this.all.pop();
    await controller?.departed.close();
    await controller?.presence.close();
    await controller?.membership.close();
    await controller?.lease.revoke();
  }

  async close(): Promise<void> {
    for (const { departed, presence, membership, lease } of this.all) {
      await departed.close();
      await presence.close();
      await membership.close();
      await lease.revoke();
    }
  }

  async revision(): Promise<number> {
    return (await this.#kv.list("none", { limit: 1 })).revision;
  }

  async *#counted(events: ReturnType<KvStore["watch"]>): ReturnType<KvStore["watch"]> {
    for await (const batch of events) {
      this.events += batch.length;
      yield batch;
    }
  }
}

/** Load of a hundred controllers with a thousand agents each on etcd and one another, at rest and when one dies. */
export const growthBench: Bench = {
  name: "growth",
  async run() {
    const dir = await mkdtemp(join(tmpdir(), "odp-bench-"));
    const local = await startLocalCluster({ dir, progress: (line) => console.log(`  ${line}`) });
    try {
      const engine = await openClusterEngine({ ...local.settings, prefix: "bench", runtime: runtimeOf() });
      try {
        return await measured(new Crowd((await engine.system()).kv));
      } finally {
        await engine.close();
      }
    } finally {
      await local.stop({ now: true });
      await rm(dir, { recursive: true, force: true });
    }
  },
};

async function measured(crowd: Crowd): Promise<Figure[]> {
  for (let at = 0; at < CONTROLLERS; at++) await crowd.join(at);
  const before = { heap: heapMb(), revision: await crowd.revision(), events: crowd.events };
  const rate = await perSecond(AGENTS, AT_ONCE, (agent) => crowd.come(agent, agent));
  await eventually(
    "every holder knows its own",
    DEADLINE_MS,
    () => crowd.events - before.events >= AGENTS || undefined,
  );
  const came = { revisions: (await crowd.revision()) - before.revision, events: crowd.events - before.events };
  const mb = heapMb() - before.heap;
  const steady = await over(crowd, () => realPause(STEADY_MS));
  const each = AGENTS / CONTROLLERS;
  crowd.written = 0;
  const lost = await over(crowd, async () => {
    await crowd.die();
    // Nine in ten of its agents connect to other controllers at once.
    await perSecond(each, AT_ONCE, (at) =>
      at % 10 === 0 ? Promise.resolve() : crowd.come(at * CONTROLLERS + CONTROLLERS - 1, at),
    );
    await eventually("the rest is written offline", DEADLINE_MS, () => crowd.written >= each / 10 || undefined);
  });
  const { written } = crowd;
  const definitions = await changed(crowd);
  await crowd.close();
  return [
    most("an agent that comes, of 64 at once", "ms", 1_000 / rate, 1),
    most("etcd revisions for each agent that comes", "revisions", came.revisions / AGENTS, 1.01),
    most("events at all controllers for each agent that comes", "events", came.events / AGENTS, 1.05),
    most(`memory of ${AGENTS} sessions at their holders, 100 controllers together`, "MB", mb, 100),
    most("etcd revisions a second at rest", "revisions/s", (steady.revisions * 1_000) / STEADY_MS, 1),
    most("events a second at rest, all controllers together", "events/s", (steady.events * 1_000) / STEADY_MS, 1),
    most("etcd revisions for each agent of a controller that goes", "revisions", lost.revisions / each, 2),
    most("events at all others for each agent of a controller that goes", "events", lost.events / each, 2),
    most("records of hosts written for each of these that came to nobody", "writes", written / (each / 10), 1),
    most(
      "etcd revisions of a change of definitions, for each controller",
      "revisions",
      definitions.revisions / CONTROLLERS,
      2,
    ),
    most("events of a change of definitions, for each controller", "events", definitions.events / CONTROLLERS, 2),
  ];
}

/** Every controller acknowledges a change, and one of them waits for the others. */
async function changed(crowd: Crowd): Promise<{ readonly revisions: number; readonly events: number }> {
  const joined = await Promise.all(
    crowd.all.map(async ({ kv }) => {
      const followers = new Followers(kv, runtimeOf());
      return { followers, follower: await followers.join(await kv.lease(CATALOG_LEASE_MS)) };
    }),
  );
  const [first, ...others] = joined;
  if (!first) throw new RangeError("somebody changes");
  const cost = await over(crowd, async () => {
    const waited = first.followers.acknowledged(1, first.follower.key, AbortSignal.timeout(DEADLINE_MS));
    await Promise.all(others.map(({ followers, follower }) => followers.acknowledge(follower, 1)));
    await waited;
  });
  for (const { follower } of joined) await follower.lease.revoke();
  return cost;
}

async function over(
  crowd: Crowd,
  work: () => Promise<unknown>,
): Promise<{ readonly revisions: number; readonly events: number }> {
  const before = { revision: await crowd.revision(), events: crowd.events };
  await work();
  return { revisions: (await crowd.revision()) - before.revision, events: crowd.events - before.events };
}

function runtimeOf(): Runtime {
  const random = { next: () => Math.random(), bytes: (count: number) => new Uint8Array(randomBytes(count)) };
  return { ...testRuntime(realClock), random };
}

function realPause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function heapMb(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1_048_576;
}

function most(name: string, unit: string, ours: number, against: number): Figure {
  return { name, unit, ours, against, againstName: "limit", kind: "most", goal: 1 };
}
