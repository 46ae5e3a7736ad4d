import { crc32 } from "node:zlib";
import type { types } from "cassandra-driver";
import { RECORD_RANKS } from "../../../common/limits.ts";
import type { RemovedRecord, StoredRecord } from "../objects.ts";
import { plainBytes } from "./entities.ts";
import { idTimeMs } from "./record-places.ts";

/** What tells whether a record is there, and all that `foundIn` reads. */
export const TIMES = "writetime(value) AS written, expires, writetime(expires) AS ends_written";
export const ROW = `cid, id, value, ${TIMES}, terms`;

const MS_US = 1_000n;

/** A record as one row has it. */
export interface FoundRecord {
  readonly record: StoredRecord;
  /** Its rank, above the time in its id, or when it was rewritten. */
  readonly written: bigint;
}

/**
 * Writes of one record bear times of the millisecond in its id, so that a replay writes the same cells and a removed
 * record stays removed. Which microsecond follows from the bytes: of different ones the greater rank stands, whole and
 * in whatever order they come, where Cassandra alone would take some cells of each, by the moment of their expiry. Of
 * the same bytes those that stay for ever are above those that expire, of which Cassandra takes the latest. What is
 * rewritten bears its own time, which is later.
 */
export function writeTimeOf({ id, value, expiresAtMs, rewrittenUs }: StoredRecord): bigint {
  if (rewrittenUs !== undefined) return BigInt(rewrittenUs);
  return firstWriteTime(id) + BigInt(2 * (crc32(value) % RECORD_RANKS) + (expiresAtMs === undefined ? 1 : 0));
}

/** Above all ranks. Of a write and a removal with one time the removal stands. */
export function removalTime({ id, rewrittenUs }: Pick<RemovedRecord, "id" | "rewrittenUs">): bigint {
  return rewrittenUs === undefined ? firstWriteTime(id) + MS_US - 1n : BigInt(rewrittenUs);
}

function firstWriteTime(id: string): bigint {
  return BigInt(idTimeMs(id)) * MS_US;
}

/** Whether the row is a record that has not ended. */
export function isThere(row: types.Row, nowMs: number): boolean {
  return row.written !== null && (endOf(row) ?? Infinity) > nowMs;
}

/**
 * Undefined for a row that has expired (Cassandra itself counts whole seconds), or whose value has vanished before
 * another cell.
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

/** Of two rows of one record in different shards the one that Cassandra would keep of them in one. */
export function standing(one: FoundRecord, other: FoundRecord): FoundRecord {
  if (one.written !== other.written)
    return one.written > other.written ? withTermsOf(one, other) : withTermsOf(other, one);
  const later = (one.record.expiresAtMs ?? 0) >= (other.record.expiresAtMs ?? 0);
  return later ? withTermsOf(one, other) : withTermsOf(other, one);
}

/** Sets are joined. */
function withTermsOf({ record, written }: FoundRecord, { record: { terms } }: FoundRecord): FoundRecord {
  return { record: { ...record, terms: [...new Set([...record.terms, ...terms])] }, written };
}

/** An end that was written with other bytes is not the end of these. */
function endOf({ expires, written, ends_written }: types.Row): number | undefined {
  return typeof expires === "bigint" && ends_written === written ? Number(expires) : undefined;
}
