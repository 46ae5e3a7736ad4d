import { STORE_WRITE_TURN_MAX_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";

/** Runs the work in one write transaction; resolves when that is committed. */
export type Transaction = (work: () => void) => Promise<unknown>;

interface Waiting {
  /** Inside the transaction; never throws. */
  readonly act: () => void;
  readonly committed: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Actions that write, in the order in which they came. Those that wait share a commit. The library runs everything that
 * a transaction is given in one turn of the event loop, so a transaction takes no more once its actions have lasted
 * `STORE_WRITE_TURN_MAX_MS`; the rest waits for the next one.
 */
export class WriteQueue {
  readonly #clock: Clock;
  readonly #transaction: Transaction;
  readonly #underWay = new Set<Promise<void>>();
  readonly #waiting: Waiting[] = [];
  /** A transaction is under way whose actions have not run yet. */
  #isAsked = false;

  constructor(clock: Clock, transaction: Transaction) {
    this.#clock = clock;
    this.#transaction = transaction;
  }

  /** Resolves with the action's value when it is committed; rejects with what the action threw, or the commit. */
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

  /** Resolves when everything that was added is committed or has failed. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #ask(): void {
    if (this.#isAsked || this.#waiting.length === 0) return;
    this.#isAsked = true;
    const written = this.#write().finally(() => this.#underWay.delete(written));
    this.#underWay.add(written);
  }

  async #write(): Promise<void> {
    const turn: { taken?: readonly Waiting[] } = {};
    try {
      await this.#transaction(() => (turn.taken = this.#run()));
      for (const { committed } of turn.taken ?? []) committed();
    } catch (error) {
      if (turn.taken === undefined) this.#isAsked = false;
      // A transaction that did not run its actions would run no others: the store is closed or failed.
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
