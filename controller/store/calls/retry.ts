import { isAppError } from "../../../common/errors.ts";
import { STORE_ATTEMPTS_MAX, STORE_CALL_DEADLINE_MS, STORE_RETRY_MIN_MS } from "../../../common/limits.ts";
import { wait, type Clock, type Random } from "../../../common/time.ts";
import { CallDeadline } from "./call-deadline.ts";

/**
 * Repeats a call that is safe to repeat while the store is unavailable or does not report the outcome. When it gives
 * up, it throws `unknown_outcome` if an attempt may have succeeded, and `unavailable` otherwise.
 */
export class Retry {
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(of: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = of.clock;
    this.#random = of.random;
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    const startMs = this.#clock.monotonicMs();
    let perhapsDone: unknown;
    for (let attempt = 1; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        const isOverdue =
          this.#clock.monotonicMs() - startMs > STORE_CALL_DEADLINE_MS || CallDeadline.current()?.leftMs() === 0;
        if (isAppError(error, "unknown_outcome")) perhapsDone = error;
        else if (!isAppError(error, "unavailable")) throw error;
        if (attempt >= STORE_ATTEMPTS_MAX || isOverdue) throw perhapsDone ?? error;
        await wait(this.#clock, STORE_RETRY_MIN_MS * 2 ** attempt * (0.5 + this.#random.next() / 2));
      }
    }
  }
}
