import { AppError } from "../../../../../common/errors.ts";
import {
  QUERY_ROW_CHARACTERS_MAX,
  QUERY_ROW_LOOKED_CHARACTERS_MAX,
  QUERY_ROW_ZONE_OFFSETS_MAX,
  QUERY_ZONE_OFFSETS_MAX,
} from "../../../../../common/limits.ts";
import type { Value } from "../../../../../common/value.ts";
import { isList } from "../literal.ts";

/** Characters that functions read and make in the time of one look-up of a zone's offset. */
const CHARACTERS_PER_OFFSET = 512;

/**
 * Counts the characters that functions read and make and that conditions look through. One long text takes as long as
 * thousands of ordinary rows, so loops over rows take this count and pause the sooner.
 */
export class TextWork {
  #row: unknown;
  #ofRow = 0;
  #looked = 0;
  #sinceTaken = 0;
  #offsetsOfRow = 0;
  #offsetsSinceTaken = 0;

  /** Throws `AppError("too_large")` beyond `QUERY_ROW_CHARACTERS_MAX` for one row: within it there is no pause. */
  charge(row: unknown, value: Value): void {
    const characters = charactersOf(value);
    this.#turnTo(row);
    this.#ofRow += characters;
    this.#sinceTaken += characters;
    if (this.#ofRow > QUERY_ROW_CHARACTERS_MAX) throw tooLarge();
  }

  /**
   * Charges the text that a condition looks through, times the effort of its question. The first question about a row
   * may be about any text; with more of them `AppError("too_large")` beyond `QUERY_ROW_LOOKED_CHARACTERS_MAX`.
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
   * Offsets of zones that a function of the row at hand has looked up anew. `AppError("too_large")` beyond
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

  /** Takes the work that was charged and counted since the last call. The limit of the row begins anew. */
  take(): number {
    const characters = this.#sinceTaken;
    this.#sinceTaken = 0;
    this.#row = undefined;
    return characters;
  }

  /** Offsets that were looked up since they were last taken. */
  takeOffsets(): number {
    const offsets = this.#offsetsSinceTaken;
    this.#offsetsSinceTaken = 0;
    return offsets;
  }
}

/** Offsets of zones that a statement has looked up anew. */
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
 * One for the whole thread, which works for one query from a pause to the next. No query has its own: row conditions
 * are compiled once for all.
 */
export const THREAD_TEXT_WORK = new TextWork();

function tooManyOffsets(what: string, limit: string, most: number): AppError {
  return new AppError(
    "too_large",
    `[Exec] For ${what} functions of the calendar would look up more than ${most} offsets of time zones: use fewer zones, or rows of fewer years.`,
    { details: { limit } },
  );
}

/** Elements and entries count as a character each, besides their own. */
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
