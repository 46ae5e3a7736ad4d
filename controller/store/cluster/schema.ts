import { createHash } from "node:crypto";
import { NUMBER_SLOTS } from "../../../common/limits.ts";
import { RECORD_LIVES, type RecordLife } from "./records/places.ts";
import { REMOVAL_KEPT_SECONDS } from "./tables.ts";

/** Cassandra's limit for the name of a keyspace. */
const KEYSPACE_NAME_MAX = 48;

/** Numbers of the slots, for the columns `n0`, `n1`, … */
export const SLOTS: readonly number[] = Array.from({ length: NUMBER_SLOTS }, (_, slot) => slot);

/** The keyspace of a tenant. A name that would be too long ends in a hash of the whole name. */
export function keyspaceOf(prefix: string, tenant: string): string {
  const name = `${prefix}_${tenant}`;
  if (name.length <= KEYSPACE_NAME_MAX) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 16);
  return `${name.slice(0, KEYSPACE_NAME_MAX - hash.length - 1)}_${hash}`;
}

export interface KeyspaceOptions {
  readonly keyspace: string;
  readonly datacenter: string;
  readonly replicationFactor: number;
  /** Number of numeric columns with an index. */
  readonly slots: number;
}

/**
 * gc_grace of tables whose rows readers check against their source: postings, and edges by target. A removed row that
 * comes back is harmless there. Its tombstone need only outlast the hints that nodes keep for each other, by default
 * three hours. Rows of removed cells are never removed, but expire.
 */
const CHECKED_GRACE_SECONDS = 4 * 3_600;
export const DERIVED_TABLES: readonly string[] = ["postings", "edges_in"];

/** Adds slots and their indexes to a keyspace that was created with fewer. */
export function slotDefinitions(keyspace: string, has: number): string[] {
  const missing = SLOTS.slice(has);
  const columns = missing.map((slot) => `n${slot} double`).join(", ");
  return [
    `ALTER TABLE ${keyspace}.present ADD IF NOT EXISTS (${columns})`,
    ...missing.map((slot) => indexOf(keyspace, "present", `n${slot}`)),
  ];
}

/** Adds ends of entities to a keyspace of format 5. */
export function endDefinitions(keyspace: string): string[] {
  return [`ALTER TABLE ${keyspace}.present ADD IF NOT EXISTS ends bigint`, indexOf(keyspace, "present", "ends")];
}

/** The fixed set of tables of every tenant; there are none per class, and none are created during operation. */
export function tenantDefinitions(options: KeyspaceOptions): string[] {
  const { keyspace, slots } = options;
  // The installation itself has neither numbers nor ends.
  const indexed = slots === 0 ? ["classes"] : ["classes", "ends", ...SLOTS.slice(0, slots).map((slot) => `n${slot}`)];
  const numbers = SLOTS.map((slot) => `n${slot} double`).join(", ");
  return [
    `CREATE KEYSPACE IF NOT EXISTS ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${options.datacenter}': ${options.replicationFactor}}`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.present (
       cid int, id text, birth bigint, last bigint, died bigint, ends bigint, swept bigint, attrs map<text, blob>, classes set<text>, ${numbers},
       PRIMARY KEY ((cid, id)))`,
    ...indexed.map((column) => indexOf(keyspace, "present", column)),
    `CREATE TABLE IF NOT EXISTS ${keyspace}.removed_cells (
       cid int, id text, bucket int, name text, time bigint,
       PRIMARY KEY ((cid, id, bucket), name)) WITH gc_grace_seconds = ${CHECKED_GRACE_SECONDS}`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.postings (
       term text, bucket int, hash int, cid int, id text, time bigint,
       PRIMARY KEY ((term, bucket), hash, cid, id)) WITH gc_grace_seconds = ${CHECKED_GRACE_SECONDS}`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.posting_levels (
       term text, sample int, level int static, present boolean, PRIMARY KEY ((term), sample))`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.words (
       cid int, kind int, beginning text, word text, split boolean static, present boolean,
       PRIMARY KEY ((cid, kind, beginning), word))`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.versions (
       cid int, id text, day int, time bigint, value blob, stays boolean,
       PRIMARY KEY ((cid, id, day), time)) WITH CLUSTERING ORDER BY (time DESC)`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.version_days (
       cid int, id text, day int, until int, present boolean,
       PRIMARY KEY ((cid, id), day, until)) WITH CLUSTERING ORDER BY (day DESC, until DESC)`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.edges_out (
       cid int, id text, bucket int, type text, to_cid int, to_id text, value blob,
       PRIMARY KEY ((cid, id, bucket), type, to_cid, to_id))`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.edges_in (
       to_cid int, to_id text, bucket int, type text, cid int, id text, present boolean,
       PRIMARY KEY ((to_cid, to_id, bucket), type, cid, id)) WITH gc_grace_seconds = ${CHECKED_GRACE_SECONDS}`,
    ...RECORD_LIVES.flatMap((life) => recordDefinitions(keyspace, life)),
    `CREATE TABLE IF NOT EXISTS ${keyspace}.record_hours (
       cid int, hour int, life tinyint, shards int, present boolean,
       PRIMARY KEY ((cid), hour, life, shards)) WITH CLUSTERING ORDER BY (hour DESC, life ASC, shards ASC)`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.chunks (
       content text, part int, position bigint, length int, bytes blob, digest blob,
       PRIMARY KEY ((content, part), position)) WITH CLUSTERING ORDER BY (position DESC)`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.contents (
       content text, kind text, name text, size bigint, made_ms bigint, condemned boolean,
       PRIMARY KEY ((content), kind, name))`,
  ];
}

/** A removal is remembered for as long as every engine promises. */
function recordDefinitions(keyspace: string, { table, window: { unit, size } }: RecordLife): string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${keyspace}.${table} (
       cid int, hour int, shard smallint, id text, value blob, expires bigint, terms set<text>,
       PRIMARY KEY ((cid, hour, shard), id)
     ) WITH CLUSTERING ORDER BY (id DESC) AND gc_grace_seconds = ${REMOVAL_KEPT_SECONDS}
       AND compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': '${unit}', 'compaction_window_size': ${size}}`,
    indexOf(keyspace, table, "terms"),
  ];
}

function indexOf(keyspace: string, table: string, column: string): string {
  return `CREATE INDEX IF NOT EXISTS ${table}_${column} ON ${keyspace}.${table} (${column}) USING 'sai'`;
}
