import { isAppError, type ErrorCode } from "../../../common/errors.ts";

const PASSING_CODES: readonly ErrorCode[] = [
  "unavailable",
  "unknown_outcome",
  "deadline",
  "limited",
  "internal",
  "cancelled",
];

/** True for a temporary error: the same work may succeed later. */
export function isTransient(error: unknown): boolean {
  return isAppError(error, ...PASSING_CODES);
}
