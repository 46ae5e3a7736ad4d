import {
  CLIENT_RETRIES_MAX,
  CLIENT_RETRY_PAUSE_MAX_MS,
  CLIENT_RETRY_PAUSE_MS,
  CLIENT_RETRY_SUCCESSES,
} from "../limits.ts";
import type { Random } from "../time.ts";
import { isOdpError } from "./error.ts";
import type { Plan } from "./plan.ts";
import type { Watch } from "./watch.ts";

export interface RetriesOptions {
  readonly random: Pick<Random, "next">;
  /** Attempts of one call; 1: no call is repeated. */
  readonly attempts: number;
}

export interface Repeated {
  readonly plan: Pick<Plan, "isRead" | "isAct">;
  /** False if the body can be sent only once. */
  readonly isReplayable: boolean;
  /** True if doing it twice does no harm, according to the caller. */
  readonly isRepeatable: boolean;
  readonly watch: Watch;
}

/**
 * Repeats calls that failed. A call that may have changed something is never repeated, as the interface has no keys by
 * which a controller would know the second call. Pauses grow and are random, and all calls of a client share a
 * budget: if everything fails, repetitions add little load.
 */
export class Retries {
  readonly #options: RetriesOptions;
  #left = CLIENT_RETRIES_MAX;

  constructor(options: RetriesOptions) {
    this.#options = options;
  }

  async run<T>(call: Repeated, attempt: () => Promise<T>): Promise<T> {
    for (let made = 1; ; made++) {
      try {
        const answer = await attempt();
        this.#left = Math.min(CLIENT_RETRIES_MAX, this.#left + 1 / CLIENT_RETRY_SUCCESSES);
        return answer;
      } catch (error) {
        const pauseMs = made < this.#options.attempts && mayRepeat(error, call) ? this.pauseMs(error, made) : Infinity;
        // A pause beyond the deadline would only hide the error.
        if (call.watch.signal.aborted || pauseMs >= call.watch.leftMs || !this.take()) throw error;
        await call.watch.pause(pauseMs);
      }
    }
  }

  /** Takes one repetition from the budget; false if there is none. */
  take(): boolean {
    // Tenths do not add up to a whole number.
    if (this.#left < 1 - 1e-9) return false;
    this.#left--;
    return true;
  }

  /** Pause after a failed attempt: at least what the controller asks for. */
  pauseMs(error: unknown, made: number): number {
    const most = Math.min(CLIENT_RETRY_PAUSE_MAX_MS, CLIENT_RETRY_PAUSE_MS * 2 ** (made - 1));
    const asked = isOdpError(error) ? (error.retryAfterMs ?? 0) : 0;
    return asked + most * this.#options.random.next();
  }
}

/** True if a repetition may succeed, and certainly does nothing twice. */
function mayRepeat(error: unknown, { plan, isReplayable, isRepeatable }: Repeated): boolean {
  if (!isReplayable || !isOdpError(error, "unavailable", "unknown_outcome", "limited")) return false;
  if (plan.isRead || isRepeatable) return true;
  return error.isUndone && (!plan.isAct || error.status === undefined);
}
