import { TRIGGER_AGAIN_MAX_MS, TRIGGER_AGAIN_MIN_MS } from "../../../common/limits.ts";
import type { TriggerTask } from "./trigger-task.ts";

export interface Underway {
  readonly task: TriggerTask;
  /**
   * Resolves with the error of the last run, or `undefined` on success. Rejects if the controller ends first, or if the
   * result cannot be stored.
   */
  readonly end: Promise<string | undefined>;
  /** It is stored as waiting. */
  isKept: boolean;
  /** Its last run has ended. What is stored of it afterwards must be completed by who stored it. */
  hasRun: boolean;
  /** Number of failed runs. */
  failures: number;
}

/** End of an attempt; `error` is `undefined` on success. */
export type AttemptEnd = { readonly error: string | undefined };

interface Draining {
  /** Runs the change once. Resolves with `undefined` if it must be run again. Rejects if the change is given up. */
  readonly attempt: (underway: Underway) => Promise<AttemptEnd | undefined>;
  readonly pause: (pauseMs: number) => Promise<void>;
  /** Called after the change has left the queue and before `end` settles. */
  readonly over: (underway: Underway) => void;
}

interface Waiting {
  readonly underway: Underway;
  pauseMs: number;
  readonly resolve: (error: string | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** The changes of one object for one trigger, run one after the other in the order of their times. */
export class TriggerQueue {
  readonly #waiting: Waiting[] = [];
  #isDraining = false;

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  add(task: TriggerTask, isKept: boolean): Underway {
    let resolve: Waiting["resolve"] = () => undefined;
    let reject: Waiting["reject"] = () => undefined;
    const end = new Promise<string | undefined>((...given) => ([resolve, reject] = given));
    // Prevents an unhandled rejection. The callers of `take` handle it; a resumed change stays stored.
    end.catch(() => undefined);
    const underway: Underway = { task, end, isKept, hasRun: false, failures: 0 };
    const later = this.#waiting.findIndex((one) => one.underway.task.event.timeMs > task.event.timeMs);
    const at = later < 0 ? this.#waiting.length : later;
    this.#waiting.splice(at, 0, { underway, pauseMs: TRIGGER_AGAIN_MIN_MS, resolve, reject });
    return underway;
  }

  /**
   * Runs the changes until none waits. If an earlier change is added in the meantime, it runs before the current one is
   * retried.
   */
  async drain(by: Draining): Promise<void> {
    if (this.#isDraining) return;
    this.#isDraining = true;
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) await this.#step(first, by);
    this.#isDraining = false;
  }

  async #step(first: Waiting, { attempt, pause, over }: Draining): Promise<void> {
    const leave = (): void => {
      this.#waiting.splice(this.#waiting.indexOf(first), 1);
      over(first.underway);
    };
    try {
      const end = await attempt(first.underway);
      if (end === undefined) {
        await pause(first.pauseMs);
        first.pauseMs = Math.min(2 * first.pauseMs, TRIGGER_AGAIN_MAX_MS);
        return;
      }
      leave();
      first.resolve(end.error);
    } catch (error) {
      leave();
      first.reject(error);
    }
  }
}
