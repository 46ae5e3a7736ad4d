import { setImmediate } from "node:timers/promises";
import { STORE_READ_TURN_MAX_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { THREAD_TURNS } from "../../../turns/turns.ts";

/** Runs one read of a store when it is its turn. */
export type InTurn = <T>(read: () => T) => Promise<T>;

/**
 * Yields the thread between reads. A read of LMDB never waits, so a loop over pages would hold the thread to its end. A
 * read begins in a turn of the event loop whose first read began less than `STORE_READ_TURN_MAX_MS` ago; other reads
 * wait for a later turn, tenants in rotation.
 */
export class ReadTurns {
  readonly #clock: Clock;
  /** The first read in a turn of the event loop. */
  #first = { turn: -1, beganMs: 0 };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The turns for the stores of one tenant. */
  of(tenant: string): InTurn {
    return async (read) => {
      while (this.#isOver()) {
        await setImmediate();
        await THREAD_TURNS.next(tenant);
      }
      return read();
    };
  }

  #isOver(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const turn = THREAD_TURNS.number;
    if (this.#first.turn === turn) return nowMs - this.#first.beganMs >= STORE_READ_TURN_MAX_MS;
    this.#first = { turn, beganMs: nowMs };
    return false;
  }
}
