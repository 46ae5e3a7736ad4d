import { AppError, errorText, isAppError } from "../common/errors.ts";
import { START_AGAIN_MS, START_PATIENCE_MS } from "../common/limits.ts";
import { wait } from "../common/time.ts";
import type { Runtime } from "./runtime.ts";
import { isStoreDamaged } from "./store/damage.ts";

/** One start of a controller, which waits for its stores for `START_PATIENCE_MS` in all. */
export class StartPatience {
  readonly #runtime: Runtime;
  readonly #startMs: number;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#startMs = runtime.clock.monotonicMs();
  }

  /**
   * Repeats a step that is safe to repeat while a part of the stores is away, and says for what it waits. A damaged
   * store is refused at once.
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
