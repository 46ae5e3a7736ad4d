import { AppError } from "../../common/errors.ts";
import { cutText } from "../../common/text/cut.ts";
import type { Row } from "../../common/value.ts";

const SHOWN_CHARACTERS = 60;

/**
 * Throws `AppError("invalid")` for a text with a lone surrogate, because stores, files and agents replace it with
 * U+FFFD. Only JSON escapes and scripts can produce one. `what` names the text in the error.
 */
export function requireWellFormed(what: string, text: string): void {
  if (text.isWellFormed()) return;
  const shown = JSON.stringify(cutText(text, SHOWN_CHARACTERS));
  throw new AppError("invalid", `${what} has a lone surrogate, half of a character: ${shown}.`);
}

/** Replaces each lone surrogate with its JSON escape. For texts that must be stored. */
export function madeWellFormed(text: string): string {
  if (text.isWellFormed()) return text;
  return text.replace(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`);
}

/**
 * A row that the platform writes with texts from others. `madeWellFormed` is applied to its texts, including those in
 * lists, because objects refuse a lone surrogate.
 */
export function keptRow<R extends Row>(row: R): R {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, kept(value)])) as R;
}

function kept(value: unknown): unknown {
  if (typeof value === "string") return madeWellFormed(value);
  return Array.isArray(value) ? value.map(kept) : value;
}

/** Like `requireWellFormed`, for all texts within a JSON value. */
export function requireWellFormedWithin(what: string, value: unknown): void {
  if (typeof value === "string") return requireWellFormed(what, value);
  if (typeof value !== "object" || value === null) return;
  for (const member of Object.values(value)) requireWellFormedWithin(what, member);
}
