import { hash } from "node:crypto";
import { AppError } from "../../../common/errors.ts";
import { ulidOf, ulidTimeMs } from "../../../common/ids.ts";
import { CONSOLE_LOG_POSITION_MAX_IDS, CONSOLE_LOG_SETTLED_MS } from "../../../common/limits.ts";

/**
 * How far a reader has read. Entries are stored a little later than their time, and several writers store theirs in no
 * common order. Therefore the position names the latest entries that the reader has, and entries that arrive among them
 * are still delivered.
 */
export interface Position {
  /** Every entry up to this ULID was delivered, or arrived too late. */
  readonly base: string;
  /** ULIDs above `base` that were delivered, ascending. */
  readonly told: readonly string[];
}

/** One read: where it started and what it found. */
interface Step {
  readonly from: Position;
  /** ULIDs of the entries found, ascending. */
  readonly ids: readonly string[];
  /** True if there may be more entries after the last one. */
  readonly isFull: boolean;
  readonly nowMs: number;
}

const ULID_CHARACTERS = 26;
const DIGEST_CHARACTERS = 12;
const FORM = /^([\w-]{12})\.([0-7][0-9A-HJKMNP-TV-Z]{25})\.((?:[0-7][0-9A-HJKMNP-TV-Z]{25})*)$/;

export const BEGINNING: Position = { base: ulidAt(0), told: [] };

export function writePosition({ base, told }: Position, asked: string): string {
  return `${digestOf(asked)}.${base}.${told.join("")}`;
}

/** `AppError("invalid")` for a position that no read of the same selection returned. */
export function readPosition(text: string, asked: string): Position {
  const [, digest, base, told = ""] = FORM.exec(text) ?? [];
  if (base === undefined || told.length > CONSOLE_LOG_POSITION_MAX_IDS * ULID_CHARACTERS)
    throw new AppError("invalid", "The position is none that a read of a console log answered.");
  if (digest !== digestOf(asked))
    throw new AppError(
      "invalid",
      "The position belongs to another name, other levels or other times: begin anew without it.",
    );
  const ids = Array.from({ length: told.length / ULID_CHARACTERS }, (_, at) =>
    told.slice(at * ULID_CHARACTERS, (at + 1) * ULID_CHARACTERS),
  );
  return { base, told: ids };
}

export function baseTimeMs({ base }: Position): number {
  return ulidTimeMs(base) ?? 0;
}

/** The position from which the next read continues. */
export function nextPosition({ from, ids, isFull, nowMs }: Step): Position {
  const told = [...from.told, ...ids].sort();
  const settled = ulidAt(nowMs - CONSOLE_LOG_SETTLED_MS);
  let base = !isFull && settled > from.base ? settled : from.base;
  // A full read did not look past its last entry.
  const last = isFull ? (ids.at(-1) ?? "") : "Z";
  const surplus = told.length - CONSOLE_LOG_POSITION_MAX_IDS;
  told.forEach((id, at) => {
    if (id <= last && id > base && (id <= settled || at < surplus)) base = id;
  });
  return { base, told: told.filter((id) => id > base) };
}

function ulidAt(timeMs: number): string {
  return ulidOf(timeMs, new Uint8Array(10));
}

function digestOf(asked: string): string {
  return hash("sha256", asked, "base64url").slice(0, DIGEST_CHARACTERS);
}
