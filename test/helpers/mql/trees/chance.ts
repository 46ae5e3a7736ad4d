import type { Random } from "../../../../common/time.ts";

/** Choices by chance. Equal seeds give equal choices, in the order in which they are made. */
export class Chance {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  some<T>(least: number, most: number, make: () => T): T[] {
    return Array.from({ length: least + Math.floor(this.next() * (most - least + 1)) }, make);
  }

  maybe<T>(make: () => T): T | undefined {
    return this.coin() ? make() : undefined;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.next() * choices.length)] as T;
  }

  coin(): boolean {
    return this.next() < 0.5;
  }

  next(): number {
    return this.#random.next();
  }
}
