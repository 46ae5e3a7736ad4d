import type { Random } from "../../../common/time.ts";

/** Texts for fuzz tests: random words of a vocabulary, and texts with a few changes. */
export class Words {
  readonly #random: Random;
  readonly #vocabulary: readonly string[];

  constructor(random: Random, vocabulary: readonly string[]) {
    this.#random = random;
    this.#vocabulary = vocabulary;
  }

  of<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError("there is nothing to choose from");
    return item;
  }

  below(end: number): number {
    return Math.floor(this.#random.next() * end);
  }

  /** At most `most` words. */
  stream(most: number): readonly string[] {
    return Array.from({ length: this.below(most) }, () => this.of(this.#vocabulary));
  }

  /** Omits, doubles, swaps with the next, or replaces one to three parts. */
  changed(parts: readonly string[]): readonly string[] {
    const result = [...parts];
    for (let change = this.below(3); change >= 0; change -= 1) {
      const at = this.below(result.length);
      const here = result[at] ?? "";
      result.splice(at, 1, ...this.of([[], [here, here], [this.of(this.#vocabulary)], [result[at + 1] ?? "", here]]));
    }
    return result;
  }
}
