import { setMaxListeners } from "node:events";
import { withinTime } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { SHUTDOWN_WORK_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";

/**
 * The work that this process runs now, by id. It prevents starting the same work twice, and an orderly stop waits for
 * it.
 */
export class InFlightWork {
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  readonly #held = new Set<string>();
  readonly #carried = new Set<Promise<unknown>>();

  constructor(clock: Clock) {
    this.#clock = clock;
    // Every piece of work may add a listener; the areas limit the amount of work.
    setMaxListeners(0, this.stopping);
  }

  /** Fires at the orderly stop: running work then pauses, and another controller continues it. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  has(id: string): boolean {
    return this.#held.has(id);
  }

  /** Holds the id until `carry` of that id ends, or until `letGo`. Returns false if it is already held. */
  hold(id: string): boolean {
    const isFree = !this.#held.has(id);
    this.#held.add(id);
    return isFree;
  }

  letGo(id: string): void {
    this.#held.delete(id);
  }

  /** Holds these ids until the work is over, even if another call already held them. `close` waits for it. */
  async carry<R>(ids: readonly string[], work: () => Promise<R>): Promise<R> {
    for (const id of ids) this.#held.add(id);
    const carried = work();
    this.#carried.add(carried);
    try {
      return await carried;
    } finally {
      this.#carried.delete(carried);
      for (const id of ids) this.#held.delete(id);
    }
  }

  /** Resolves when all work that runs now has ended. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#carried);
  }

  /** Resolves when all work has ended, at the latest after `SHUTDOWN_WORK_MS`. Idempotent. */
  async close(): Promise<void> {
    this.#stopping.abort(new AppError("cancelled", "The controller is shutting down."));
    await withinTime(this.#clock, this.settled(), SHUTDOWN_WORK_MS);
  }
}
