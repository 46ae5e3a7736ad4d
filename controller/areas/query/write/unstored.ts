import { UNSTORED_TOLD_MAX } from "../../../../common/limits.ts";
import type { Unstored } from "../../objects/index.ts";

const REASONS: Readonly<Record<Unstored["reason"], string>> = {
  removed: "it was removed at the time of the write or later, and stays removed",
  ended: "by its time and the ttl of its class it has ended",
};

/** Rows that are not there after their write, as they are put on record. */
export interface UnstoredNote {
  readonly count: number;
  /** Of the first ones. */
  readonly told: readonly string[];
}

/** Rows of INSERTs that are not there after their write. They are told and not counted. */
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
      if (this.#told.length < UNSTORED_TOLD_MAX) this.#told.push(`${id} is not stored: ${REASONS[reason]}.`);
  };

  note(): UnstoredNote {
    return { count: this.#count, told: [...this.#told] };
  }

  /** Makes a write that tells of its rows, and answers those of its ids that are stored. */
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

  /** At most `UNSTORED_TOLD_MAX` rows by name, then how many more there are. */
  warnings(): readonly string[] {
    const more = this.#count - this.#told.length;
    return more === 0 ? this.#told : [...this.#told, `${more} more rows are not stored.`];
  }
}
