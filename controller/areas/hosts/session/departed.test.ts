import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import {
  AGENT_SESSION_LEASE_MS,
  CONTROLLER_LEASE_MS,
  PRESENCE_SWEEP_AGAIN_MS,
  PRESENCE_SWEEP_MS,
} from "../../../../common/limits.ts";
import { MemoryDatabase } from "../../../../test/helpers/engines/memory/engine.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import type { KvStore } from "../../../store/kv.ts";
import { Membership } from "../../cluster/index.ts";
import type { HostRecords } from "../records.ts";
import { HostStatus } from "../status.ts";
import type { AgentSession } from "../types.ts";
import { AgentSessions } from "./agent-sessions.ts";
import { DepartedSessions } from "./departed.ts";
import { Presence } from "./presence.ts";

const CONTROLLERS = 12;
const STEP_MS = 3_000;
/** Never resolves: the answer to a controller that is dead. */
const never = new Promise<never>(() => undefined);
const HELLO = {
  protocol: 1,
  agentVersion: "test",
  streamId: "stream-of-a-test",
  firstSequence: 1,
  facts: undefined,
  desiredRevision: 0,
  highestEpoch: 0,
  tunnels: false,
};

interface Counts {
  /** Session events that the controller received. */
  events: number;
  /** Number of read calls. */
  reads: number;
}

interface Controller {
  readonly presence: Presence;
  readonly counts: Counts;
  come(host: string): Promise<AgentSession>;
}

/** Several controllers on one store. Records what they write about hosts. */
class World {
  readonly clock = new TestClock();
  readonly database = new MemoryDatabase(this.clock);
  readonly written: string[] = [];
  failing = 0;
  readonly #agents = new Set<AgentSession>();
  readonly #ends: (() => Promise<void>)[] = [];

  async controllers(count: number): Promise<readonly Controller[]> {
    const made: Controller[] = [];
    for (let at = 0; at < count; at++) made.push(await this.controller(`c${String(at).padStart(3, "0")}`));
    await settled();
    return made;
  }

  async controller(controllerId: string, clock = this.clock): Promise<Controller> {
    const runtime = testRuntime(clock);
    const inner = (await this.database.engine({ clock }).system()).kv;
    const counts: Counts = { events: 0, reads: 0 };
    const kv = wrappedKv(inner, {
      get: (...call) => (counts.reads++, inner.get(...call)),
      list: (...call) => (counts.reads++, inner.list(...call)),
      watch: (...call) => this.#counted(inner.watch(...call), call[0], counts),
    });
    const membership = await Membership.open({ kv, runtime, controllerId, version: "test" });
    const presence = new Presence({ kv, runtime, controllerId });
    await presence.start();
    const status = new HostStatus({
      presence,
      runtime,
      controllerId,
      actAs: (tenant) => Promise.resolve(testPrincipal("administrator", tenant)),
      records: {
        find: () => Promise.resolve(undefined),
        note: (...note) => (clock === this.clock ? this.#note(...note) : never),
      },
    });
    presence.onChange((event) => void status.changed({ tenant: event.tenant, host: event.host }));
    const sessions = new AgentSessions({
      kv,
      presence,
      runtime,
      controllerId,
      controllers: () => [],
      admit: () => Promise.resolve(),
      opened: () => Promise.resolve(),
      left: () => undefined,
      commandState: () => undefined,
      renew: () => Promise.reject(new AppError("unsupported", "not here")),
      facts: () => Promise.resolve(),
      desired: { desired: () => Promise.resolve({ revision: 0, policies: [] }) },
      sink: {
        acknowledged: () => Promise.resolve(0),
        told: () => Promise.resolve({ time: undefined, rules: [] }),
        accept: () => Promise.resolve(),
      },
    });
    const departed = new DepartedSessions({ kv, runtime, presence, status, controllers: membership });
    departed.start();
    if (clock === this.clock)
      this.#ends.push(async () => {
        await departed.close();
        await sessions.close();
        await presence.close();
        await status.close();
        await membership.close();
      });
    return {
      presence,
      counts,
      come: async (host) => {
        const here: { session?: AgentSession } = {};
        const close = (): void => {
          if (!here.session) return;
          this.#agents.delete(here.session);
          void here.session.ended();
        };
        const identity = { tenant: "matrix", host, serial: "1" };
        const session = await sessions.open(identity, HELLO, { send: () => undefined, close });
        here.session = session;
        this.#agents.add(session);
        return session;
      },
    };
  }

  async pass(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += STEP_MS) {
      for (const agent of this.#agents)
        await agent.receive({ frame: { $case: "heartbeat", value: { timeMs: 1, values: {} } } });
      this.clock.advance(STEP_MS);
      await settled();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ends.map((end) => end()));
  }

  #note(...[, host, edits]: Parameters<HostRecords["note"]>): Promise<boolean> {
    if (this.failing-- > 0) return Promise.reject(new AppError("unavailable", "away"));
    for (const edit of edits) if (edit.column === "status") this.written.push(`${host} ${String(edit.value)}`);
    return Promise.resolve(true);
  }

  async *#counted(events: ReturnType<KvStore["watch"]>, prefix: string, counts: Counts): ReturnType<KvStore["watch"]> {
    for await (const batch of events) {
      if (prefix.startsWith("session")) counts.events += batch.length;
      yield batch;
    }
  }
}

test("an agent that comes, moves or goes is no event to a controller that does not hold it, however many there are", async () => {
  await using world = new World();
  const all = await world.controllers(CONTROLLERS);
  const [one, two, ...others] = all;
  if (!one || !two) throw new RangeError("there are two");
  for (const host of ["web", "db"]) await one.come(host);
  await (await two.come("web")).ended();
  await settled();
  expect(others.map(({ counts }) => counts.events)).toEqual(others.map(() => 0));
  expect(one.counts.events + two.counts.events).toBeLessThanOrEqual(5);
  const holders = await Promise.all(all.map(({ presence }) => presence.holderOf("matrix", "db")));
  expect(new Set(holders.map((holder) => holder?.controller))).toEqual(new Set(["c000"]));
  expect(await others[0]?.presence.isOnline("matrix", "web")).toBe(false);
  expect(world.written.at(-1)).toBe("web offline");
});

test("a controller that dies costs the others its own agents only, and each of these is told as what it is", async () => {
  await using world = new World();
  const dead = new TestClock();
  const all = await world.controllers(CONTROLLERS);
  const dying = await world.controller("dying", dead);
  for (const [at, controller] of all.entries())
    for (let host = 0; host < 8; host++) await controller.come(`h${at}-${host}`);
  for (let host = 0; host < 20; host++) await dying.come(`lost-${host}`);
  await settled();
  world.written.length = 0;
  for (const controller of all) Object.assign(controller.counts, { events: 0, reads: 0 });
  // The clock of this controller stands still, so nothing renews its leases. Some of its agents move to others.
  for (let host = 0; host < 15; host++) await all[host % 4]?.come(`lost-${host}`);
  await world.pass(AGENT_SESSION_LEASE_MS + CONTROLLER_LEASE_MS + 2 * PRESENCE_SWEEP_AGAIN_MS);
  const offline = world.written.filter((text) => text.endsWith(" offline")).sort();
  expect(offline).toEqual([15, 16, 17, 18, 19].map((at) => `lost-${at} offline`));
  const events = all.reduce((sum, { counts }) => sum + counts.events, 0);
  expect(events).toBe(15);
  expect(all.slice(4).map(({ counts }) => counts.events + counts.reads)).toEqual(all.slice(4).map(() => 0));
  // The other controllers hold 96 sessions; those are not read.
  expect(all[0]?.counts.reads).toBeLessThan(150);
  const { kv } = await world.database.engine({ clock: world.clock }).system();
  expect((await kv.list("sessionsof/dying/")).entries).toEqual([]);
});

test("hosts of a controller that is gone are written offline when the store is there again", async () => {
  await using world = new World();
  const [one] = await world.controllers(2);
  await one?.come("stays");
  const { kv } = await world.database.engine({ clock: world.clock }).system();
  for (const host of ["a", "b"]) await kv.put(`sessionsof/gone/matrix/${host}`, Buffer.from([0]));
  world.failing = 3;
  await world.pass(2 * PRESENCE_SWEEP_MS);
  expect(world.written.filter((text) => text.endsWith(" offline")).sort()).toEqual(["a offline", "b offline"]);
  expect((await kv.list("sessionsof/gone/")).entries).toEqual([]);
  expect((await kv.list("sessionsof/")).entries).toHaveLength(1);
});

/** Waits until all work in memory has ended or waits for the clock. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 10; turns++) await turn();
}
