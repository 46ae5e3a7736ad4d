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

/**
 * Expiry of a row that lists other rows: at the end of a day (UTC), one to two days after the listed row. Because
 * expiries are whole days, the same row is rarely written again.
 */
export function longLife(expiresAtMs: number | undefined): number {
  return expiresAtMs === undefined ? NEVER_MS : (Math.floor(expiresAtMs / DAY_MS) + 2) * DAY_MS;
}

/** Time for which removals are remembered, as a ttl. */
export const REMOVAL_KEPT_SECONDS = OBJECT_TOMBSTONE_KEEP_MS / 1_000;

/** Cassandra's limit: twenty years. */
const TTL_MAX_SECONDS = 20 * 365 * 24 * 3_600;

/**
 * Seconds for which a removal at that time is remembered. A removal with a time in the future covers writes with
 * earlier times until Cassandra drops its tombstone, so it is remembered for longer.
 */
export function removalKeptSeconds(clock: Clock, timeUs: number): number {
  const aheadSeconds = Math.ceil(timeUs / 1_000_000 - clock.nowMs() / 1_000);
  return Math.min(REMOVAL_KEPT_SECONDS + Math.max(0, aheadSeconds), TTL_MAX_SECONDS);
}

/**
 * Write time of data that is derived from a write with this time. It is the same time, unless the write is older than
 * `WRITE_LATE_MS`: then it is the current time. A scrub may have removed derived data of an abandoned write, with the
 * time of that data. If the write is repeated, its derived data needs a later time than that removal.
 */
export function derivedTimeUs(cassandra: Cassandra, timeUs: number): number {
  const presentUs = cassandra.nextTimeUs();
  return presentUs - timeUs > WRITE_LATE_MS * 1_000 ? presentUs : timeUs;
}

/** Seconds to live for Cassandra; 0: forever. Data that has already expired lives one more second. */
export function ttlSeconds(clock: Clock, expiresAtMs: number | undefined): number {
  if (expiresAtMs === undefined) return 0;
  // Cassandra counts from the beginning of the current second.
  const seconds = Math.ceil(expiresAtMs / 1000) - Math.floor(clock.nowMs() / 1000);
  return Math.min(Math.max(seconds, 1), TTL_MAX_SECONDS);
}
