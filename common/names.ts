import { AppError } from "./errors.ts";

// Control characters and lone surrogates, which UTF-8 cannot encode.
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u;
const encoder = new TextEncoder();

/** `what` is the word for the name in errors. `limit` is the name of the constant that `maxBytes` comes from. */
export interface NameRule {
  readonly what: string;
  readonly maxBytes: number;
  readonly limit: string;
}

/**
 * Checks a name that is only the key of a store; slashes and blanks are allowed. `AppError("invalid")` for an empty
 * name or control characters, `AppError("too_large")` beyond `maxBytes`.
 */
export function checkName(name: string, { what, maxBytes, limit }: NameRule): void {
  if (name === "") throw new AppError("invalid", `The ${what} is empty.`);
  if (UNPRINTABLE.test(name)) throw new AppError("invalid", `The ${what} has control characters.`);
  if (encoder.encode(name).length > maxBytes)
    throw new AppError("too_large", `The ${what} has more than ${maxBytes} bytes.`, { details: { limit } });
}
