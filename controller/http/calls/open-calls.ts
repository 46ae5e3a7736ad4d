import { SHUTDOWN_ANSWERS_MS, SHUTDOWN_WORK_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";

/** A call in progress. */
export interface OpenCall {
  /** Monotonic time of its deadline; `Infinity` if it has none. */
  readonly dueMs: number;
  /** Called once its deadline has passed. */
  expire(): void;
  /** Called when a stop cannot wait for the call any longer. */
  stop(): void;
}

/**
 * The calls in progress on this controller, with one timer for all their deadlines. At an orderly stop they have
 * `SHUTDOWN_WORK_MS` to end by themselves. Those that last longer are ended, and have `SHUTDOWN_ANSWERS_MS` for their
 * answer. A call that enters after that is ended immediately.
 */
export class OpenCalls {
  readonly #clock: Clock;
  readonly #open = new Set<OpenCall>();
  /** Monotonic time for which the timer is set. No deadline is earlier. */
  #expectedMs = Number.POSITIVE_INFINITY;
  #cancelExpected: () => void = () => undefined;
  #cancelStop: () => void = () => undefined;
  #isOver = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  enter(call: OpenCall): void {
    this.#open.add(call);
    if (this.#isOver) call.stop();
  }

  leave(call: OpenCall): void {
    this.#open.delete(call);
  }

  /**
   * Call it when a call got a deadline. The timer is seldom set: most deadlines are later than the one that it waits
   * for, also if the call with that deadline has ended meanwhile.
   */
  expect(dueMs: number): void {
    if (dueMs >= this.#expectedMs) return;
    this.#cancelExpected();
    this.#expectedMs = dueMs;
    this.#cancelExpected = this.#clock.after(dueMs - this.#clock.monotonicMs(), () => this.#expire());
  }

  #expire(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#expectedMs = Number.POSITIVE_INFINITY;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const call of [...this.#open]) {
      if (call.dueMs <= nowMs) call.expire();
      else nextMs = Math.min(nextMs, call.dueMs);
    }
    this.expect(nextMs);
  }

  /** Begins the stop. `closeAll` must close every connection, also those in use. */
  close(closeAll: () => void): void {
    this.#cancelStop();
    this.#cancelStop = this.#clock.after(SHUTDOWN_WORK_MS, () => {
      this.#isOver = true;
      for (const call of [...this.#open]) call.stop();
      this.#cancelStop = this.#clock.after(SHUTDOWN_ANSWERS_MS, closeAll);
    });
  }

  /** Call it when the server is closed: nothing is left to end. */
  closed(): void {
    this.#cancelStop();
    this.#cancelExpected();
  }
}
