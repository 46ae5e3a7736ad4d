import { AppError } from "./errors.ts";

// Control characters, and halves of a pair, which no UTF-8 holds.
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u;
const encoder = new TextEncoder();

/** How errors call a name, and the maximum length of it. `limit` is the name of `maxBytes`. */
export interface NameRule {
  readonly what: string;
  readonly maxBytes: number;
  readonly limit: string;
}

/**
 * For names that are keys of a store and nothing else, slashes and blanks included. `AppError("invalid")` for an empty
 * one and for control characters, `AppError("too_large")`.
 */
export function checkName(name: string, { what, maxBytes, limit }: NameRule): void {
  if (name === "") throw new AppError("invalid", `The ${what} is empty.`);
  if (UNPRINTABLE.test(name)) throw new AppError("invalid", `The ${what} has control characters.`);
  if (encoder.encode(name).length > maxBytes)
    throw new AppError("too_large", `The ${what} has more than ${maxBytes} bytes.`, { details: { limit } });
}
