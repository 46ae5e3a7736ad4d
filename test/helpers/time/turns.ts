import type { Random } from "../../../common/time.ts";

/**
 * Lets pieces of work take turns at calls that are passed to `turn`: one call at a time, in an order that a seed
 * determines. A piece may therefore pause before any call for as long as the others take. If each piece makes one call
 * after the other and does nothing else that others see, the same seed gives the same order. A piece with several calls
 * at once makes more pieces run at a time.
 */
export class Turns {
  readonly #random: Random;
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #pieces = 0;
  #ended: () => void = () => undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Starts a piece of work, which may start others. */
  begin(work: () => Promise<void>): void {
    this.#running += 1;
    this.#pieces += 1;
    void work().finally(() => {
      this.#pieces -= 1;
      this.#leave();
      if (this.#pieces === 0) this.#ended();
    });
  }

  /** Resolves when every piece has ended. Call it once, after the first `begin`. */
  async finished(): Promise<void> {
    if (this.#pieces > 0) await new Promise<void>((resolve) => (this.#ended = resolve));
  }

  /** Waits for its turn, then makes the call. */
  async turn<T>(call: () => Promise<T>): Promise<T> {
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      this.#leave();
    });
    return call();
  }

  #leave(): void {
    this.#running -= 1;
    if (this.#running > 0) return;
    // The newest call continues more often, so that some calls wait long.
    const place = Math.max(this.#random.next(), this.#random.next());
    const [next] = this.#waiting.splice(Math.floor(place * this.#waiting.length), 1);
    if (next === undefined) return;
    this.#running += 1;
    next();
  }
}
