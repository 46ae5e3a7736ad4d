import { AppError, errorText } from "../../../../common/errors.ts";
import {
  MAINTENANCE_INTERVAL_MS,
  POLICY_SSH_AGAIN_MS,
  POLICY_SSH_LOOK_MS,
  POLICY_SSH_RUNS_MAX,
  SCHEDULER_LEASE_MS,
  SCHEDULER_LOOK_MS,
} from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { becomeLeader, endLeadership } from "../../../store/kv/leader.ts";
import type { KvLease } from "../../../store/kv.ts";
import type { DesiredStateSource, HostsOverSsh } from "../../hosts/index.ts";
import { Agenda } from "../../jobs/index.ts";
import { PolicyStore } from "../store.ts";
import { type PolicyOnHost, SshMarks } from "./marks.ts";
import { SshStates } from "./states.ts";
import type { EntryStore } from "./storing.ts";
import type { TaskParts } from "./task.ts";
import { TenantRuns } from "./tenant-runs.ts";

/** Key in the system's KvStore that names the controller that runs policies over SSH, under its lease. */
const LEADER = "policies/sshrunner";

export interface SshRunnerDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly controllers: { readonly own: string };
  readonly tenants: { list(): Promise<readonly { readonly name: string }[]> };
  readonly hosts: HostsOverSsh;
  readonly entries: EntryStore;
  /** Notes the policies of a host as sent to it, and returns them. */
  readonly sent: DesiredStateSource;
}

/** The work of a leader: what it runs, and when. */
interface Leading {
  readonly lease: KvLease;
  readonly signal: AbortSignal;
  readonly agenda: Agenda;
  readonly tenants: Map<string, TenantRuns>;
  readonly tasks: TaskParts;
  readonly states: SshStates;
  readonly running: Set<Promise<void>>;
}

/**
 * Runs command policies on hosts over SSH while this controller is the leader, which holds a key under its lease. Marks
 * decide which due times were run, so a leader that is late does no harm.
 */
export class SshPolicyRunner {
  readonly #with: SshRunnerDependencies;
  readonly #store: PolicyStore;
  readonly #marks: SshMarks;
  readonly #stopping = new AbortController();
  #working: Promise<void> = Promise.resolve();

  constructor(dependencies: SshRunnerDependencies) {
    this.#with = dependencies;
    this.#store = new PolicyStore(dependencies.stores);
    this.#marks = new SshMarks(dependencies.stores, dependencies.controllers.own);
  }

  start(): void {
    this.#working = this.#work();
  }

  /** Ends the runs in progress, which are reported as interrupted. Resolves when that is stored. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { runtime, stores, controllers } = this.#with;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const { kv } = await stores.system();
        const key = { key: LEADER, controller: controllers.own, leaseMs: SCHEDULER_LEASE_MS };
        const lease = await becomeLeader(kv, key);
        if (lease) await this.#lead(lease);
      } catch (error) {
        runtime.log.warn({ reason: errorText(error) }, "policies over SSH are run again later");
      }
      if (!signal.aborted) await wait(runtime.clock, SCHEDULER_LOOK_MS, signal);
    }
  }

  async #lead(lease: KvLease): Promise<void> {
    const { runtime } = this.#with;
    const states = new SshStates(this.#with.hosts);
    const leading: Leading = {
      ...{ lease, states, tenants: new Map(), running: new Set() },
      signal: AbortSignal.any([lease.lost, this.#stopping.signal]),
      agenda: new Agenda(runtime.clock),
      tasks: this.#tasks(lease, states),
    };
    try {
      let tenantsAtMs = 0;
      while (!leading.signal.aborted && lease.held()) {
        if (runtime.clock.monotonicMs() >= tenantsAtMs) {
          await this.#followTenants(leading);
          tenantsAtMs = runtime.clock.monotonicMs() + MAINTENANCE_INTERVAL_MS;
        }
        await this.#look(leading);
        this.#begin(leading);
        await this.#pause(leading);
      }
    } finally {
      for (const runs of leading.tenants.values()) runs.stop();
      await Promise.all(leading.running);
      for (const runs of leading.tenants.values()) await runs.close();
      await endLeadership(lease);
    }
  }

  #tasks(lease: KvLease, states: SshStates): TaskParts {
    const { runtime, entries, hosts } = this.#with;
    return {
      ...{ runtime, entries, hosts },
      marks: this.#marks,
      isWanted: (of, revision) => this.#isWanted(of, revision),
      report: (of, state) => states.report(of, state),
      requireLead: () => {
        if (!lease.held())
          throw new AppError("unavailable", "This controller does not run policies over SSH any more.");
      },
    };
  }

  async #isWanted({ tenant, host, policy }: PolicyOnHost, revision: number): Promise<boolean> {
    const { policies } = await this.#with.sent.desired(tenant, host);
    if (!policies.some((one) => one.name === policy && one.revision === revision)) return false;
    return this.#with.hosts.isOverSsh(tenant, host);
  }

  async #followTenants({ tenants, tasks, states, agenda }: Leading): Promise<void> {
    const names = new Set((await this.#with.tenants.list()).map(({ name }) => name));
    for (const [name, runs] of tenants) {
      if (names.has(name)) continue;
      runs.stop();
      tenants.delete(name);
      await runs.close();
    }
    const { stores, runtime, hosts } = this.#with;
    for (const name of names) {
      if (tenants.has(name)) continue;
      const plan = { store: this.#store, hosts };
      const runs = new TenantRuns(name, { stores, runtime, plan, tasks, states, agenda, marks: this.#marks });
      tenants.set(name, runs);
      await runs.start();
    }
  }

  async #look({ tenants, signal }: Leading): Promise<void> {
    for (const [tenant, runs] of tenants) {
      if (signal.aborted) return;
      await runs.look().catch((error: unknown) => {
        this.#with.runtime.log.warn({ tenant, reason: errorText(error) }, "policies over SSH are looked for again");
      });
    }
  }

  /** Begins what is due, up to `POLICY_SSH_RUNS_MAX` at once. */
  #begin(leading: Leading): void {
    const { agenda, running, lease } = leading;
    while (running.size < POLICY_SSH_RUNS_MAX && lease.held()) {
      const due = agenda.take(this.#with.runtime.clock.nowMs());
      if (!due) return;
      const work = this.#attend(leading, due).finally(() => running.delete(work));
      running.add(work);
    }
  }

  async #attend({ agenda, tenants }: Leading, due: { readonly tenant: string; readonly name: string }): Promise<void> {
    const { tenant, name } = due;
    const { runtime } = this.#with;
    try {
      agenda.done(tenant, name, await tenants.get(tenant)?.attend(name));
    } catch (error) {
      runtime.log.warn({ tenant, policy: name, reason: errorText(error) }, "a policy over SSH is attended to again");
      agenda.done(tenant, name, runtime.clock.nowMs() + POLICY_SSH_AGAIN_MS);
    }
  }

  async #pause({ agenda, running, signal }: Leading): Promise<void> {
    const { clock } = this.#with.runtime;
    const isFull = running.size >= POLICY_SSH_RUNS_MAX;
    const nextMs = isFull ? undefined : agenda.nextMs;
    const untilMs = nextMs === undefined ? Infinity : Math.max(0, nextMs - clock.nowMs());
    await wait(clock, Math.min(POLICY_SSH_LOOK_MS, untilMs), signal, agenda.changed());
  }
}
