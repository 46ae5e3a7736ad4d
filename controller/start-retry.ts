import { AppError, errorText, isAppError } from "../common/errors.ts";
import { START_AGAIN_MS, START_PATIENCE_MS } from "../common/limits.ts";
import { wait } from "../common/time.ts";
import type { Runtime } from "./runtime.ts";
import { isStoreDamaged } from "./store/damage.ts";

/** One start of a controller. It waits for its stores for at most `START_PATIENCE_MS` in total. */
export class StartRetry {
  readonly #runtime: Runtime;
  readonly #startMs: number;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#startMs = runtime.clock.monotonicMs();
  }

  /**
   * Repeats an idempotent step while a store is unavailable, and logs the reason for each wait. Throws immediately if a
   * store is damaged.
   */
  async during<T>(step: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#runtime;
    for (;;) {
      try {
        return await step();
      } catch (error) {
        if (!isAppError(error, "unavailable", "unknown_outcome", "deadline") || isStoreDamaged(error)) throw error;
        const leftMs = START_PATIENCE_MS - (clock.monotonicMs() - this.#startMs);
        if (leftMs <= 0) throw gaveUp(error);
        log.warn(
          { reason: errorText(error), leftSeconds: Math.ceil(leftMs / 1_000) },
          "the start waits for the stores",
        );
        await wait(clock, START_AGAIN_MS);
      }
    }
  }
}

function gaveUp(error: AppError): AppError {
  const waited = `The start has waited ${String(START_PATIENCE_MS / 1_000)} s for the stores.`;
  return new AppError(error.code, `${waited} ${error.message}`, { cause: error });
}
