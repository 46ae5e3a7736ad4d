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
import { keyOf, laneOf, nameOf, type Earlier, type Errand, type Named } from "./errand.ts";
import { Lane, type AttemptEnd, type Underway } from "./lane.ts";
import { isPassing } from "./run.ts";

/** Minimum pause in ms before the lanes check for changes left in the store again. */
const LOOK_MIN_MS = 10;

export interface LanesDependencies {
  readonly runtime: Pick<Runtime, "clock">;
  readonly run: (errand: Errand) => Promise<void>;
  /** Finds the unfinished earlier changes. An errand that is missing from the result has none. */
  readonly earlier: (errands: readonly Errand[]) => Promise<ReadonlyMap<Errand, Earlier>>;
  /** Stores them durably as waiting for this controller. */
  readonly keep: (errands: readonly Errand[]) => Promise<void>;
  /** Called when a stored errand has succeeded. */
  readonly done: (errand: Errand) => Promise<void>;
  /** Called when all runs have failed: stores it as failed. */
  readonly failed: (errand: Errand, error: string) => Promise<void>;
  /** Calls `ready` and `resume` for the errands stored for this controller that are not in progress. */
  readonly takeUp: (tenant: string) => Promise<void>;
}

/** State shared by all lanes of one trigger. */
interface Trigger {
  /** Number of errands in progress. */
  count: number;
  readonly slots: LimitFunction;
}

/**
 * Runs triggers after changes. Each trigger has up to `TRIGGER_RUNS_AT_ONCE` concurrent runs. The changes of one object
 * run one after the other in the order of their times. No trigger waits for another. A change that takes long, fails
 * too often, or has an earlier change on another controller is stored durably, so that the caller need not wait.
 */
export class Lanes {
  readonly #with: LanesDependencies;
  /** By errand, so that a change reported again in the meantime runs once. */
  readonly #underway = new Map<string, Underway>();
  /** By trigger and object. */
  readonly #lanes = new Map<string, Lane>();
  readonly #triggers = new Map<string, Trigger>();
  /** Maps triggers with changes left in the store to their tenants. */
  readonly #left = new Map<string, string>();
  #takingUp: Promise<void> | undefined;
  /** Errands that ended during a scan of the store: the scan may still return them. */
  readonly #ended = new Set<string>();
  #scans = 0;
  readonly #closing = new AbortController();

  constructor(dependencies: LanesDependencies) {
    this.#with = dependencies;
  }

  /** Resolves when each errand has run or is stored durably. */
  async take(errands: readonly Errand[]): Promise<void> {
    if (errands.length === 0) return;
    const patience = new AbortController();
    const cancel = this.#with.runtime.clock.after(TRIGGER_PATIENCE_MS, () => patience.abort());
    try {
      const mine = new Set<Underway>();
      const left = await this.#begin(errands, mine);
      // Stored at once: another controller may wait until earlier changes leave this controller's outbox.
      await this.#leave(left);
      const ends = Promise.all(Array.from(mine, ({ end }) => end));
      if (!(await isBefore(ends, patience.signal))) await this.#keep([...mine]);
    } finally {
      cancel();
    }
  }

  /** Read the stored errands and call `ready` and `resume` within `work`: an errand that just ended is not resumed. */
  async scan(work: () => Promise<void>): Promise<void> {
    this.#scans += 1;
    try {
      await work();
    } finally {
      this.#scans -= 1;
      if (this.#scans === 0) this.#ended.clear();
    }
  }

  /** Returns the errands that can be resumed: they have no earlier change, and there is room. */
  async ready(errands: readonly Errand[]): Promise<readonly Errand[]> {
    const fresh = errands.filter((errand) => this.#isNew(errand));
    const { ready, left } = await this.#sorted(fresh);
    for (const { event, trigger } of left) this.#left.set(nameOf({ event, trigger }), event.tenant);
    this.#takeUpSoon();
    return ready;
  }

  /** Continues a stored errand that `ready` returned. */
  resume(errand: Errand): void {
    if (this.#isNew(errand)) this.#start(errand, true);
  }

  #isNew(errand: Errand): boolean {
    return !this.#underway.has(keyOf(errand)) && !this.#ended.has(keyOf(errand));
  }

  /** Waits for the errands in progress. The others stay stored or are reported again. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([...this.#underway.values()].map(({ end }) => end));
    await this.#takingUp;
  }

  /** Starts the errands that have no earlier change and for which there is room; returns the others. */
  async #begin(errands: readonly Errand[], mine: Set<Underway>): Promise<readonly Errand[]> {
    const fresh: Errand[] = [];
    for (const errand of errands) {
      const known = this.#underway.get(keyOf(errand));
      if (known === undefined) fresh.push(errand);
      else mine.add(known);
    }
    const { ready, left } = await this.#sorted(fresh);
    for (const errand of ready) mine.add(this.#underway.get(keyOf(errand)) ?? this.#start(errand, false));
    return left;
  }

  async #sorted(errands: readonly Errand[]): Promise<{ readonly ready: readonly Errand[]; readonly left: Errand[] }> {
    const ready = new Map<string, Errand>();
    const left: Errand[] = [];
    if (errands.length === 0) return { ready: [], left };
    const earlier = await this.#with.earlier(errands);
    const held = new Set<string>();
    const counts = new Map<string, number>();
    for (const errand of [...errands].sort((one, other) => one.event.timeMs - other.event.timeMs)) {
      const { kept = [], isElsewhere = false } = earlier.get(errand) ?? {};
      const isFree = (one: Named): boolean => this.#underway.has(keyOf(one)) || ready.has(keyOf(one));
      const count = counts.get(nameOf(errand)) ?? this.#triggers.get(nameOf(errand))?.count ?? 0;
      const waits = isElsewhere || held.has(laneOf(errand)) || count >= TRIGGER_WAITING_MAX || !kept.every(isFree);
      if (waits) held.add(laneOf(errand));
      else counts.set(nameOf(errand), count + 1);
      if (waits) left.push(errand);
      else ready.set(keyOf(errand), errand);
    }
    return { ready: [...ready.values()], left };
  }

  #start(errand: Errand, isKept: boolean): Underway {
    const [name, laneName] = [nameOf(errand), laneOf(errand)];
    const trigger = this.#triggers.get(name) ?? { count: 0, slots: pLimit(TRIGGER_RUNS_AT_ONCE) };
    trigger.count += 1;
    this.#triggers.set(name, trigger);
    const lane = this.#lanes.get(laneName) ?? new Lane();
    this.#lanes.set(laneName, lane);
    const underway = lane.add(errand, isKept);
    this.#underway.set(keyOf(errand), underway);
    void lane.drain({
      attempt: (one) => this.#attempt(one, trigger.slots),
      pause: (pauseMs) => wait(this.#with.runtime.clock, pauseMs, this.#closing.signal),
      over: (one) => {
        this.#underway.delete(keyOf(one.errand));
        if (this.#scans > 0) this.#ended.add(keyOf(one.errand));
        if (lane.isEmpty) this.#lanes.delete(laneName);
        trigger.count -= 1;
        if (trigger.count === 0) this.#triggers.delete(name);
      },
    });
    return underway;
  }

  /** Resolves with `undefined` if the errand must be run again. */
  async #attempt(underway: Underway, slots: LimitFunction): Promise<AttemptEnd | undefined> {
    const { errand } = underway;
    try {
      await slots(() => (this.#closing.signal.aborted ? Promise.reject(closing()) : this.#with.run(errand)));
    } catch (error) {
      if (this.#closing.signal.aborted) throw error;
      if (!isPassing(error)) underway.failures += 1;
      if (underway.failures < TRIGGER_ATTEMPTS_MAX) return undefined;
      await this.#with.failed(errand, errorText(error));
      return { error: errorText(error) };
    }
    if (underway.isKept) await this.#with.done(errand);
    return { error: undefined };
  }

  async #keep(underway: readonly Underway[]): Promise<void> {
    const isOver = (one: Underway): boolean => this.#underway.get(keyOf(one.errand)) !== one;
    await Promise.all(underway.filter((one) => !one.isKept && isOver(one)).map(({ end }) => end));
    const unkept = underway.filter((one) => !one.isKept && !isOver(one));
    await this.#with.keep(unkept.map(({ errand }) => errand));
    for (const one of unkept) one.isKept = true;
    await Promise.all(unkept.filter(isOver).map((one) => this.#forget(one)));
  }

  /** Handles an errand that ended while it was being stored. */
  async #forget({ errand, end }: Underway): Promise<void> {
    const error = await end;
    await (error === undefined ? this.#with.done(errand) : this.#with.failed(errand, error));
  }

  /** Leaves the errands in the store until there is room and they have no earlier change. */
  async #leave(errands: readonly Errand[]): Promise<void> {
    if (errands.length === 0) return;
    await this.#with.keep(errands);
    for (const errand of errands) this.#left.set(nameOf(errand), errand.event.tenant);
    this.#takeUpSoon();
  }

  #takeUpSoon(): void {
    if (this.#left.size > 0) this.#takingUp ??= this.#takeUp().finally(() => (this.#takingUp = undefined));
  }

  /** Resumes stored errands of a trigger once at most half of its maximum is in progress. */
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
