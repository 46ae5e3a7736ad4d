import { AppError } from "../../../common/errors.ts";
import { encodeJson } from "../format.ts";
import type { KvStore } from "../kv.ts";
import type { Cassandra } from "./cassandra/cassandra.ts";
import type { Etcd } from "./etcd/etcd.ts";

const TABLE = "readiness";
const KEY = "readiness";
/** Names of alarms as etcd's own tools show them, by their names in its client. */
const ALARMS: Readonly<Record<string, string>> = { Nospace: "NOSPACE", Corrupt: "CORRUPT" };

/** The single row that readiness writes and reads, in the keyspace of the system. */
export function readinessDefinition(keyspace: string): string {
  return `CREATE TABLE IF NOT EXISTS ${keyspace}.${TABLE} (id int PRIMARY KEY, told_ms bigint)`;
}

export interface ReadinessParts {
  readonly etcd: Etcd;
  readonly cassandra: Cassandra;
  /** Keys of the installation. */
  readonly kv: Pick<KvStore, "put">;
  /** Keyspace of the row. */
  readonly keyspace: string;
}

/**
 * Checks an agreed write, which implies a read, and that no alarm is raised. Throws the error that the next call would
 * get.
 */
export async function etcdIsReady({ etcd, kv }: Pick<ReadinessParts, "etcd" | "kv">): Promise<void> {
  const { alarms } = await etcd.call("read", (call) => etcd.maintenance.alarm({ action: "Get" }, call));
  const [raised] = alarms;
  if (raised !== undefined)
    throw new AppError("unavailable", `it raises the alarm ${ALARMS[raised.alarm] ?? raised.alarm}.`);
  await kv.put(KEY, encodeJson(etcd.runtime.clock.nowMs()));
}

/** Checks a write and a read with the consistency of every call. */
export async function cassandraIsReady({ cassandra, keyspace }: ReadinessParts): Promise<void> {
  const deadline = cassandra.deadline();
  const toldMs = BigInt(cassandra.runtime.clock.nowMs());
  const write = `INSERT INTO ${keyspace}.${TABLE} (id, told_ms) VALUES (0, ?) USING TIMESTAMP ?`;
  await cassandra.write([{ query: write, params: [toldMs, BigInt(cassandra.nextTimeUs())] }], deadline);
  await cassandra.read({ query: `SELECT told_ms FROM ${keyspace}.${TABLE} WHERE id = 0`, params: [] }, deadline);
}
