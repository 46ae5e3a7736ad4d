import { AppError } from "../../../../../common/errors.ts";
import {
  QUERY_ROW_CHARACTERS_MAX,
  QUERY_ROW_LOOKED_CHARACTERS_MAX,
  QUERY_ROW_ZONE_OFFSETS_MAX,
  QUERY_ZONE_OFFSETS_MAX,
} from "../../../../../common/limits.ts";
import type { Value } from "../../../../../common/value.ts";
import { isList } from "../literal.ts";

/** Characters that functions read and make in the time of one look-up of a time zone's offset. */
const CHARACTERS_PER_OFFSET = 512;

/**
 * Counts the characters that functions read and make, and that conditions look through. One long text may cost as much
 * as thousands of ordinary rows. Loops over rows take this count, and pause earlier because of it.
 */
export class TextWork {
  #row: unknown;
  #ofRow = 0;
  #looked = 0;
  #sinceTaken = 0;
  #offsetsOfRow = 0;
  #offsetsSinceTaken = 0;

  /**
   * Counts the characters of a value. `AppError("too_large")` beyond `QUERY_ROW_CHARACTERS_MAX` for one row, because
   * there is no pause within a row.
   */
  charge(row: unknown, value: Value): void {
    const characters = charactersOf(value);
    this.#turnTo(row);
    this.#ofRow += characters;
    this.#sinceTaken += characters;
    if (this.#ofRow > QUERY_ROW_CHARACTERS_MAX) throw tooLarge();
  }

  /**
   * Counts the characters that a condition looks through, times the effort of its question. The first question about a
   * row may be about a text of any length. After that, `AppError("too_large")` beyond
   * `QUERY_ROW_LOOKED_CHARACTERS_MAX`.
   */
  look(row: unknown, value: Value, effort = 1): void {
    const characters = charactersOf(value) * effort;
    this.#turnTo(row);
    const isFirst = this.#looked === 0;
    this.#looked += characters;
    this.#sinceTaken += characters;
    if (!isFirst && this.#looked > QUERY_ROW_LOOKED_CHARACTERS_MAX) throw tooManyLooks();
  }

  /**
   * Counts look-ups of time zone offsets by functions of the current row. `AppError("too_large")` beyond
   * `QUERY_ROW_ZONE_OFFSETS_MAX` for one row.
   */
  countOffsets(offsets: number): void {
    this.#offsetsOfRow += offsets;
    this.#offsetsSinceTaken += offsets;
    this.#sinceTaken += offsets * CHARACTERS_PER_OFFSET;
    if (this.#offsetsOfRow > QUERY_ROW_ZONE_OFFSETS_MAX)
      throw tooManyOffsets("one row", "QUERY_ROW_ZONE_OFFSETS_MAX", QUERY_ROW_ZONE_OFFSETS_MAX);
  }

  #turnTo(row: unknown): void {
    if (row === this.#row) return;
    this.#row = row;
    this.#ofRow = 0;
    this.#looked = 0;
    this.#offsetsOfRow = 0;
  }

  /** Returns the work counted since the last call. The limits of the row begin anew. */
  take(): number {
    const characters = this.#sinceTaken;
    this.#sinceTaken = 0;
    this.#row = undefined;
    return characters;
  }

  /** Returns the look-ups of offsets since the last call. */
  takeOffsets(): number {
    const offsets = this.#offsetsSinceTaken;
    this.#offsetsSinceTaken = 0;
    return offsets;
  }
}

/** Number of time zone offsets that a statement has looked up. */
export class ZoneOffsets {
  #offsets = 0;

  /** `AppError("too_large")` beyond `QUERY_ZONE_OFFSETS_MAX`. */
  add(offsets: number): void {
    this.#offsets += offsets;
    if (this.#offsets > QUERY_ZONE_OFFSETS_MAX)
      throw tooManyOffsets("one statement", "QUERY_ZONE_OFFSETS_MAX", QUERY_ZONE_OFFSETS_MAX);
  }
}

/**
 * Counts for the whole thread, which works for one query from one pause to the next. Queries cannot have their own,
 * because row conditions are compiled once for all of them.
 */
export const THREAD_TEXT_WORK = new TextWork();

function tooManyOffsets(what: string, limit: string, most: number): AppError {
  return new AppError(
    "too_large",
    `[Exec] For ${what} functions of the calendar would look up more than ${most} offsets of time zones: use fewer zones, or rows of fewer years.`,
    { details: { limit } },
  );
}

/** Number of characters in the value. Each element and entry adds one. */
function charactersOf(value: Value): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  if (isList(value)) return value.reduce<number>((sum, element) => sum + 1 + charactersOf(element), 0);
  let sum = 0;
  for (const name in value) sum += 1 + charactersOf(value[name] ?? null);
  return sum;
}

function tooManyLooks(): AppError {
  return new AppError(
    "too_large",
    `[Exec] For one row LIKE, CONTAINS and full text would look through more than ${QUERY_ROW_LOOKED_CHARACTERS_MAX} characters: ask fewer of them about long texts.`,
    { details: { limit: "QUERY_ROW_LOOKED_CHARACTERS_MAX" } },
  );
}

function tooLarge(): AppError {
  return new AppError(
    "too_large",
    `[Exec] For one row functions would read and make more than ${QUERY_ROW_CHARACTERS_MAX} characters: use fewer of them on long texts.`,
    { details: { limit: "QUERY_ROW_CHARACTERS_MAX" } },
  );
}
