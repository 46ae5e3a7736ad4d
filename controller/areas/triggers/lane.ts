import { TRIGGER_AGAIN_MAX_MS, TRIGGER_AGAIN_MIN_MS } from "../../../common/limits.ts";
import type { Errand } from "./errand.ts";

export interface Underway {
  readonly errand: Errand;
  /** The error of the last run; none when one succeeded. Rejects when it was not run to its end. */
  readonly end: Promise<string | undefined>;
  isKept: boolean;
  /** Runs that failed. */
  failures: number;
}

/** How an attempt ended: by `error`, or well. */
export type AttemptEnd = { readonly error: string | undefined };

interface Draining {
  /** `undefined` when it is to be run again; rejects when it is given up unrun. */
  readonly attempt: (underway: Underway) => Promise<AttemptEnd | undefined>;
  readonly pause: (pauseMs: number) => Promise<void>;
  /** Called when it has left the lane, before its end is told. */
  readonly over: (underway: Underway) => void;
}

interface Waiting {
  readonly underway: Underway;
  pauseMs: number;
  readonly resolve: (error: string | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** The changes of one object for one trigger: one after the other, in the order of their times. */
export class Lane {
  readonly #waiting: Waiting[] = [];
  #isDraining = false;

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  add(errand: Errand, isKept: boolean): Underway {
    let resolve: Waiting["resolve"] = () => undefined;
    let reject: Waiting["reject"] = () => undefined;
    const end = new Promise<string | undefined>((...given) => ([resolve, reject] = given));
    // Heard of by those who took it; a resumed one stays kept.
    end.catch(() => undefined);
    const underway: Underway = { errand, end, isKept, failures: 0 };
    const later = this.#waiting.findIndex((one) => one.underway.errand.event.timeMs > errand.event.timeMs);
    const at = later < 0 ? this.#waiting.length : later;
    this.#waiting.splice(at, 0, { underway, pauseMs: TRIGGER_AGAIN_MIN_MS, resolve, reject });
    return underway;
  }

  /** Goes on until nothing waits. What is added meanwhile and is earlier than the one that is tried again comes first. */
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
