import pLimit, { type LimitFunction } from "p-limit";
import { AppError, errorText } from "../../../common/errors.ts";
import {
  TRIGGER_AGAIN_MAX_MS,
  TRIGGER_ATTEMPTS_MAX,
  TRIGGER_PATIENCE_MS,
  TRIGGER_RUNS_AT_ONCE,
  TRIGGER_WAITING_MAX,
} from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import { keyOf, queueOf, nameOf, type Earlier, type TriggerTask, type Named } from "./trigger-task.ts";
import { TriggerQueue, type AttemptEnd, type Underway } from "./trigger-queue.ts";
import { mayRunAgain } from "./run.ts";

/** Minimum pause in ms between two checks for changes that were left in the store. */
const LOOK_MIN_MS = 10;

export interface LanesDependencies {
  readonly runtime: Pick<Runtime, "clock">;
  readonly run: (task: TriggerTask) => Promise<void>;
  /** Finds unfinished earlier changes of the same objects. A task that has none is not in the result. */
  readonly earlier: (tasks: readonly TriggerTask[]) => Promise<ReadonlyMap<TriggerTask, Earlier>>;
  /** Stores the tasks durably as waiting, with this controller as owner. */
  readonly keep: (tasks: readonly TriggerTask[]) => Promise<void>;
  /** Called when a stored task has succeeded, to remove it. */
  readonly done: (task: TriggerTask) => Promise<void>;
  /** Called when a task has failed `TRIGGER_ATTEMPTS_MAX` times, to store it as failed. */
  readonly failed: (task: TriggerTask, error: string) => Promise<void>;
  /** Reads the stored tasks of this controller that are not in progress, and calls `ready` and `resume` for them. */
  readonly takeUp: (tenant: string) => Promise<void>;
}

/** State shared by all queues of one trigger. */
interface Trigger {
  /** Number of tasks in progress. */
  count: number;
  readonly slots: LimitFunction;
}

/**
 * Runs triggers after changes. Each trigger has up to `TRIGGER_RUNS_AT_ONCE` concurrent runs on this controller. The
 * changes of one object run one after the other in the order of their times. Triggers do not wait for one another. A
 * change is stored durably if it takes long, fails too often, finds `TRIGGER_WAITING_MAX` tasks in progress, or has an
 * unfinished earlier change that is not in progress here. Then the caller need not wait for it.
 */
export class TriggerQueues {
  readonly #with: LanesDependencies;
  /** By task. A change that is reported again while it is in progress runs only once. */
  readonly #underway = new Map<string, Underway>();
  /** By trigger and object. */
  readonly #queues = new Map<string, TriggerQueue>();
  readonly #triggers = new Map<string, Trigger>();
  /** Triggers with tasks left in the store, by name, each with its tenant. */
  readonly #left = new Map<string, string>();
  #takingUp: Promise<void> | undefined;
  /** Tasks that ended during a scan of the store. The scan may still return them, so they must not be resumed. */
  readonly #ended = new Set<string>();
  #scans = 0;
  readonly #closing = new AbortController();

  constructor(dependencies: LanesDependencies) {
    this.#with = dependencies;
  }

  /** Resolves when each task has run or is stored durably. */
  async take(tasks: readonly TriggerTask[]): Promise<void> {
    if (tasks.length === 0) return;
    const patience = new AbortController();
    const cancel = this.#with.runtime.clock.after(TRIGGER_PATIENCE_MS, () => patience.abort());
    try {
      const mine = new Set<Underway>();
      const left = await this.#begin(tasks, mine);
      // Stored without delay, because another controller may wait until the changes leave this controller's outbox.
      await this.#leave(left);
      const ends = Promise.all(Array.from(mine, ({ end }) => end));
      if (!(await isBefore(ends, patience.signal))) await this.#keep([...mine]);
    } finally {
      cancel();
    }
  }

  /**
   * Runs `work`, which reads stored tasks and calls `ready` and `resume`. A task that ends during `work` is not
   * resumed.
   */
  async scan(work: () => Promise<void>): Promise<void> {
    this.#scans += 1;
    try {
      await work();
    } finally {
      this.#scans -= 1;
      if (this.#scans === 0) this.#ended.clear();
    }
  }

  /**
   * Returns the tasks that can be resumed: there is room, and their earlier changes are finished or in progress here.
   * Looks for the other tasks again later.
   */
  async ready(tasks: readonly TriggerTask[]): Promise<readonly TriggerTask[]> {
    const fresh = tasks.filter((task) => this.#isNew(task));
    const { ready, left } = await this.#sorted(fresh);
    for (const { event, trigger } of left) this.#left.set(nameOf({ event, trigger }), event.tenant);
    this.#takeUpSoon();
    return ready;
  }

  /** Continues a stored task that `ready` returned. */
  resume(task: TriggerTask): void {
    if (this.#isNew(task)) this.#start(task, true);
  }

  #isNew(task: TriggerTask): boolean {
    return !this.#underway.has(keyOf(task)) && !this.#ended.has(keyOf(task));
  }

  /** Waits for the tasks in progress. The others stay stored or are reported again. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([...this.#underway.values()].map(({ end }) => end));
    await this.#takingUp;
  }

  /**
   * Starts the tasks for which there is room and whose earlier changes are finished or in progress here. Adds all tasks
   * in progress to `mine`; returns the others.
   */
  async #begin(tasks: readonly TriggerTask[], mine: Set<Underway>): Promise<readonly TriggerTask[]> {
    const fresh: TriggerTask[] = [];
    for (const task of tasks) {
      const known = this.#underway.get(keyOf(task));
      if (known === undefined) fresh.push(task);
      else mine.add(known);
    }
    const { ready, left } = await this.#sorted(fresh);
    for (const task of ready) mine.add(this.#underway.get(keyOf(task)) ?? this.#start(task, false));
    return left;
  }

  async #sorted(
    tasks: readonly TriggerTask[],
  ): Promise<{ readonly ready: readonly TriggerTask[]; readonly left: TriggerTask[] }> {
    const ready = new Map<string, TriggerTask>();
    const left: TriggerTask[] = [];
    if (tasks.length === 0) return { ready: [], left };
    const earlier = await this.#with.earlier(tasks);
    const held = new Set<string>();
    const counts = new Map<string, number>();
    for (const task of [...tasks].sort((one, other) => one.event.timeMs - other.event.timeMs)) {
      const { kept = [], isElsewhere = false } = earlier.get(task) ?? {};
      const isFree = (one: Named): boolean => this.#underway.has(keyOf(one)) || ready.has(keyOf(one));
      const count = counts.get(nameOf(task)) ?? this.#triggers.get(nameOf(task))?.count ?? 0;
      const waits = isElsewhere || held.has(queueOf(task)) || count >= TRIGGER_WAITING_MAX || !kept.every(isFree);
      if (waits) held.add(queueOf(task));
      else counts.set(nameOf(task), count + 1);
      if (waits) left.push(task);
      else ready.set(keyOf(task), task);
    }
    return { ready: [...ready.values()], left };
  }

  #start(task: TriggerTask, isKept: boolean): Underway {
    const [name, laneName] = [nameOf(task), queueOf(task)];
    const trigger = this.#triggers.get(name) ?? { count: 0, slots: pLimit(TRIGGER_RUNS_AT_ONCE) };
    trigger.count += 1;
    this.#triggers.set(name, trigger);
    const queue = this.#queues.get(laneName) ?? new TriggerQueue();
    this.#queues.set(laneName, queue);
    const underway = queue.add(task, isKept);
    this.#underway.set(keyOf(task), underway);
    void queue.drain({
      attempt: (one) => this.#attempt(one, trigger.slots),
      pause: (pauseMs) => wait(this.#with.runtime.clock, pauseMs, this.#closing.signal),
      over: (one) => {
        this.#underway.delete(keyOf(one.task));
        if (this.#scans > 0) this.#ended.add(keyOf(one.task));
        if (queue.isEmpty) this.#queues.delete(laneName);
        trigger.count -= 1;
        if (trigger.count === 0) this.#triggers.delete(name);
      },
    });
    return underway;
  }

  /** Runs the task once. Resolves with `undefined` if it must be run again. */
  async #attempt(underway: Underway, slots: LimitFunction): Promise<AttemptEnd | undefined> {
    const { task } = underway;
    try {
      await slots(() => (this.#closing.signal.aborted ? Promise.reject(closing()) : this.#with.run(task)));
    } catch (error) {
      if (this.#closing.signal.aborted) throw error;
      if (!mayRunAgain(error)) underway.failures += 1;
      if (underway.failures < TRIGGER_ATTEMPTS_MAX) return undefined;
      underway.hasRun = true;
      await this.#with.failed(task, errorText(error));
      return { error: errorText(error) };
    }
    underway.hasRun = true;
    if (underway.isKept) await this.#with.done(task);
    return { error: undefined };
  }

  async #keep(underway: readonly Underway[]): Promise<void> {
    const isOver = (one: Underway): boolean => this.#underway.get(keyOf(one.task)) !== one;
    await Promise.all(underway.filter((one) => !one.isKept && isOver(one)).map(({ end }) => end));
    const unkept = underway.filter((one) => !one.isKept && !isOver(one));
    await this.#with.keep(unkept.map(({ task }) => task));
    for (const one of unkept) one.isKept = true;
    await Promise.all(unkept.filter((one) => one.hasRun || isOver(one)).map((one) => this.#forget(one)));
  }

  /** Completes a task that ended while it was being stored: removes it, or stores it as failed. */
  async #forget({ task, end }: Underway): Promise<void> {
    const error = await end;
    await (error === undefined ? this.#with.done(task) : this.#with.failed(task, error));
  }

  /** Stores the tasks. They stay in the store until there is room and their earlier changes are finished. */
  async #leave(tasks: readonly TriggerTask[]): Promise<void> {
    if (tasks.length === 0) return;
    await this.#with.keep(tasks);
    for (const task of tasks) this.#left.set(nameOf(task), task.event.tenant);
    this.#takeUpSoon();
  }

  #takeUpSoon(): void {
    if (this.#left.size > 0) this.#takingUp ??= this.#takeUp().finally(() => (this.#takingUp = undefined));
  }

  /** Resumes the stored tasks of a trigger when at most half of `TRIGGER_WAITING_MAX` tasks are in progress. */
  async #takeUp(): Promise<void> {
    let pauseMs = LOOK_MIN_MS;
    while (this.#left.size > 0) {
      await wait(this.#with.runtime.clock, pauseMs, this.#closing.signal);
      if (this.#closing.signal.aborted) return;
      pauseMs = Math.min(2 * pauseMs, TRIGGER_AGAIN_MAX_MS);
      const due = [...this.#left].filter(([name]) => (this.#triggers.get(name)?.count ?? 0) <= TRIGGER_WAITING_MAX / 2);
      for (const [name] of due) this.#left.delete(name);
      const before = this.#underway.size;
      for (const tenant of new Set(due.map(([, of]) => of))) await this.#takeUpOf(tenant, due);
      if (this.#underway.size > before) pauseMs = LOOK_MIN_MS;
    }
  }

  async #takeUpOf(tenant: string, due: readonly (readonly [name: string, tenant: string])[]): Promise<void> {
    try {
      await this.#with.takeUp(tenant);
    } catch {
      // The store is unavailable or the tenant is deleted; maintenance reports it.
      for (const [name, of] of due) if (of === tenant) this.#left.set(name, of);
    }
  }
}

/** Returns true if the work resolved before the signal. */
async function isBefore(work: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  let late = (): void => undefined;
  const isLate = new Promise<false>((resolve) => (late = () => resolve(false)));
  if (signal.aborted) late();
  signal.addEventListener("abort", late, { once: true });
  return Promise.race([work.then(() => true as const), isLate]);
}

function closing(): AppError {
  return new AppError("unavailable", "The controller ends.");
}
