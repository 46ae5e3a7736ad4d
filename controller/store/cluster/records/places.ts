import {
  RECORD_LIFE_DAYS_MAX_MS,
  RECORD_LIFE_MARGIN_MS,
  RECORD_LIFE_MONTHS_MAX_MS,
  RECORD_SHARDS_MAX,
} from "../../../../common/limits.ts";
import type { StoredRecord } from "../../objects.ts";
import { NEVER_MS } from "../tables.ts";

const HOUR_MS = 3_600_000;
const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
export const ID_TIME_CHARACTERS = 10;
/** Position of the first random characters of an id; ids of one entry of an agent have the same ones. */
const RANDOM_CHARACTERS = [10, 13] as const;
/** Position of the characters that count up after every 32 ids of one entry. */
const COUNTING_CHARACTERS = [22, 25] as const;

/** A range of record lifetimes with a table of its own. */
export interface RecordLife {
  readonly table: string;
  /** Maximum time from the record's id to its end. */
  readonly longestMs: number;
  readonly window: { readonly unit: "HOURS" | "DAYS"; readonly size: number };
}

/**
 * Cassandra deletes a file as a whole when all of its data has expired, so records are in tables by the magnitude of
 * their lifetimes. Cassandra's documentation of TimeWindowCompactionStrategy recommends 20 to 30 windows. A row is on
 * disk for its lifetime plus the ten days for which removals are remembered. That gives 26 windows for 13 days, 28 for
 * 110 days, and 26 in two years. Records without an end have 13 more each year.
 */
export const RECORD_LIVES: readonly RecordLife[] = [
  { table: "records_days", longestMs: RECORD_LIFE_DAYS_MAX_MS, window: { unit: "HOURS", size: 12 } },
  { table: "records_months", longestMs: RECORD_LIFE_MONTHS_MAX_MS, window: { unit: "DAYS", size: 4 } },
  { table: "records_years", longestMs: Infinity, window: { unit: "DAYS", size: 28 } },
];

/** Condition that selects one partition: class, hour and shard. */
export const PARTITION = "cid = ? AND hour = ? AND shard = ?";

/** Table names with their keyspace, by life. */
export function recordTables(keyspace: string): readonly string[] {
  return RECORD_LIVES.map(({ table }) => `${keyspace}.${table}`);
}

/** The index in `RECORD_LIVES`. */
export function lifeOf({ id, expiresAtMs = Infinity }: Pick<StoredRecord, "id" | "expiresAtMs">): number {
  const lengthMs = expiresAtMs - idTimeMs(id);
  return RECORD_LIVES.findIndex(({ longestMs }) => lengthMs <= longestMs);
}

/**
 * Indexes of the lives that a record of this id may still have. With any other life it has expired, whenever it is
 * appended.
 */
export function livesLeft(id: string, nowMs: number): number[] {
  const ageMs = nowMs - idTimeMs(id) - RECORD_LIFE_MARGIN_MS;
  return [...RECORD_LIVES.keys()].filter((life) => ageMs <= RECORD_LIVES[life]!.longestMs);
}

/** Possible numbers of shards of an hour: powers of two. */
export const SHARD_NUMBERS: readonly number[] = Array.from(
  { length: Math.log2(RECORD_SHARDS_MAX) + 1 },
  (_, level) => 2 ** level,
);

/**
 * The shards that may contain a record, each once, in an hour that was written with these numbers of shards. Of ids
 * that count up in their last characters, 32 are in one shard, so that they can be written together. The next 32 are in
 * the next shard, so that the newest ids are in all shards. Random ids are evenly distributed.
 */
export function shardsOf(id: string, numbers: readonly number[]): number[] {
  const spread = numberOf(id.slice(...RANDOM_CHARACTERS)) + numberOf(id.slice(...COUNTING_CHARACTERS));
  return [...new Set(numbers.map((shards) => spread % shards))];
}

export function hourOf(timeMs: number): number {
  return Math.floor(timeMs / HOUR_MS);
}

export function hourStartMs(hour: number): number {
  return hour * HOUR_MS;
}

export function idTimeMs(id: string): number {
  return numberOf(id.slice(0, ID_TIME_CHARACTERS));
}

/** The first characters of all ids with this time: less than each of them, greater than all ids with earlier times. */
export function idPrefix(timeMs: number): string {
  let rest = Math.min(Math.max(0, Math.ceil(timeMs)), NEVER_MS - 1);
  let prefix = "";
  for (let i = 0; i < ID_TIME_CHARACTERS; i++) {
    prefix = `${CROCKFORD[rest % CROCKFORD.length] ?? ""}${prefix}`;
    rest = Math.floor(rest / CROCKFORD.length);
  }
  return prefix;
}

/** The latest time of an id below this one. The argument may also be the beginning of an id that is only a time. */
export function lastMsBelow(id: string): number {
  return id.length === ID_TIME_CHARACTERS ? idTimeMs(id) - 1 : idTimeMs(id);
}

function numberOf(characters: string): number {
  let number = 0;
  for (const character of characters) number = number * CROCKFORD.length + CROCKFORD.indexOf(character);
  return number;
}
