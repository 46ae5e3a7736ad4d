import { STORE_CALL_DEADLINE_MS } from "../../../common/limits.ts";
import { wait, type Clock, type Random } from "../../../common/time.ts";
import { CallDeadline } from "../calls/call-deadline.ts";

const FIRST_PAUSE_MS = 20;
const PAUSE_MAX_MS = 1_000;

/**
 * The deadline of one store call; every step of the call gets it. It never exceeds the deadline of the call from
 * outside that caused it. It also determines the pauses between attempts.
 */
export class Deadline {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #endMs: number;
  readonly #call = CallDeadline.current();
  #pauseMs = FIRST_PAUSE_MS;

  constructor(clock: Clock, random: Random, lengthMs: number = STORE_CALL_DEADLINE_MS) {
    this.#clock = clock;
    this.#random = random;
    this.#endMs = clock.monotonicMs() + lengthMs;
  }

  leftMs(): number {
    const ownMs = Math.max(0, this.#endMs - this.#clock.monotonicMs());
    return Math.min(ownMs, this.#call?.leftMs() ?? ownMs);
  }

  passed(): boolean {
    return this.leftMs() === 0;
  }

  /** For the attempts of one request to `part`; see `UnansweredTime`. */
  silence(part: string): UnansweredTime {
    return new UnansweredTime(part, this.#clock, this.#call);
  }

  /** Calls back once at the deadline, unless the returned function cancels it earlier. */
  atEnd(callback: () => void): () => void {
    return this.#clock.after(this.leftMs(), callback);
  }

  /**
   * Result of `work`; at the deadline it rejects with the fault, although `work` continues. `ended` is called when
   * `work` ends, also after the deadline.
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

  /** Waits a little longer each time. Returns false if no time is left for another attempt. */
  async pause(): Promise<boolean> {
    const pauseMs = this.#pauseMs * (0.5 + this.#random.next() / 2);
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS);
    if (pauseMs >= this.leftMs()) return false;
    await wait(this.#clock, pauseMs);
    return true;
  }
}

/**
 * Tells the `CallDeadline` of the call from outside how long one request waits for `part`: from the beginning of its
 * first unanswered attempt to the end of the request.
 */
export class UnansweredTime {
  readonly #part: string;
  readonly #clock: Clock;
  readonly #call: CallDeadline | undefined;
  #beganMs = 0;
  #isKept = false;

  constructor(part: string, clock: Clock, call: CallDeadline | undefined) {
    this.#part = part;
    this.#clock = clock;
    this.#call = call;
  }

  attempt(): void {
    if (this.#call !== undefined) this.#beganMs = this.#clock.monotonicMs();
  }

  unanswered(): void {
    if (this.#isKept) return;
    this.#isKept = true;
    this.#call?.silent(this.#part, this.#beganMs);
  }

  over(): void {
    if (this.#isKept) this.#call?.answers(this.#part);
  }
}
