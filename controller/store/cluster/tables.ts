import { OBJECT_TOMBSTONE_KEEP_MS, WRITE_LATE_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Cassandra } from "./cassandra/cassandra.ts";

/** Shared by the parts of one tenant's store. */
export interface Tables {
  readonly cassandra: Cassandra;
  readonly keyspace: string;
}

const DAY_MS = 86_400_000;
/** Later than any time of a record; represents "never" among expiry times. */
export const NEVER_MS = 2 ** 48;

/** Expiry of rows that list others: a day longer than these, at a whole day. Few different times need few writes. */
export function longLife(expiresAtMs: number | undefined): number {
  return expiresAtMs === undefined ? NEVER_MS : (Math.floor(expiresAtMs / DAY_MS) + 2) * DAY_MS;
}

/** Time for which removals are remembered, as a ttl. */
export const REMOVAL_KEPT_SECONDS = OBJECT_TOMBSTONE_KEEP_MS / 1_000;

/** Cassandra's limit: twenty years. */
const TTL_MAX_SECONDS = 20 * 365 * 24 * 3_600;

/**
 * Seconds for which a removal at that time is remembered. A removal ahead of the clock covers earlier-timed writes
 * until Cassandra drops its tombstone, so the next writer must know of it for longer.
 */
export function removalKeptSeconds(clock: Clock, timeUs: number): number {
  const aheadSeconds = Math.ceil(timeUs / 1_000_000 - clock.nowMs() / 1_000);
  return Math.min(REMOVAL_KEPT_SECONDS + Math.max(0, aheadSeconds), TTL_MAX_SECONDS);
}

/**
 * Time for data derived from a write. A scrub removes data derived from an abandoned write at its own time and for
 * good. If the write is repeated much later, its derived data needs a later time.
 */
export function derivedTimeUs(cassandra: Cassandra, timeUs: number): number {
  const presentUs = cassandra.nextTimeUs();
  return presentUs - timeUs > WRITE_LATE_MS * 1_000 ? presentUs : timeUs;
}

/** Seconds to live for Cassandra; 0: forever. Data that has already expired lives one more second. */
export function ttlSeconds(clock: Clock, expiresAtMs: number | undefined): number {
  if (expiresAtMs === undefined) return 0;
  // Cassandra counts from the beginning of the present second.
  const seconds = Math.ceil(expiresAtMs / 1000) - Math.floor(clock.nowMs() / 1000);
  return Math.min(Math.max(seconds, 1), TTL_MAX_SECONDS);
}
