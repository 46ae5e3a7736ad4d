import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { Cassandra } from "../../../controller/store/cluster/cassandra/cassandra.ts";
import { Etcd } from "../../../controller/store/cluster/etcd/etcd.ts";
import { RECORD_LIVES } from "../../../controller/store/cluster/records/places.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import type { ClusterSettings } from "../../../deploy/local/cluster.ts";
import { realClock } from "../time/clock.ts";

export const clusterRuntime: Runtime = {
  clock: realClock,
  random: { next: () => Math.random(), bytes: (count) => new Uint8Array(randomBytes(count)) },
  log: pino({ level: process.env.ODP_TEST_LOG ?? "silent" }),
};

/** Tables that can only have rows if the first one of their group has. */
const TABLES_TOGETHER = [
  ["posting_levels"],
  ["record_hours", ...RECORD_LIVES.map(({ table }) => table)],
  ["contents", "chunks"],
] as const;

/** Tombstones in these tables are invisible, and would hide later writes with an explicit time. */
const TABLES_OF_GRAVES = ["present", "postings", "versions", "version_days", "edges_out", "edges_in"] as const;

/** Removes the data of tests directly in the stores, bypassing the engine. */
export class ClusterAdmin {
  readonly #cassandra: Cassandra;
  readonly #etcd: Etcd;

  private constructor(cassandra: Cassandra, etcd: Etcd) {
    this.#cassandra = cassandra;
    this.#etcd = etcd;
  }

  static async connect(settings: ClusterSettings): Promise<ClusterAdmin> {
    const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = settings;
    const cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
    return new ClusterAdmin(cassandra, new Etcd(settings.etcdEndpoints, clusterRuntime));
  }

  /** Removes every keyspace and key of the installations whose prefix begins with `prefix`. */
  async remove(prefix: string): Promise<void> {
    await this.dropKeyspaces(prefix);
    await this.#removeKeys(prefix, `${prefix}~`);
  }

  /** Returns the names of the dropped keyspaces. */
  async dropKeyspaces(prefix: string): Promise<readonly string[]> {
    const names = await this.#keyspaces(prefix);
    for (const name of names) await this.#cassandra.dropKeyspace(name);
    return names;
  }

  /**
   * Empties the tenants of one installation including tombstones, and drops the tenants that are not in `kept`. Tables
   * stay, because creating them takes seconds; tables of tenants that are not `touched` are skipped. What is kept has no
   * commit log from then on, so that Cassandra drops rows in memory and does not write them to disk first.
   */
  async empty(
    prefix: string,
    { kept, touched }: { readonly kept: readonly string[]; readonly touched: ReadonlySet<string> },
  ): Promise<void> {
    const keyspaces = await this.#keyspaces(`${prefix}_`);
    const tenants = keyspaces.map((keyspace) => keyspace.slice(prefix.length + 1));
    for (const tenant of tenants) {
      if (kept.includes(tenant)) continue;
      await this.#removeKeys(`${prefix}/installation/tenant/${tenant}`, `${prefix}/installation/tenant/${tenant}\0`);
      await this.#cassandra.dropKeyspace(`${prefix}_${tenant}`);
    }
    await this.#removeKeys(`${prefix}/tenant/`, `${prefix}/tenant0`);
    const dirty = tenants.filter((tenant) => kept.includes(tenant) && touched.has(tenant));
    await this.#endCommitLogs(dirty.map((tenant) => `${prefix}_${tenant}`));
    await Promise.all(dirty.map((tenant) => this.#truncateAll(`${prefix}_${tenant}`)));
  }

  /** For each keyspace whose name begins with `prefix`: the number of replicas per data center. */
  async replication(prefix: string): Promise<Readonly<Record<string, Readonly<Record<string, string>>>>> {
    const statement = { query: "SELECT keyspace_name, replication FROM system_schema.keyspaces", params: [] };
    const rows = await this.#cassandra.read(statement, this.#cassandra.deadline());
    const found = rows.map((row) => [String(row.keyspace_name), row.replication as Map<string, string>] as const);
    const ours = found.filter(([name]) => name.startsWith(prefix));
    return Object.fromEntries(ours.map(([name, replication]) => [name, Object.fromEntries(replication)]));
  }

  async close(): Promise<void> {
    this.#etcd.close();
    await this.#cassandra.close();
  }

  async #endCommitLogs(keyspaces: readonly string[]): Promise<void> {
    const statement = { query: "SELECT keyspace_name, durable_writes FROM system_schema.keyspaces", params: [] };
    const rows = await this.#cassandra.read(statement, this.#cassandra.deadline());
    const logged = new Set(rows.filter((row) => row.durable_writes === true).map((row) => String(row.keyspace_name)));
    for (const keyspace of keyspaces)
      if (logged.has(keyspace)) await this.#cassandra.define(`ALTER KEYSPACE ${keyspace} WITH durable_writes = false`);
  }

  async #truncateAll(keyspace: string): Promise<void> {
    const entities = TABLES_OF_GRAVES.map((table) => this.#cassandra.define(`TRUNCATE ${keyspace}.${table}`));
    const others = TABLES_TOGETHER.map(async (tables) => {
      const statement = { query: `SELECT * FROM ${keyspace}.${tables[0]} LIMIT 1`, params: [] };
      const rows = await this.#cassandra.read(statement, this.#cassandra.deadline());
      if (rows.length > 0) for (const table of tables) await this.#cassandra.define(`TRUNCATE ${keyspace}.${table}`);
    });
    await Promise.all([...entities, ...others]);
  }

  async #keyspaces(prefix: string): Promise<readonly string[]> {
    const statement = { query: "SELECT keyspace_name FROM system_schema.keyspaces", params: [] };
    const rows = await this.#cassandra.read(statement, this.#cassandra.deadline());
    return rows.map((row) => String(row.keyspace_name)).filter((name) => name.startsWith(prefix));
  }

  async #removeKeys(from: string, end: string): Promise<void> {
    const keys = { key: Buffer.from(from), range_end: Buffer.from(end) };
    await this.#etcd.call("write", (call) => this.#etcd.kv.deleteRange(keys, call));
  }
}
