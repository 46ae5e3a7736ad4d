import { crc32 } from "node:zlib";
import type { types } from "cassandra-driver";
import { RECORD_RANKS } from "../../../../common/limits.ts";
import type { RemovedRecord, StoredRecord } from "../../objects.ts";
import { plainBytes } from "../entities/entities.ts";
import { idTimeMs } from "./places.ts";

/** Columns that show whether a record exists, and that `foundIn` reads. */
export const TIMES = "writetime(value) AS written, expires, writetime(expires) AS ends_written";
export const ROW = `cid, id, value, ${TIMES}, terms`;

const MS_US = 1_000n;

/** A record from one row. */
export interface FoundRecord {
  readonly record: StoredRecord;
  /** Its write time: its rank added to the time in its id, or the time of its rewrite. */
  readonly written: bigint;
}

/**
 * Write time of a record: within the millisecond in its id, so that a replay writes the same cells and a removed record
 * stays removed. The microsecond is derived from the bytes. Of rows with different bytes the one with the greater rank
 * wins as a whole, in any order of arrival; otherwise Cassandra would mix their cells by expiry. Of rows with the same
 * bytes, one without expiry wins; among expiring ones Cassandra keeps the one that expires last. A rewritten record has
 * its own time, which is later.
 */
export function writeTimeOf({ id, value, expiresAtMs, rewrittenUs }: StoredRecord): bigint {
  if (rewrittenUs !== undefined) return BigInt(rewrittenUs);
  return firstWriteTime(id) + BigInt(2 * (crc32(value) % RECORD_RANKS) + (expiresAtMs === undefined ? 1 : 0));
}

/**
 * Write time of the removal of a record: the last microsecond of the millisecond in its id, which no write of the record
 * exceeds; for a rewritten record, the time of the rewrite. Of a write and a removal at one time, Cassandra keeps the
 * removal.
 */
export function removalTime({ id, rewrittenUs }: Pick<RemovedRecord, "id" | "rewrittenUs">): bigint {
  return rewrittenUs === undefined ? firstWriteTime(id) + MS_US - 1n : BigInt(rewrittenUs);
}

function firstWriteTime(id: string): bigint {
  return BigInt(idTimeMs(id)) * MS_US;
}

/** True if the row is a record that has not expired. */
export function isThere(row: types.Row, nowMs: number): boolean {
  return row.written !== null && (endOf(row) ?? Infinity) > nowMs;
}

/**
 * `undefined` for a row that has expired (Cassandra counts whole seconds), or whose value expired before another cell.
 */
export function foundIn(row: types.Row, nowMs: number): FoundRecord | undefined {
  const end = endOf(row);
  if (!Buffer.isBuffer(row.value) || (end !== undefined && end <= nowMs)) return undefined;
  const id = String(row.id);
  const written = BigInt(String(row.written));
  const record = {
    cid: Number(row.cid),
    id,
    value: plainBytes(row.value),
    terms: (row.terms as readonly string[] | null) ?? [],
    ...(end === undefined ? {} : { expiresAtMs: end }),
    ...(written > removalTime({ id }) ? { rewrittenUs: Number(written) } : {}),
  };
  return { record, written };
}

/** The one of two rows in different shards that Cassandra would keep if both were in one shard. */
export function standing(one: FoundRecord, other: FoundRecord): FoundRecord {
  if (one.written !== other.written)
    return one.written > other.written ? withTermsOf(one, other) : withTermsOf(other, one);
  const later = (one.record.expiresAtMs ?? 0) >= (other.record.expiresAtMs ?? 0);
  return later ? withTermsOf(one, other) : withTermsOf(other, one);
}

/** The record with the terms of both rows. */
function withTermsOf({ record, written }: FoundRecord, { record: { terms } }: FoundRecord): FoundRecord {
  return { record: { ...record, terms: [...new Set([...record.terms, ...terms])] }, written };
}

/** An end that was written with other bytes does not belong to these. */
function endOf({ expires, written, ends_written }: types.Row): number | undefined {
  return typeof expires === "bigint" && ends_written === written ? Number(expires) : undefined;
}
