import type { Random } from "../../common/time.ts";

/**
 * Lets pieces of work take turns at the calls that are handed to `turn`: one call at a time, which one a seed says. So a piece may
 * stand still before any of its calls for as long as the others take. As long as a piece does nothing else that others see, the same seed
 * gives the same order.
 */
export class Turns {
  readonly #random: Random;
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #ended: () => void = () => undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Begins a piece of work; it may begin others. */
  begin(work: () => Promise<void>): void {
    this.#running += 1;
    void work().finally(() => this.#leave());
  }

  /** Resolves when every piece has ended. To be called once, after the first `begin`. */
  async finished(): Promise<void> {
    if (this.#running > 0 || this.#waiting.length > 0) await new Promise<void>((resolve) => (this.#ended = resolve));
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
    // Who came last goes on more often, so that some sleep for long.
    const place = Math.max(this.#random.next(), this.#random.next());
    const [next] = this.#waiting.splice(Math.floor(place * this.#waiting.length), 1);
    if (next === undefined) return this.#ended();
    this.#running += 1;
    next();
  }
}
