import { randomBytes } from "node:crypto";
import { describe, inject } from "vitest";
import type { Clock, Random } from "../../../common/time.ts";
import type { Engine } from "../../../controller/store/engine.ts";
import type { ContractSubject } from "../../../controller/store/contract/harness.ts";
import { Etcd } from "../../../controller/store/cluster/etcd/etcd.ts";
import { EtcdKvStore } from "../../../controller/store/cluster/etcd/kv.ts";
import type { KvStore } from "../../../controller/store/kv.ts";
import { openClusterEngine } from "../../../controller/store/cluster/index.ts";
import type { ClusterSettings } from "../../../deploy/local/cluster.ts";
import { realClock, shiftedClock } from "../time/clock.ts";
import { ClusterAdmin, clusterRuntime } from "./admin.ts";
import type { ClusterProvision } from "./cluster-setup.ts";

export { clusterRuntime };

/** The etcd and Cassandra of this run, or the reason why there are none. */
export function clusterProvision(): ClusterProvision {
  return inject("cluster");
}

/** Use it inside `describeCluster`, for tests that need the cluster. */
export function clusterSettings(): ClusterSettings {
  const provision = clusterProvision();
  if (!provision.available) throw new Error(provision.reason);
  return provision.settings;
}

/** `describe`, skipped with the reason in its name if there is no etcd and Cassandra. */
export function describeCluster(name: string, suite: () => void): void {
  const provision = clusterProvision();
  const title = provision.available ? name : `${name} (no etcd and Cassandra: ${provision.reason})`;
  describe.skipIf(!provision.available)(title, suite);
}

export interface TestClusterEngine extends Engine, AsyncDisposable {
  /** Another engine with the same prefix sees the same tenants. */
  readonly prefix: string;
}

export interface TestClusterOptions {
  /** Absent: a random prefix. */
  readonly prefix?: string;
  readonly settings?: ClusterSettings;
  /** Absent: `matrix` and `second`. */
  readonly tenants?: readonly string[];
  /** Absent: the real clock. */
  readonly clock?: Clock;
  /** Absent: real randomness. The first number, from 0 to 1, selects the etcd member that is used first. */
  readonly random?: Random;
}

/**
 * Opens an engine with its own keys and keyspaces and the tenants `matrix` and `second`. Disposing removes all of them,
 * including those of the system.
 */
export async function openTestClusterEngine(options: TestClusterOptions = {}): Promise<TestClusterEngine> {
  const prefix = options.prefix ?? `t${randomBytes(5).toString("hex")}`;
  const settings = options.settings ?? clusterSettings();
  const inner = await openClusterEngine({
    ...settings,
    prefix,
    runtime: { ...clusterRuntime, clock: options.clock ?? realClock, random: options.random ?? clusterRuntime.random },
  });
  for (const tenant of options.tenants ?? ["matrix", "second"]) await inner.createTenant(tenant);
  return {
    kind: inner.kind,
    isRemote: inner.isRemote,
    prefix,
    system: () => inner.system(),
    tenant: (name) => inner.tenant(name),
    createTenant: (name, tenantOptions) => inner.createTenant(name, tenantOptions),
    dropTenant: (name) => inner.dropTenant(name),
    releaseTenant: (name) => inner.releaseTenant(name),
    nodes: () => inner.nodes(),
    ready: () => inner.ready(),
    close: () => inner.close(),
    [Symbol.asyncDispose]: async () => {
      await inner.close();
      // A second engine on the same prefix leaves the cleanup to the first.
      if (options.prefix !== undefined) return;
      const admin = await ClusterAdmin.connect(settings);
      await admin.remove(prefix);
      await admin.close();
    },
  };
}

/** Opens the subject of the store contracts on the cluster. Its time passes in reality and cannot be moved. */
export async function openClusterSubject(options: Pick<TestClusterOptions, "random"> = {}): Promise<ContractSubject> {
  const engine = await openTestClusterEngine(options);
  const etcd = new Etcd(clusterSettings().etcdEndpoints, clusterRuntime);
  const kvs = new ShiftedKvs(engine.prefix);
  const [store, other] = await Promise.all([engine.tenant("matrix"), engine.tenant("second")]);
  return {
    store,
    other,
    clock: realClock,
    at: (offsetMs) => kvs.at(offsetMs),
    compactKv: async () => {
      const { revision } = await store.kv.list("");
      await etcd.kv.compact({ revision, physical: true });
    },
    close: async () => {
      etcd.close();
      kvs.close();
      await engine[Symbol.asyncDispose]();
    },
  };
}

/** The tenant `matrix` for controllers whose clocks differ. */
class ShiftedKvs {
  readonly #prefix: string;
  readonly #open = new Map<number, { readonly etcd: Etcd; readonly kv: EtcdKvStore }>();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  at(offsetMs: number): KvStore {
    const opened = this.#open.get(offsetMs) ?? this.#connect(offsetMs);
    this.#open.set(offsetMs, opened);
    return opened.kv;
  }

  #connect(offsetMs: number): { readonly etcd: Etcd; readonly kv: EtcdKvStore } {
    const runtime = { ...clusterRuntime, clock: shiftedClock(realClock, offsetMs) };
    const etcd = new Etcd(clusterSettings().etcdEndpoints, runtime);
    return { etcd, kv: new EtcdKvStore(etcd, `${this.#prefix}/tenant/matrix/`) };
  }

  close(): void {
    for (const { etcd, kv } of this.#open.values()) {
      kv.close();
      etcd.close();
    }
  }
}
