import { mapLimited } from "../../../../common/concurrency.ts";
import { KeyedQueue } from "../../../../common/keyed-queue.ts";
import {
  POLICY_PARALLEL_HOSTS,
  POLICY_SSH_LOOK_ALL_MS,
  POLICY_SSH_LOOK_MS,
  POLICY_SSH_LOOK_REST,
} from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { FollowedKeys } from "../../../store/kv/follow.ts";
import type { Agenda } from "../../jobs/index.ts";
import type { PolicyOnHost, SshMarks } from "./marks.ts";
import { planOf, type PlanParts, type PlannedRuns } from "./plan.ts";
import type { SshStates } from "./states.ts";
import { forgetRuns, SshTask, type TaskParts } from "./task.ts";

export interface TenantRunsParts {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly plan: PlanParts;
  readonly tasks: TaskParts;
  readonly marks: Pick<SshMarks, "all">;
  readonly states: SshStates;
  readonly agenda: Pick<Agenda, "add" | "remove">;
}

/** Prefixes of keys whose changes may change what is to run over SSH. */
const FOLLOWED = ["policies/host/", "policies/definition/", "hosts/sequence/"];

/** The policies of one tenant that this controller runs over SSH. */
export class TenantRuns {
  readonly #tenant: string;
  readonly #with: TenantRunsParts;
  readonly #followed: FollowedKeys[] = [];
  readonly #tasks = new Map<string, SshTask>();
  /** One attempt at a time for each policy on a host. */
  readonly #turns = new KeyedQueue();
  #isChanged = true;
  #isFirst = true;
  #nextLookMs = 0;
  #lookAllMs = 0;

  constructor(tenant: string, parts: TenantRunsParts) {
    this.#tenant = tenant;
    this.#with = parts;
  }

  async start(): Promise<void> {
    const { kv } = await this.#with.stores.tenant(this.#tenant);
    const change = (): void => void (this.#isChanged = true);
    for (const prefix of FOLLOWED) {
      const keys = new FollowedKeys({ kv, runtime: this.#with.runtime, prefix, put: change, end: change });
      this.#followed.push(keys);
      await keys.start();
    }
  }

  /** Ends the runs in progress. */
  stop(): void {
    for (const task of this.#tasks.values()) task.stop();
  }

  async close(): Promise<void> {
    for (const keys of this.#followed) await keys.close();
  }

  /** Runs a policy on a host if it is due. Returns the time of its next look; `undefined`: it is not to run any more. */
  async attend(name: string): Promise<number | undefined> {
    return this.#turns.run([name], async () => this.#tasks.get(name)?.attend());
  }

  /**
   * Compares the tasks with what is stored, if something changed and the last look is `POLICY_SSH_LOOK_MS` ago, or if it
   * is `POLICY_SSH_LOOK_ALL_MS` ago. A change of a host is announced before it is in its record, so the look comes later.
   */
  async look(): Promise<void> {
    const nowMs = this.#with.runtime.clock.monotonicMs();
    if (nowMs < this.#nextLookMs || (!this.#isChanged && nowMs < this.#lookAllMs)) return;
    // The look after a change is repeated once.
    this.#lookAllMs = nowMs + (this.#isChanged ? POLICY_SSH_LOOK_MS : POLICY_SSH_LOOK_ALL_MS);
    this.#nextLookMs = nowMs + POLICY_SSH_LOOK_MS;
    this.#isChanged = false;
    try {
      await this.#compare();
    } catch (error) {
      this.#isChanged = true;
      throw error;
    } finally {
      // A look reads the records of all hosts: while many of them change, it takes no more than this share of the time.
      const endedMs = this.#with.runtime.clock.monotonicMs();
      this.#nextLookMs = Math.max(this.#nextLookMs, endedMs + (endedMs - nowMs) * POLICY_SSH_LOOK_REST);
    }
  }

  async #compare(): Promise<void> {
    const { plan, marks, states } = this.#with;
    const { runs, reported } = await planOf(this.#tenant, plan);
    const left = this.#isFirst ? await marks.all(this.#tenant) : [];
    const planned = new Map(runs.map((one) => [nameOf(one.of), one]));
    for (const host of new Set(runs.map(({ of }) => of.host)))
      states.know(this.#tenant, host, statesOf(reported.get(host) ?? {}, runs, host));
    for (const one of runs) this.#plan(one);
    const gone = [...this.#tasks.keys()].filter((name) => !planned.has(name));
    await mapLimited(gone, POLICY_PARALLEL_HOSTS, (name) => this.#forget(name));
    // Another controller left these of policies that are not to run any more.
    for (const of of left) if (!planned.has(nameOf(of))) await forgetRuns(this.#with.tasks, of);
    this.#isFirst = false;
  }

  #plan(one: PlannedRuns): void {
    const name = nameOf(one.of);
    const { agenda, runtime, tasks } = this.#with;
    const task = this.#tasks.get(name);
    if (task && !task.change(one)) return;
    if (!task) this.#tasks.set(name, new SshTask(tasks, one.of, one));
    agenda.add(this.#tenant, name, runtime.clock.nowMs());
  }

  async #forget(name: string): Promise<void> {
    const task = this.#tasks.get(name);
    if (!task) return;
    this.#with.agenda.remove(this.#tenant, name);
    task.stop();
    await this.#turns.run([name], () => task.forget());
    this.#tasks.delete(name);
    await this.#with.states.report(task.of);
  }
}

function nameOf({ host, policy }: PolicyOnHost): string {
  return `${host}/${policy}`;
}

function statesOf(
  reported: Readonly<Record<string, string>>,
  runs: readonly PlannedRuns[],
  host: string,
): ReadonlyMap<string, string> {
  const wanted = new Set(runs.flatMap(({ of }) => (of.host === host ? [of.policy] : [])));
  return new Map(Object.entries(reported).filter(([policy]) => wanted.has(policy)));
}
