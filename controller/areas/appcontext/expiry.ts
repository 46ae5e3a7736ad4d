import { AppError } from "../../../common/errors.ts";
import { APPCONTEXT_TTL_MAX_SECONDS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";

/** Expiry of a write made now, in ms; `undefined`: never. `AppError("invalid")` for a ttl out of bounds. */
export function expiryOf(clock: Clock, ttlSeconds = 0): number | undefined {
  if (ttlSeconds < 0 || ttlSeconds > APPCONTEXT_TTL_MAX_SECONDS) {
    const text = `ttl is a number of seconds from 1 to ${APPCONTEXT_TTL_MAX_SECONDS}, or 0 for ever.`;
    throw new AppError("invalid", text, { details: { limit: "APPCONTEXT_TTL_MAX_SECONDS" } });
  }
  return ttlSeconds === 0 ? undefined : Math.floor(clock.nowMs()) + ttlSeconds * 1_000;
}
