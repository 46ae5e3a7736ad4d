import { hash } from "node:crypto";
import { AppError } from "../../../common/errors.ts";
import { ulidOf, ulidTimeMs } from "../../../common/ids.ts";
import { CONSOLE_LOG_POSITION_MAX_IDS, CONSOLE_LOG_SETTLED_MS } from "../../../common/limits.ts";

/**
 * How far a reader is. Entries are stored a little later than their time, those of several writers in no order: so the
 * latest ones the reader has are named, and what comes among them is still told.
 */
export interface Position {
  /** Everything up to this ULID was told, or came too late. */
  readonly base: string;
  /** ULIDs above it that were told, rising. */
  readonly told: readonly string[];
}

/** What was read: from where, and what came of it. */
interface Step {
  readonly from: Position;
  /** Rising. */
  readonly ids: readonly string[];
  /** There may be more behind the last of them. */
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

/** `AppError("invalid")` for what no read that asked the same has answered. */
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

/** Where the next read goes on. */
export function nextPosition({ from, ids, isFull, nowMs }: Step): Position {
  const told = [...from.told, ...ids].sort();
  const settled = ulidAt(nowMs - CONSOLE_LOG_SETTLED_MS);
  let base = !isFull && settled > from.base ? settled : from.base;
  // What lies behind the last of a full read was not looked at.
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
