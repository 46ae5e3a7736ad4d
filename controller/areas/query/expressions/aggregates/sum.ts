import type { Value } from "../../../../../common/value.ts";
import { numberValue } from "../arithmetic.ts";
import { toValue } from "../kind.ts";

/**
 * Adds numbers as they come. Integers are added exactly, even beyond 2^53. For other numbers the error does not grow
 * with their count: A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54
 * (1974).
 */
export class Sum {
  #safe = 0;
  #beyond = 0n;
  #total = 0;
  #lost = 0;
  #hasFraction = false;
  count = 0;

  add(value: number | bigint): void {
    this.count += 1;
    if (typeof value === "bigint") this.#beyond += value;
    else if (Number.isSafeInteger(value)) this.#addInteger(value);
    else this.#addFraction(value);
  }

  #addInteger(value: number): void {
    const next = this.#safe + value;
    if (Number.isSafeInteger(next)) {
      this.#safe = next;
      return;
    }
    this.#beyond += BigInt(this.#safe) + BigInt(value);
    this.#safe = 0;
  }

  #addFraction(value: number): void {
    this.#hasFraction = true;
    const next = this.#total + value;
    const isTotalLarger = Math.abs(this.#total) >= Math.abs(value);
    this.#lost += isTotalLarger ? this.#total - next + value : value - next + this.#total;
    this.#total = next;
  }

  /**
   * An integer if all values are integers; it is a text if a double does not hold it. Null if the sum of fractions is
   * larger than a double holds.
   */
  total(): Value {
    if (this.#hasFraction) return numberValue(this.#rounded());
    const exact = this.#beyond + BigInt(this.#safe);
    const number = Number(exact);
    return toValue(Number.isSafeInteger(number) ? number : exact);
  }

  mean(): Value {
    return numberValue(this.#rounded() / this.count);
  }

  #rounded(): number {
    const whole = Number(this.#beyond + BigInt(this.#safe));
    if (!this.#hasFraction) return whole;
    const sum = new Sum();
    sum.#addFraction(whole);
    sum.#addFraction(this.#total);
    // The lost part has no meaning if the total is infinite.
    return Number.isFinite(sum.#total) ? sum.#total + (sum.#lost + this.#lost) : sum.#total;
  }
}
