import { ThreadSlices } from "../../controller/turns/slices.ts";

/**
 * Ends every slice at each check of the clock, and counts the pauses that follow; all others get a turn between two
 * pauses. The count depends on the work only, so it is the same on every machine.
 */
export class CountedPauses implements Disposable {
  readonly #max: number;
  readonly #enough = new AbortController();
  readonly #isOverNow = ThreadSlices.prototype.isOverNow;
  readonly #pause = ThreadSlices.prototype.pause;
  #count = 0;

  /** After `max` pauses, `signal` aborts. */
  constructor(max = Number.POSITIVE_INFINITY) {
    this.#max = max;
    const pause = this.#pause;
    const counted = (): void => this.#counted();
    ThreadSlices.prototype.isOverNow = () => true;
    ThreadSlices.prototype.pause = function () {
      counted();
      return pause.call(this);
    };
  }

  get count(): number {
    return this.#count;
  }

  get signal(): AbortSignal {
    return this.#enough.signal;
  }

  #counted(): void {
    this.#count++;
    if (this.#count >= this.#max) this.#enough.abort();
  }

  [Symbol.dispose](): void {
    ThreadSlices.prototype.isOverNow = this.#isOverNow;
    ThreadSlices.prototype.pause = this.#pause;
  }
}
