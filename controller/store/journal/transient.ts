import { isAppError, type ErrorCode } from "../../../common/errors.ts";

const PASSING_CODES: readonly ErrorCode[] = [
  "unavailable",
  "unknown_outcome",
  "deadline",
  "limited",
  "internal",
  "cancelled",
];

/** A fault of the moment: the same work may well be done later. */
export function isTransient(error: unknown): boolean {
  return isAppError(error, ...PASSING_CODES);
}
