import { setMaxListeners } from "node:events";
import { withinTime } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { SHUTDOWN_WORK_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";

/** What this process carries out now, by id, so that it begins nothing twice and its orderly stop knows what to await. */
export class UnderWay {
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  readonly #held = new Set<string>();
  readonly #carried = new Set<Promise<unknown>>();

  constructor(clock: Clock) {
    this.#clock = clock;
    // Every piece of work may listen; the areas that admit work bound their number.
    setMaxListeners(0, this.stopping);
  }

  /** Fires with the orderly stop: what is carried out then comes to rest, and goes on elsewhere. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  has(id: string): boolean {
    return this.#held.has(id);
  }

  /** False: it is held already. Until `carry` of that id ends, or `letGo`. */
  hold(id: string): boolean {
    const isFree = !this.#held.has(id);
    this.#held.add(id);
    return isFree;
  }

  letGo(id: string): void {
    this.#held.delete(id);
  }

  /** Holds these ids until the work is over, also when another call held them before; `close` waits for it. */
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

  /** Resolves when nothing that is carried out now is so any more. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#carried);
  }

  /** Resolves when all has come to rest, at the latest after `SHUTDOWN_WORK_MS`. Idempotent. */
  async close(): Promise<void> {
    this.#stopping.abort(new AppError("cancelled", "The controller is shutting down."));
    await withinTime(this.#clock, this.settled(), SHUTDOWN_WORK_MS);
  }
}
