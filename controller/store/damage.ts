import { AppError, isAppError } from "../../common/errors.ts";

const DAMAGED = "damaged";

/** Error for a store whose data cannot be read: `AppError("unavailable")` that waiting does not repair. */
export function storeDamaged(message: string, cause?: unknown): AppError {
  return new AppError("unavailable", message, { cause, details: { reason: DAMAGED } });
}

export function isStoreDamaged(error: unknown): boolean {
  return isAppError(error, "unavailable") && error.details?.["reason"] === DAMAGED;
}
