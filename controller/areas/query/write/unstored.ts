import { UNSTORED_TOLD_MAX } from "../../../../common/limits.ts";
import { counted } from "../../../../common/text/counted.ts";
import type { Unstored } from "../../objects/index.ts";

const REASONS: Readonly<Record<Unstored["reason"], string>> = {
  removed: "it was removed at the time of the write or later",
  history: "it was removed at the time of the write or later; only its history has the row",
  ended: "the ttl of its class was over before the write",
};

/** The part of `UnstoredRows` that an import stores with its progress. */
export interface UnstoredNote {
  readonly count: number;
  /** Warnings about the first `UNSTORED_TOLD_MAX` rows. */
  readonly told: readonly string[];
}

/** Collects inserted rows whose objects do not exist after the write, and makes warnings from them. */
export class UnstoredRows {
  readonly #told: string[];
  #count: number;

  constructor({ count, told }: UnstoredNote = { count: 0, told: [] }) {
    this.#count = count;
    this.#told = [...told];
  }

  readonly add = (rows: readonly Unstored[]): void => {
    this.#count += rows.length;
    for (const { id, reason } of rows)
      if (this.#told.length < UNSTORED_TOLD_MAX) this.#told.push(`${id} does not exist: ${REASONS[reason]}.`);
  };

  note(): UnstoredNote {
    return { count: this.#count, told: [...this.#told] };
  }

  /** Runs a write that reports such rows, and returns the ids of all other rows. */
  async storedOf(
    write: (unstored: (rows: readonly Unstored[]) => void) => Promise<readonly string[]>,
  ): Promise<readonly string[]> {
    const gone = new Set<string>();
    const ids = await write((rows) => {
      this.add(rows);
      for (const { id } of rows) gone.add(id);
    });
    return gone.size === 0 ? ids : ids.filter((id) => !gone.has(id));
  }

  /** Names at most `UNSTORED_TOLD_MAX` rows and counts the rest. */
  warnings(): readonly string[] {
    const more = this.#count - this.#told.length;
    return more === 0 ? this.#told : [...this.#told, `${counted(more, "more row does", "more rows do")} not exist.`];
  }
}
