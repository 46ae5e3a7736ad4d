import { AppError, isAppError } from "../../../common/errors.ts";
import { CLUSTER_SCHEMA_DEADLINE_MS, NUMBER_SLOTS } from "../../../common/limits.ts";
import type { LostTenant } from "../engine.ts";
import { entriesUnder } from "../kv/entries.ts";
import { decodeStored, encodeJson } from "../format.ts";
import type { KvLease } from "../kv.ts";
import type { Cassandra } from "./cassandra/cassandra.ts";
import { Deadline } from "./deadline.ts";
import type { Etcd } from "./etcd/etcd.ts";
import { EtcdKvStore } from "./etcd/kv.ts";
import { dataNodes } from "./cassandra/nodes.ts";
import { endDefinitions, keyspaceOf, slotDefinitions, tenantDefinitions } from "./schema.ts";

/** Increased when the meaning of stored data changes. */
export const TENANT_FORMAT = 6;
/** The format without ends of entities. Earlier formats were never released. */
const FORMAT_WITHOUT_ENDS = 5;
const LOCK_TTL_MS = 15_000;
const LOCK_KEY = "lock/definitions";
const TENANTS = "tenant/";
const REPLICATION_FACTOR_MAX = 3;

/** Number of slots of tenants whose entry does not state it. */
const SLOTS_BEFORE = 3;

interface TenantEntry {
  readonly format: number;
  readonly replicationFactor: number;
  readonly slots?: number;
}

interface NewKeyspace {
  readonly replicationFactor?: number | undefined;
  /** Number of numeric slots with range indexes; absent: all. */
  readonly slots?: number;
  readonly others?: readonly string[];
}

/** The list of tenants in etcd, and their keyspaces. One controller at a time changes definitions. */
export class TenantRegistry {
  readonly #etcd: Etcd;
  readonly #cassandra: Cassandra;
  /** Keys of the installation. */
  readonly kv: EtcdKvStore;
  readonly #prefix: string;
  readonly #datacenter: string;

  constructor(etcd: Etcd, cassandra: Cassandra, place: { readonly prefix: string; readonly datacenter: string }) {
    this.#etcd = etcd;
    this.#cassandra = cassandra;
    this.#prefix = place.prefix;
    this.#datacenter = place.datacenter;
    this.kv = new EtcdKvStore(etcd, `${place.prefix}/installation/`);
  }

  async has(name: string): Promise<boolean> {
    return (await this.#entry(name)) !== undefined;
  }

  /** Like `has`, but first upgrades the keyspace to the format of this version. */
  async prepared(name: string, slots = NUMBER_SLOTS): Promise<boolean> {
    const entry = await this.#entry(name);
    if (entry !== undefined && isOlder(entry, slots)) await this.#locked((lost) => this.#upgrade(name, lost));
    return entry !== undefined;
  }

  async #entry(name: string): Promise<TenantEntry | undefined> {
    const entry = await this.kv.get(tenantKey(name));
    if (entry === undefined) return undefined;
    const tenant = decodeStored<TenantEntry>(entry.value);
    if (tenant.format < FORMAT_WITHOUT_ENDS || tenant.format > TENANT_FORMAT)
      throw new AppError(
        "unavailable",
        `Tenant "${name}" has format ${tenant.format}, and this version knows ${FORMAT_WITHOUT_ENDS} to ${TENANT_FORMAT}.`,
      );
    return tenant;
  }

  async #upgrade(name: string, lost: AbortSignal): Promise<void> {
    const entry = await this.#entry(name);
    if (entry === undefined || !isOlder(entry, NUMBER_SLOTS)) return;
    const keyspace = keyspaceOf(this.#prefix, name);
    if (slotsOf(entry) < NUMBER_SLOTS) await this.#define(slotDefinitions(keyspace, slotsOf(entry)), lost);
    if (entry.format < TENANT_FORMAT) await this.#define(endDefinitions(keyspace), lost);
    const upgraded: TenantEntry = { ...entry, format: TENANT_FORMAT, slots: NUMBER_SLOTS };
    await this.kv.put(tenantKey(name), encodeJson(upgraded));
  }

  /** Tenants whose keyspace is missing, with its name. */
  async lost(): Promise<readonly LostTenant[]> {
    const tenants: string[] = [];
    for await (const { key } of entriesUnder(this.kv, TENANTS)) tenants.push(key.slice(TENANTS.length));
    const query = "SELECT keyspace_name FROM system_schema.keyspaces";
    const rows = await this.#cassandra.read({ query, params: [] }, this.#cassandra.deadline());
    const there = new Set(rows.map((row) => String(row.keyspace_name)));
    const missing = tenants
      .map((tenant) => ({ tenant, keyspace: keyspaceOf(this.#prefix, tenant) }))
      .filter(({ keyspace }) => !there.has(keyspace));
    // A tenant that is being dropped has no entry any more.
    const known = await Promise.all(missing.map(({ tenant }) => this.has(tenant)));
    return missing.filter((_, at) => known[at]);
  }

  /**
   * Creates keyspace and tables if they are missing, and `others` in addition to those of every tenant. Repeating it
   * after a crash completes it.
   */
  async create(
    name: string,
    { replicationFactor, slots = NUMBER_SLOTS, others = [] }: NewKeyspace = {},
  ): Promise<void> {
    if (await this.has(name)) return;
    await this.#locked(async (lost) => {
      if (await this.has(name)) return;
      const factor = replicationFactor ?? Math.min(REPLICATION_FACTOR_MAX, this.#nodesHere());
      const keyspace = keyspaceOf(this.#prefix, name);
      const place = { keyspace, datacenter: this.#datacenter, replicationFactor: factor };
      const tables = tenantDefinitions({ ...place, slots });
      await this.#define([...tables, ...others], lost);
      const entry: TenantEntry = { format: TENANT_FORMAT, replicationFactor: factor, slots };
      await this.kv.put(tenantKey(name), encodeJson(entry));
    });
  }

  /** Removes the entry first, so that no caller opens the tenant any more, then its data. */
  async drop(name: string): Promise<void> {
    await this.#locked(async () => {
      await this.kv.delete(tenantKey(name));
      await this.#cassandra.dropKeyspace(keyspaceOf(this.#prefix, name));
      const keys = Buffer.from(`${this.#prefix}/tenant/${name}/`);
      const end = Buffer.from(`${this.#prefix}/tenant/${name}0`);
      await this.#etcd.call("write", (call) => this.#etcd.kv.deleteRange({ key: keys, range_end: end }, call));
    });
  }

  async #define(definitions: readonly string[], lost: AbortSignal): Promise<void> {
    for (const definition of definitions) {
      if (lost.aborted) throw new AppError("unavailable", "The lock on definitions was lost.");
      await this.#cassandra.define(definition);
    }
  }

  #nodesHere(): number {
    const nodes = dataNodes(this.#cassandra.hosts);
    return Math.max(1, nodes.filter((node) => node.datacenter === this.#datacenter).length);
  }

  async #locked(work: (lost: AbortSignal) => Promise<void>): Promise<void> {
    const lease = await this.kv.lease(LOCK_TTL_MS);
    try {
      await this.#acquire(lease);
      await work(lease.lost);
    } finally {
      await lease.revoke().catch(() => undefined);
    }
  }

  async #acquire(lease: KvLease): Promise<void> {
    const { clock, random } = this.#etcd.runtime;
    const deadline = new Deadline(clock, random, CLUSTER_SCHEMA_DEADLINE_MS);
    for (;;) {
      const won = await this.kv
        .put(LOCK_KEY, encodeJson(lease.id), { ifRevision: 0, lease: lease.id })
        .catch(undefinedIfUnknown);
      // After an unknown outcome the lock may be ours although a later put loses.
      if (won?.ok === true || won?.current?.lease === lease.id) return;
      if (!(await deadline.pause()))
        throw new AppError("unavailable", "Another controller holds the lock on definitions for too long.");
    }
  }
}

function undefinedIfUnknown(error: unknown): undefined {
  if (!isAppError(error, "unknown_outcome")) throw error;
}

function slotsOf({ slots = SLOTS_BEFORE }: TenantEntry): number {
  return slots;
}

function isOlder(entry: TenantEntry, slots: number): boolean {
  return slotsOf(entry) < slots || entry.format < TENANT_FORMAT;
}

function tenantKey(name: string): string {
  return TENANTS + name;
}
