import { AppError } from "../common/errors.ts";
import { cutText } from "../common/text/cut.ts";
import type { Row } from "../common/value.ts";

const SHOWN_CHARACTERS = 60;

/**
 * Refuses a text with half of a character, a lone surrogate: stores, files and agents keep U+FFFD in its place. JSON
 * escapes and scripts are the only ways by which one comes. `what` names the text. `AppError("invalid")`.
 */
export function requireWellFormed(what: string, text: string): void {
  if (text.isWellFormed()) return;
  const shown = JSON.stringify(cutText(text, SHOWN_CHARACTERS));
  throw new AppError("invalid", `${what} has a lone surrogate, half of a character: ${shown}.`);
}

/** The text with each half of a character as JSON escapes it. For texts that must be kept. */
export function madeWellFormed(text: string): string {
  if (text.isWellFormed()) return text;
  return text.replace(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`);
}

/**
 * A row that the platform writes of what others said. `madeWellFormed` changes its texts, those of lists too, as objects
 * refuse half of a character.
 */
export function keptRow<R extends Row>(row: R): R {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, kept(value)])) as R;
}

function kept(value: unknown): unknown {
  if (typeof value === "string") return madeWellFormed(value);
  return Array.isArray(value) ? value.map(kept) : value;
}

/** As `requireWellFormed`, for all texts within a value of JSON. */
export function requireWellFormedWithin(what: string, value: unknown): void {
  if (typeof value === "string") return requireWellFormed(what, value);
  if (typeof value !== "object" || value === null) return;
  for (const member of Object.values(value)) requireWellFormedWithin(what, member);
}
