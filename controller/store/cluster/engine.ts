import { AppError, errorText } from "../../../common/errors.ts";
import { READY_WAIT_MS } from "../../../common/limits.ts";
import { CallDeadline } from "../calls/call-deadline.ts";
import type { DataNode, Engine, LostTenant, Readiness, TenantStore } from "../engine.ts";
import type { Runtime } from "../../runtime.ts";
import type { StoreAccess } from "../access.ts";
import { CassandraBlobStore } from "./blobs/blobs.ts";
import { Cassandra } from "./cassandra/cassandra.ts";
import { KvSweep } from "../kv/sweep.ts";
import { Etcd } from "./etcd/etcd.ts";
import { EtcdKvStore } from "./etcd/kv.ts";
import { CassandraObjectStore } from "./objects.ts";
import { dataNodes } from "./cassandra/nodes.ts";
import { cassandraIsReady, etcdIsReady, readinessDefinition } from "./readiness.ts";
import { TenantRegistry } from "./registry.ts";
import { keyspaceOf } from "./schema.ts";
import { CassandraScrub } from "./upkeep/scrub.ts";
import { WordTable } from "./postings/words.ts";

export interface ClusterEngineOptions {
  /** For example `http://10.0.0.1:2379`. */
  readonly etcdEndpoints: readonly string[];
  /** Each is `host:port`. */
  readonly cassandraContactPoints: readonly string[];
  readonly cassandraDatacenter: string;
  /** Absent: plain text and no account. */
  readonly etcdAccess?: StoreAccess;
  readonly cassandraAccess?: StoreAccess;
  /**
   * Prefix of every key in etcd and of every keyspace; it separates installations on one cluster. Lower-case letters
   * and digits.
   */
  readonly prefix?: string;
  readonly runtime: Runtime;
}

const SYSTEM = "system";
/** The installation keeps records, which have no numbers. */
const SYSTEM_SLOTS = 0;
const TENANT_PATTERN = /^[a-z][a-z0-9_]{0,47}$/;
const PREFIX_PATTERN = /^[a-z][a-z0-9]{0,19}$/;

/** Uses etcd for data that must be agreed on, Cassandra for bulk data. Resolves when Cassandra has answered. */
export async function openClusterEngine(options: ClusterEngineOptions): Promise<Engine> {
  const prefix = options.prefix ?? "odp";
  if (!PREFIX_PATTERN.test(prefix))
    throw new AppError("invalid", `"${prefix}" is no prefix: 1 to 20 lower-case letters and digits.`);
  if (options.etcdEndpoints.length === 0) throw new AppError("invalid", "No endpoint of etcd was given.");
  const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter, runtime } = options;
  const { etcdEndpoints, etcdAccess, cassandraAccess: access = {} } = options;
  const cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime, access });
  return new ClusterEngine(new Etcd(etcdEndpoints, runtime, etcdAccess), cassandra, { prefix, datacenter });
}

interface OpenTenant extends TenantStore {
  /** Drops cached knowledge of a keyspace that was lost. */
  readonly forget: () => void;
  readonly close: () => void;
}

class ClusterEngine implements Engine {
  readonly kind = "cluster";
  readonly isRemote = true;
  readonly #etcd: Etcd;
  readonly #cassandra: Cassandra;
  readonly #prefix: string;
  readonly #registry: TenantRegistry;
  readonly #open = new Map<string, Promise<OpenTenant>>();
  #lost: ReadonlySet<string> = new Set();

  constructor(etcd: Etcd, cassandra: Cassandra, place: { readonly prefix: string; readonly datacenter: string }) {
    this.#etcd = etcd;
    this.#cassandra = cassandra;
    this.#prefix = place.prefix;
    this.#registry = new TenantRegistry(etcd, cassandra, place);
  }

  system(): Promise<TenantStore> {
    return this.#opened(SYSTEM, async () => {
      const others = [readinessDefinition(keyspaceOf(this.#prefix, SYSTEM))];
      await this.#registry.create(SYSTEM, { others, slots: SYSTEM_SLOTS });
      await this.#registry.prepared(SYSTEM, SYSTEM_SLOTS);
      return this.#store(SYSTEM);
    });
  }

  async tenant(name: string): Promise<TenantStore> {
    checkName(name);
    return this.#opened(name, async () => {
      if (!(await this.#registry.prepared(name))) throw new AppError("not_found", `There is no tenant "${name}".`);
      return this.#store(name);
    });
  }

  async createTenant(name: string, options: { readonly replicationFactor?: number } = {}): Promise<void> {
    checkName(name);
    await this.#registry.create(name, options);
  }

  async dropTenant(name: string): Promise<void> {
    await this.releaseTenant(name);
    await this.#registry.drop(name);
  }

  async releaseTenant(name: string): Promise<void> {
    checkName(name);
    const open = this.#open.get(name);
    this.#open.delete(name);
    (await open?.catch(() => undefined))?.close();
  }

  async nodes(): Promise<readonly DataNode[]> {
    return dataNodes(this.#cassandra.hosts);
  }

  async ready(): Promise<Readiness> {
    const { clock } = this.#etcd.runtime;
    const call = new CallDeadline({ clock, lengthMs: READY_WAIT_MS, atEnd: () => undefined });
    try {
      return await call.run(() => this.#isReady(call));
    } finally {
      call.end();
    }
  }

  async #isReady(call: CallDeadline): Promise<Readiness> {
    const keyspace = keyspaceOf(this.#prefix, SYSTEM);
    const parts = { etcd: this.#etcd, cassandra: this.#cassandra, kv: this.#registry.kv, keyspace };
    await isReady("etcd", () => etcdIsReady(parts));
    return isReady("Cassandra", async () => {
      // If the keyspace must be created first, that has its own deadline, far later than this call's.
      await call.wait("Cassandra", this.system());
      await cassandraIsReady(parts);
      const lost = await this.#registry.lost();
      this.#tellLost(lost);
      return { lost };
    });
  }

  /** Logs each lost tenant once, and again if it was back in the meantime. */
  #tellLost(lost: readonly LostTenant[]): void {
    const { log } = this.#etcd.runtime;
    for (const { tenant, keyspace } of lost)
      if (!this.#lost.has(tenant)) log.error({ tenant, keyspace }, "the keyspace of a tenant is gone: restore it");
    const now = new Set(lost.map(({ tenant }) => tenant));
    for (const tenant of this.#lost)
      if (!now.has(tenant)) log.info({ tenant }, "the keyspace of a tenant is there again");
    this.#lost = now;
    for (const tenant of now)
      void this.#open.get(tenant)?.then(
        ({ forget }) => forget(),
        () => undefined,
      );
  }

  async close(): Promise<void> {
    for (const open of this.#open.values()) (await open.catch(() => undefined))?.close();
    this.#open.clear();
    this.#etcd.close();
    await this.#cassandra.close();
  }

  #opened(name: string, open: () => Promise<OpenTenant>): Promise<OpenTenant> {
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    const opening = open();
    this.#open.set(name, opening);
    // After a failure the next caller tries again.
    opening.catch(() => this.#open.get(name) === opening && this.#open.delete(name));
    return opening;
  }

  #store(name: string): OpenTenant {
    const tables = { cassandra: this.#cassandra, keyspace: keyspaceOf(this.#prefix, name) };
    const kv = new EtcdKvStore(this.#etcd, tenantKeys(this.#prefix, name));
    const sweep = new KvSweep({ kv, runtime: this.#etcd.runtime });
    const words = new WordTable(tables);
    const objects = new CassandraObjectStore(tables, words);
    const blobs = new CassandraBlobStore(tables);
    return {
      kv,
      objects,
      blobs,
      forget: () => words.forget(),
      scrub: new CassandraScrub({ tables, objects, blobs, words }),
      close() {
        // A running step ends with its call.
        void sweep.close();
        kv.close();
      },
    };
  }
}

async function isReady<T>(part: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw new AppError("unavailable", `${part} is not ready: ${errorText(error)}`, { cause: error });
  }
}

function checkName(name: string): void {
  if (!TENANT_PATTERN.test(name) || name === SYSTEM)
    throw new AppError("invalid", `"${name}" cannot be the name of a tenant.`);
}

function tenantKeys(prefix: string, name: string): string {
  return `${prefix}/tenant/${name}/`;
}
