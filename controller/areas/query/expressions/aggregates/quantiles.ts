import type { MemoryShare } from "./memory.ts";

/** Numbers sorted together; few enough not to block the thread. */
const RUN_NUMBERS = 2_048;
const NUMBER_BYTES = 8;
/** Maximum number of halvings until no double is left between two doubles. */
const HALVINGS_MAX = 2_100;

/**
 * Holds numbers in sorted runs, and finds exact ranks among all of them without sorting them together. The number of a
 * rank is found by halving an interval. Each step counts numbers by binary search in every run.
 */
export class Quantiles {
  readonly #memory: Pick<MemoryShare, "take">;
  readonly #runs: Float64Array[] = [];
  #open = new Float64Array(RUN_NUMBERS);
  #openCount = 0;
  #count = 0;
  #least = Infinity;
  #greatest = -Infinity;

  constructor(memory: Pick<MemoryShare, "take">) {
    this.#memory = memory;
  }

  get count(): number {
    return this.#count;
  }

  get least(): number {
    return this.#least;
  }

  get greatest(): number {
    return this.#greatest;
  }

  add(number: number): void {
    if (this.#openCount === 0) this.#memory.take(RUN_NUMBERS * NUMBER_BYTES);
    this.#open[this.#openCount] = number;
    this.#openCount += 1;
    this.#count += 1;
    if (number < this.#least) this.#least = number;
    if (number > this.#greatest) this.#greatest = number;
    if (this.#openCount === RUN_NUMBERS) this.#close();
  }

  /** Number of values that are at most `number`. */
  upTo(number: number): number {
    this.#close();
    return this.#runs.reduce((sum, run) => sum + notAbove(run, number), 0);
  }

  /** Number of values below `number`. */
  below(number: number): number {
    this.#close();
    return this.#runs.reduce((sum, run) => sum + below(run, number), 0);
  }

  /**
   * The value below which `share` of the numbers are, with a share from 0 to 1. Between two numbers it is interpolated.
   * Undefined without numbers.
   */
  at(share: number): number | undefined {
    if (this.#count === 0) return undefined;
    const place = share * (this.#count - 1);
    const lower = this.#ofRank(Math.floor(place));
    const part = place - Math.floor(place);
    return part === 0 ? lower : lower + (this.#ofRank(Math.floor(place) + 1) - lower) * part;
  }

  /** The number that has `rank` numbers before it. */
  #ofRank(rank: number): number {
    let low = this.#least;
    let high = this.#greatest;
    if (this.upTo(low) > rank) return low;
    for (let halving = 0; halving < HALVINGS_MAX; halving += 1) {
      const middle = low / 2 + high / 2;
      if (middle <= low || middle >= high) break;
      if (this.upTo(middle) > rank) high = this.#greatestUpTo(middle);
      else low = middle;
      if (this.upTo(low) <= rank && this.upTo(high) - this.upTo(low) === 1) break;
    }
    return high;
  }

  #greatestUpTo(number: number): number {
    return this.#runs.reduce((best, run) => {
      const at = notAbove(run, number) - 1;
      return at < 0 ? best : Math.max(best, run[at] ?? best);
    }, -Infinity);
  }

  #close(): void {
    if (this.#openCount === 0) return;
    this.#runs.push(this.#open.slice(0, this.#openCount).sort());
    this.#open = new Float64Array(RUN_NUMBERS);
    this.#openCount = 0;
  }
}

function notAbove(run: Float64Array, number: number): number {
  return placeOf(run, (own) => own <= number);
}

function below(run: Float64Array, number: number): number {
  return placeOf(run, (own) => own < number);
}

/** Number of elements for which `isBefore` holds. They must be at the beginning of the run. */
function placeOf(run: Float64Array, isBefore: (number: number) => boolean): number {
  let from = 0;
  let to = run.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (isBefore(run[middle] ?? 0)) from = middle + 1;
    else to = middle;
  }
  return from;
}
