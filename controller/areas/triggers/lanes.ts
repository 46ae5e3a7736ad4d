import { AppError, errorText } from "../../../common/errors.ts";
import {
  TRIGGER_AGAIN_MAX_MS,
  TRIGGER_AGAIN_MIN_MS,
  TRIGGER_ATTEMPTS_MAX,
  TRIGGER_PATIENCE_MS,
  TRIGGER_WAITING_MAX,
} from "../../../common/limits.ts";
import { withinTime } from "../../../common/concurrency.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import { triggerName, type ObjectChangeEvent, type TriggerDefinition } from "../objects/index.ts";
import { isPassing } from "./run.ts";

/** One change for one trigger. */
export interface Errand {
  readonly event: ObjectChangeEvent;
  readonly trigger: TriggerDefinition;
}

export interface LanesDependencies {
  readonly runtime: Pick<Runtime, "clock">;
  readonly run: (errand: Errand) => Promise<void>;
  /** Keeps it durably as waiting; `isMine`: this controller goes on with it. */
  readonly keep: (errand: Errand, isMine: boolean) => Promise<void>;
  /** It is done, and was kept before. */
  readonly done: (errand: Errand) => Promise<void>;
  /** None of its runs succeeded: keeps it as failed. */
  readonly failed: (errand: Errand, error: string) => Promise<void>;
}

interface Underway {
  readonly errand: Errand;
  /** The error of the last run; none when one succeeded. */
  readonly end: Promise<string | undefined>;
  isKept: boolean;
}

/**
 * Runs triggers after changes: of each trigger one change after the other, in their order, and no trigger waits for
 * another. What takes long, or fails too often, is kept durably, so that whoever told of the change need not wait.
 */
export class Lanes {
  readonly #with: LanesDependencies;
  /** By errand, so that a change that is told again meanwhile runs once. */
  readonly #underway = new Map<string, Underway>();
  readonly #lanes = new Map<string, { count: number; tail: Promise<void> }>();
  readonly #closing = new AbortController();

  constructor(dependencies: LanesDependencies) {
    this.#with = dependencies;
  }

  /** Resolves when each is run, or kept durably. */
  async take(errands: readonly Errand[]): Promise<void> {
    const taken = await Promise.all(errands.map((errand) => this.#begin(errand)));
    const mine = taken.filter((one) => one !== undefined);
    const ends = Promise.all(mine.map(({ end }) => end));
    if (
      (await withinTime(
        this.#with.runtime.clock,
        ends.then(() => true),
        TRIGGER_PATIENCE_MS,
      )) === true
    )
      return;
    await Promise.all(mine.map((one) => this.#keep(one)));
  }

  /** Whether `resume` would go on with it: it is not under way, and there is room. */
  canResume(errand: Errand): boolean {
    return !this.#isFull(errand) && !this.#underway.has(keyOf(errand));
  }

  /** Goes on with one that is kept. */
  resume(errand: Errand): void {
    if (this.canResume(errand)) this.#start(errand, true);
  }

  /** What is under way ends; the rest stays where it is kept, or is told again. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([...this.#underway.values()].map(({ end }) => end));
  }

  async #begin(errand: Errand): Promise<Underway | undefined> {
    const known = this.#underway.get(keyOf(errand));
    if (known !== undefined) return known;
    if (!this.#isFull(errand)) return this.#start(errand, false);
    await this.#with.keep(errand, false);
    return undefined;
  }

  #isFull({ event, trigger }: Errand): boolean {
    return (this.#lanes.get(laneOf(event, trigger))?.count ?? 0) >= TRIGGER_WAITING_MAX;
  }

  #start(errand: Errand, isKept: boolean): Underway {
    const key = keyOf(errand);
    const name = laneOf(errand.event, errand.trigger);
    const lane = this.#lanes.get(name) ?? { count: 0, tail: Promise.resolve() };
    lane.count += 1;
    const end = lane.tail.then(async () => {
      try {
        return await this.#run(underway);
      } finally {
        this.#underway.delete(key);
        lane.count -= 1;
        if (lane.count === 0) this.#lanes.delete(name);
      }
    });
    lane.tail = end.then(
      () => undefined,
      () => undefined,
    );
    this.#lanes.set(name, lane);
    const underway: Underway = { errand, end, isKept };
    // Heard of by those who took it; a resumed one stays kept.
    end.catch(() => undefined);
    this.#underway.set(key, underway);
    return underway;
  }

  async #run(underway: Underway): Promise<string | undefined> {
    const { errand } = underway;
    const { clock } = this.#with.runtime;
    let pauseMs = TRIGGER_AGAIN_MIN_MS;
    for (let failures = 0; ; ) {
      if (this.#closing.signal.aborted) throw new AppError("unavailable", "The controller ends.");
      try {
        await this.#with.run(errand);
        break;
      } catch (error) {
        if (!isPassing(error)) failures += 1;
        if (failures >= TRIGGER_ATTEMPTS_MAX) {
          await this.#with.failed(errand, errorText(error));
          return errorText(error);
        }
      }
      await wait(clock, pauseMs, this.#closing.signal);
      pauseMs = Math.min(2 * pauseMs, TRIGGER_AGAIN_MAX_MS);
    }
    if (underway.isKept) await this.#with.done(errand);
    return undefined;
  }

  async #keep(underway: Underway): Promise<void> {
    const { errand } = underway;
    if (underway.isKept) return;
    const isOver = (): boolean => this.#underway.get(keyOf(errand)) !== underway;
    if (isOver()) return void (await underway.end);
    await this.#with.keep(errand, true);
    underway.isKept = true;
    if (!isOver()) return;
    // It ended while it was being kept.
    const error = await underway.end;
    await (error === undefined ? this.#with.done(errand) : this.#with.failed(errand, error));
  }
}

function laneOf({ tenant }: ObjectChangeEvent, trigger: TriggerDefinition): string {
  return `${tenant} ${triggerName(trigger)}`;
}

function keyOf({ event, trigger }: Errand): string {
  return [laneOf(event, trigger), event.class, event.id, event.timeMs, event.action].join(" ");
}
