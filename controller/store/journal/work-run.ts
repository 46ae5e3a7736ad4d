import { isAppError, type ErrorCode } from "../../../common/errors.ts";
import { wait, type Clock } from "../../../common/time.ts";
import type { Journal, NewWork, OpenWork, Versioned } from "./journal.ts";
import { isTransient } from "./transient.ts";

export interface WorkEnd {
  /** Error code of the work. Absent: the work is complete. */
  readonly code?: ErrorCode;
  readonly message: string;
}

interface WorkRunOptions<T extends OpenWork> {
  readonly journal: Pick<Journal<T>, "step" | "decide" | "end" | "inFlight">;
  readonly clock: Clock;
  /** Attempts of one run. Between them it waits `retryMs`, then twice as long, and so on. */
  readonly attempts: number;
  readonly retryMs: number;
}

export interface Attempt {
  /** True if the work was begun before, by an earlier attempt or by another controller. */
  readonly isRepeated: boolean;
  /** True if no further attempt follows in this run. */
  readonly isLast: boolean;
}

/** Thrown if another controller has taken the work, or if the work has already ended. */
class Lost extends Error {}

/** One run of journaled work by the controller that holds it. */
export class WorkRun<T extends OpenWork & { readonly end?: WorkEnd }> {
  readonly #with: WorkRunOptions<T>;
  #held: Versioned<T>;

  constructor(held: Versioned<T>, options: WorkRunOptions<T>) {
    this.#held = held;
    this.#with = options;
  }

  /** The entry as it was last written. */
  get open(): T {
    return this.#held.open;
  }

  /** Fires at an orderly stop: the work pauses. */
  get signal(): AbortSignal {
    return this.#with.journal.inFlight.stopping;
  }

  /**
   * Does the work by `once`, records how it ended and removes the entry. Repeats `once` while it fails with temporary
   * errors; another `AppError` is the end of the work. Returns the entry when the work has ended, has paused, or was
   * taken by another controller. Work that pauses stays in the journal until maintenance continues it.
   */
  async run(once: (attempt: Attempt) => Promise<NonNullable<T["end"]>>): Promise<T> {
    const { journal } = this.#with;
    try {
      if (!this.open.end) {
        const end = await this.#ended(once);
        await this.write((held) => journal.decide(held, end));
      }
      await journal.end(this.open);
    } catch (error) {
      if (!(error instanceof Lost) && !isTransient(error)) throw error;
    }
    return this.open;
  }

  /** Stores progress. Throws if another controller has taken the work; `run` catches this. */
  step(changes: Partial<NewWork<T>>): Promise<void> {
    return this.write((held) => this.#with.journal.step(held, changes));
  }

  /** Like `step`, by a write of the caller. It returns `undefined` if another controller has taken the work. */
  async write(change: (held: Versioned<T>) => Promise<Versioned<T> | undefined>): Promise<void> {
    const changed = await change(this.#held);
    if (!changed) throw new Lost();
    this.#held = changed;
  }

  async #ended(once: (attempt: Attempt) => Promise<NonNullable<T["end"]>>): Promise<NonNullable<T["end"]>> {
    const { attempts, retryMs, clock } = this.#with;
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt >= attempts;
      try {
        return await once({ isRepeated: attempt > 1 || this.open.attempt > 0, isLast });
      } catch (error) {
        if (!isAppError(error)) throw error;
        if (!isTransient(error)) return { code: error.code, message: error.message } as NonNullable<T["end"]>;
        if (error.code === "internal" || this.signal.aborted || isLast) throw error;
        await wait(clock, retryMs * attempt, this.signal);
      }
    }
  }
}
