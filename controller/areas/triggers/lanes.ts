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

/** The least pause before what was left is looked at again. */
const LOOK_MIN_MS = 10;

export interface LanesDependencies {
  readonly runtime: Pick<Runtime, "clock">;
  readonly run: (errand: Errand) => Promise<void>;
  /** What is not in the answer has nothing before it. */
  readonly earlier: (errands: readonly Errand[]) => Promise<ReadonlyMap<Errand, Earlier>>;
  /** Keeps them durably as waiting for this controller. */
  readonly keep: (errands: readonly Errand[]) => Promise<void>;
  /** It is done, and was kept before. */
  readonly done: (errand: Errand) => Promise<void>;
  /** None of its runs succeeded: keeps it as failed. */
  readonly failed: (errand: Errand, error: string) => Promise<void>;
  /** Calls `ready` and `resume` for what is kept for this controller and not under way. */
  readonly takeUp: (tenant: string) => Promise<void>;
}

/** All lanes of one trigger. */
interface Trigger {
  /** Errands under way. */
  count: number;
  readonly slots: LimitFunction;
}

/**
 * Runs triggers after changes: of each trigger `TRIGGER_RUNS_AT_ONCE` side by side, the changes of one object one after
 * the other in the order of their times, and no trigger waits for another. What takes long, fails too often, or has an
 * earlier change of its object elsewhere, is kept durably, so that the caller need not wait.
 */
export class Lanes {
  readonly #with: LanesDependencies;
  /** By errand, so that a change that is told again meanwhile runs once. */
  readonly #underway = new Map<string, Underway>();
  /** By trigger and object. */
  readonly #lanes = new Map<string, Lane>();
  readonly #triggers = new Map<string, Trigger>();
  /** Triggers with changes that were left where they are kept, and their tenants. */
  readonly #left = new Map<string, string>();
  #takingUp: Promise<void> | undefined;
  /** What ended while kept changes are being read: it may be among them. */
  readonly #ended = new Set<string>();
  #scans = 0;
  readonly #closing = new AbortController();

  constructor(dependencies: LanesDependencies) {
    this.#with = dependencies;
  }

  /** Resolves when each is run, or kept durably. */
  async take(errands: readonly Errand[]): Promise<void> {
    if (errands.length === 0) return;
    const patience = new AbortController();
    const cancel = this.#with.runtime.clock.after(TRIGGER_PATIENCE_MS, () => patience.abort());
    try {
      const mine = new Set<Underway>();
      const left = await this.#begin(errands, mine);
      // At once: the other controller may wait for what is before them to leave the outbox of this one.
      await this.#leave(left);
      const ends = Promise.all(Array.from(mine, ({ end }) => end));
      if (!(await isBefore(ends, patience.signal))) await this.#keep([...mine]);
    } finally {
      cancel();
    }
  }

  /** Call `ready` and `resume` within `work`, and read there what is kept: then nothing is resumed that just ended. */
  async scan(work: () => Promise<void>): Promise<void> {
    this.#scans += 1;
    try {
      await work();
    } finally {
      this.#scans -= 1;
      if (this.#scans === 0) this.#ended.clear();
    }
  }

  /** Those that can be resumed: nothing is before them, and there is room. */
  async ready(errands: readonly Errand[]): Promise<readonly Errand[]> {
    const fresh = errands.filter((errand) => this.#isNew(errand));
    const { ready, left } = await this.#sorted(fresh);
    for (const { event, trigger } of left) this.#left.set(nameOf({ event, trigger }), event.tenant);
    this.#takeUpSoon();
    return ready;
  }

  /** Goes on with one that is kept, of those that are ready. */
  resume(errand: Errand): void {
    if (this.#isNew(errand)) this.#start(errand, true);
  }

  #isNew(errand: Errand): boolean {
    return !this.#underway.has(keyOf(errand)) && !this.#ended.has(keyOf(errand));
  }

  /** What is under way ends; the rest stays where it is kept, or is told again. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([...this.#underway.values()].map(({ end }) => end));
    await this.#takingUp;
  }

  /** Starts those that nothing is before and that there is room for; answers the others. */
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

  /** Absent when it has to be run again. */
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

  /** It ended while it was being kept. */
  async #forget({ errand, end }: Underway): Promise<void> {
    const error = await end;
    await (error === undefined ? this.#with.done(errand) : this.#with.failed(errand, error));
  }

  /** Leaves them where they are kept until there is room and nothing is before them. */
  async #leave(errands: readonly Errand[]): Promise<void> {
    if (errands.length === 0) return;
    await this.#with.keep(errands);
    for (const errand of errands) this.#left.set(nameOf(errand), errand.event.tenant);
    this.#takeUpSoon();
  }

  #takeUpSoon(): void {
    if (this.#left.size > 0) this.#takingUp ??= this.#takeUp().finally(() => (this.#takingUp = undefined));
  }

  /** What was left is taken up while it is left, half of what a trigger may have being over. */
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
      // The store is away, or the tenant is gone: maintenance says so.
      for (const [name, of] of due) if (of === tenant) this.#left.set(name, of);
    }
  }
}

/** True when it resolved before the signal. */
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
