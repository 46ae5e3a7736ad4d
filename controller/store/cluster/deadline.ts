import { STORE_CALL_DEADLINE_MS } from "../../../common/limits.ts";
import { wait, type Clock, type Random } from "../../../common/time.ts";

const FIRST_PAUSE_MS = 20;
const PAUSE_MAX_MS = 1_000;

/** The end of one call, handed down through everything it does. Counts the pauses between its attempts. */
export class Deadline {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #endMs: number;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(clock: Clock, random: Random, lengthMs: number = STORE_CALL_DEADLINE_MS) {
    this.#clock = clock;
    this.#random = random;
    this.#endMs = clock.monotonicMs() + lengthMs;
  }

  leftMs(): number {
    return Math.max(0, this.#endMs - this.#clock.monotonicMs());
  }

  passed(): boolean {
    return this.leftMs() === 0;
  }

  /** Calls back once at the end of the time, unless it is cancelled by the answer before. */
  atEnd(callback: () => void): () => void {
    return this.#clock.after(this.leftMs(), callback);
  }

  /**
   * What `work` answers, or the fault at the end of the time, even while `work` continues. `ended` is called when
   * `work` ends, however late.
   */
  bound<T>(work: Promise<T>, fault: () => Error, ended: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = this.atEnd(() => reject(fault()));
      const end =
        <A>(settle: (answer: A) => void) =>
        (answer: A): void => {
          cancel();
          ended();
          settle(answer);
        };
      work.then(end(resolve), end(reject));
    });
  }

  /** Waits a little longer each time; false when there is no time left for another attempt. */
  async pause(): Promise<boolean> {
    const pauseMs = this.#pauseMs * (0.5 + this.#random.next() / 2);
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS);
    if (pauseMs >= this.leftMs()) return false;
    await wait(this.#clock, pauseMs);
    return true;
  }
}
