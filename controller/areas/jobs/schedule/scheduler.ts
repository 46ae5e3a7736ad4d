import { errorText } from "../../../../common/errors.ts";
import {
  MAINTENANCE_INTERVAL_MS,
  SCHEDULE_AGAIN_MS,
  SCHEDULE_LOOK_MS,
  SCHEDULE_PARALLEL,
  SCHEDULER_LEASE_MS,
  SCHEDULER_LOOK_MS,
} from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { FollowedKeys } from "../../../store/kv/follow.ts";
import { becomeLeader, endLeadership } from "../../../store/kv/leader.ts";
import { decodeStored } from "../../../store/format.ts";
import type { KvLease } from "../../../store/kv.ts";
import { Agenda } from "./agenda.ts";
import type { Firings, ScheduleState } from "./firings.ts";
import { DEFINITIONS, SCHEDULES, type StoredJob } from "../store.ts";

/** Key in the system's KvStore that names the controller that fires. It is under that controller's lease. */
const LEADER = "jobs/scheduler";

export interface SchedulerDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly controllers: { readonly own: string };
  readonly tenants: { list(): Promise<readonly { readonly name: string }[]> };
  readonly firings: Pick<Firings, "attend" | "firstMs">;
}

/**
 * Fires schedules while this controller is the leader, which holds a key under its lease. When the lease ends, another
 * controller takes the key. The leader only saves duplicate work: `Firings` decides in the store what is due, so two
 * leaders at once do no harm.
 */
export class JobScheduler {
  readonly #with: SchedulerDependencies;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(dependencies: SchedulerDependencies) {
    this.#with = dependencies;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Begins no more firings. Resolves when the firings in progress are decided. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { runtime } = this.#with;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const lease = await this.#stand();
        if (lease) await this.#fire(lease);
      } catch (error) {
        runtime.log.warn({ reason: errorText(error) }, "schedules are fired again later");
      }
      if (!signal.aborted) await wait(runtime.clock, SCHEDULER_LOOK_MS, signal);
    }
  }

  async #stand(): Promise<KvLease | undefined> {
    const { kv } = await this.#with.stores.system();
    return becomeLeader(kv, { key: LEADER, controller: this.#with.controllers.own, leaseMs: SCHEDULER_LEASE_MS });
  }

  async #fire(lease: KvLease): Promise<void> {
    const { runtime } = this.#with;
    const signal = AbortSignal.any([lease.lost, this.#stopping.signal]);
    const agenda = new Agenda(runtime.clock);
    const followed = new Map<string, FollowedKeys>();
    const firing = new Set<Promise<void>>();
    try {
      let tenantsAtMs = 0;
      while (!signal.aborted && lease.held()) {
        if (runtime.clock.monotonicMs() >= tenantsAtMs) {
          await this.#followAll(agenda, followed);
          tenantsAtMs = runtime.clock.monotonicMs() + MAINTENANCE_INTERVAL_MS;
        }
        while (firing.size < SCHEDULE_PARALLEL && lease.held()) {
          const job = agenda.take(runtime.clock.nowMs());
          if (!job) break;
          const work = this.#attend(agenda, job).finally(() => firing.delete(work));
          firing.add(work);
        }
        await this.#pause(agenda, firing, signal);
      }
    } finally {
      for (const keys of followed.values()) await keys.close();
      await Promise.all(firing);
      await endLeadership(lease);
    }
  }

  async #attend(agenda: Agenda, { tenant, name }: { readonly tenant: string; readonly name: string }): Promise<void> {
    const { firings, runtime } = this.#with;
    try {
      agenda.done(tenant, name, await firings.attend(tenant, name));
    } catch (error) {
      runtime.log.warn({ tenant, job: name, reason: errorText(error) }, "a schedule is attended to again");
      agenda.done(tenant, name, runtime.clock.nowMs() + SCHEDULE_AGAIN_MS);
    }
  }

  /** Waits until the next job is due, something changes, or it is time to read the wall clock again. */
  async #pause(agenda: Agenda, firing: ReadonlySet<Promise<void>>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#with.runtime;
    if (firing.size >= SCHEDULE_PARALLEL) return Promise.race(firing);
    const nextMs = agenda.nextMs;
    const mostMs = nextMs === undefined ? MAINTENANCE_INTERVAL_MS : SCHEDULE_LOOK_MS;
    const pauseMs = Math.min(mostMs, Math.max(0, (nextMs ?? Number.POSITIVE_INFINITY) - clock.nowMs()));
    await wait(clock, pauseMs, signal, agenda.changed());
  }

  async #followAll(agenda: Agenda, followed: Map<string, FollowedKeys>): Promise<void> {
    const { tenants, stores, runtime, firings } = this.#with;
    for (const { name: tenant } of await tenants.list()) {
      if (followed.has(tenant)) continue;
      const { kv } = await stores.tenant(tenant);
      const states = new Map<string, ScheduleState>();
      for await (const { key, value } of entriesUnder(kv, SCHEDULES))
        states.set(key.slice(SCHEDULES.length), decodeStored<ScheduleState>(value));
      const keys = new FollowedKeys({
        kv,
        runtime,
        prefix: DEFINITIONS,
        put: ({ key, value }) => {
          const name = key.slice(DEFINITIONS.length);
          const atMs = firings.firstMs(name, decodeStored<StoredJob>(value), states.get(name));
          if (atMs === undefined) agenda.remove(tenant, name);
          else agenda.add(tenant, name, atMs);
        },
        end: (key) => agenda.remove(tenant, key.slice(DEFINITIONS.length)),
      });
      followed.set(tenant, keys);
      await keys.start();
      // The loaded states are outdated from now on. Without a state, a changed job is attended to early, and then
      // waits.
      states.clear();
    }
  }
}
