import type { Random } from "../../common/time.ts";

/**
 * Lets pieces of work take turns at the calls that are handed to `turn`: one call at a time, which one a seed says. So
 * a piece may stand still before any of its calls for as long as the others take. As long as a piece makes one call
 * after the other and does nothing else that others see, the same seed gives the same order; with several at once more
 * pieces go on at a time.
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

  /** Begins a piece of work; it may begin others. */
  begin(work: () => Promise<void>): void {
    this.#running += 1;
    this.#pieces += 1;
    void work().finally(() => {
      this.#pieces -= 1;
      this.#leave();
      if (this.#pieces === 0) this.#ended();
    });
  }

  /** Resolves when every piece has ended. To be called once, after the first `begin`. */
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
    // The last comer goes on more often, so that some sleep for long.
    const place = Math.max(this.#random.next(), this.#random.next());
    const [next] = this.#waiting.splice(Math.floor(place * this.#waiting.length), 1);
    if (next === undefined) return;
    this.#running += 1;
    next();
  }
}
