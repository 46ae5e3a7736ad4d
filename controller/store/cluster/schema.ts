import { createHash } from "node:crypto";
import { NUMBER_SLOTS } from "../../../common/limits.ts";

/** Cassandra's own limit for the name of a keyspace. */
const KEYSPACE_NAME_MAX = 48;

/** Numbers of the slots, for the columns `n0`, `n1`, … */
export const SLOTS: readonly number[] = Array.from({ length: NUMBER_SLOTS }, (_, slot) => slot);

/** The keyspace of a tenant. Names that would be too long end in a hash of the whole. */
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
}

/**
 * The fixed handful of tables every tenant has; none per class, none made while people work. Sections of a partition of
 * `entities`: 1 versions by time, 2 outgoing edges. What an entity is now lies in its static columns: a partition is an
 * entity.
 */
export function tenantDefinitions(options: KeyspaceOptions): string[] {
  const { keyspace } = options;
  const numbers = SLOTS.map((slot) => `n${slot} double static`).join(", ");
  return [
    `CREATE KEYSPACE IF NOT EXISTS ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${options.datacenter}': ${options.replicationFactor}}`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.entities (
       cid int, id text, section tinyint, time bigint, type text, to_cid int, to_id text,
       birth bigint static, last bigint static, attrs map<text, blob> static, terms set<text> static, ${numbers}, value blob,
       PRIMARY KEY ((cid, id), section, time, type, to_cid, to_id)
     ) WITH CLUSTERING ORDER BY (section ASC, time DESC, type ASC, to_cid ASC, to_id ASC)`,
    ...["terms", ...SLOTS.map((slot) => `n${slot}`)].map((column) => indexOf(keyspace, "entities", column)),
    `CREATE TABLE IF NOT EXISTS ${keyspace}.edges_in (
       to_cid int, to_id text, type text, cid int, id text, present boolean,
       PRIMARY KEY ((to_cid, to_id), type, cid, id))`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.records (
       cid int, day int, shard tinyint, id text, value blob, expires bigint, terms set<text>,
       PRIMARY KEY ((cid, day, shard), id)
     ) WITH CLUSTERING ORDER BY (id DESC)
       AND compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', 'compaction_window_size': 1}`,
    indexOf(keyspace, "records", "terms"),
    `CREATE TABLE IF NOT EXISTS ${keyspace}.record_days (
       cid int, day int, present boolean, PRIMARY KEY ((cid), day)) WITH CLUSTERING ORDER BY (day DESC)`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.chunks (
       content text, part int, position bigint, length int, bytes blob, digest blob,
       PRIMARY KEY ((content, part), position)) WITH CLUSTERING ORDER BY (position DESC)`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.contents (
       content text, kind text, name text, size bigint, made_ms bigint, condemned boolean,
       PRIMARY KEY ((content), kind, name))`,
  ];
}

function indexOf(keyspace: string, table: string, column: string): string {
  return `CREATE INDEX IF NOT EXISTS ${table}_${column} ON ${keyspace}.${table} (${column}) USING 'sai'`;
}
