import { STORE_WRITE_TURN_MAX_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";

/** Runs the work in one write transaction; resolves when it is committed. */
export type Transaction = (work: () => void) => Promise<unknown>;

interface Waiting {
  /** Runs inside the transaction; never throws. */
  readonly act: () => void;
  readonly committed: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Write actions in the order of arrival; waiting ones share a commit. The library runs all work of a transaction in one
 * turn of the event loop, so a transaction takes no more actions after they have lasted `STORE_WRITE_TURN_MAX_MS`. The
 * rest waits for the next one.
 */
export class WriteQueue {
  readonly #clock: Clock;
  readonly #transaction: Transaction;
  readonly #inFlight = new Set<Promise<void>>();
  readonly #waiting: Waiting[] = [];
  /** True if a transaction is requested whose actions have not run yet. */
  #isAsked = false;

  constructor(clock: Clock, transaction: Transaction) {
    this.#clock = clock;
    this.#transaction = transaction;
  }

  /** Resolves with the action's value when it is committed; rejects with the error of the action or of the commit. */
  add<T>(action: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let settle = (): void => undefined;
      const act = (): void => {
        try {
          const value = action();
          settle = () => resolve(value);
        } catch (error) {
          settle = () => reject(error);
        }
      };
      this.#waiting.push({ act, committed: () => settle(), failed: reject });
      this.#ask();
    });
  }

  /** Resolves when every added action is committed or has failed. */
  async idle(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight);
  }

  #ask(): void {
    if (this.#isAsked || this.#waiting.length === 0) return;
    this.#isAsked = true;
    const written = this.#write().finally(() => this.#inFlight.delete(written));
    this.#inFlight.add(written);
  }

  async #write(): Promise<void> {
    const turn: { taken?: readonly Waiting[] } = {};
    try {
      await this.#transaction(() => (turn.taken = this.#run()));
      for (const { committed } of turn.taken ?? []) committed();
    } catch (error) {
      if (turn.taken === undefined) this.#isAsked = false;
      // A transaction that did not run its actions would run no others: the store is closed or has failed.
      for (const { failed } of turn.taken ?? this.#waiting.splice(0)) failed(error);
    } finally {
      this.#ask();
    }
  }

  #run(): readonly Waiting[] {
    const beganMs = this.#clock.monotonicMs();
    let count = 0;
    do this.#waiting[count++]?.act();
    while (count < this.#waiting.length && this.#clock.monotonicMs() - beganMs < STORE_WRITE_TURN_MAX_MS);
    this.#isAsked = false;
    return this.#waiting.splice(0, count);
  }
}
