import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { describe, inject } from "vitest";
import type { Engine } from "../../controller/store/engine.ts";
import { openClusterEngine } from "../../controller/store/cluster/engine.ts";
import type { Runtime } from "../../controller/runtime.ts";
import type { ClusterSettings } from "../../deploy/local/cluster.ts";
import { realClock } from "./clock.ts";
import type { ClusterProvision } from "./cluster-setup.ts";

/** The etcd and Cassandra of this run, or why there are none. */
export function clusterProvision(): ClusterProvision {
  return inject("cluster");
}

/** For tests that run only when there is one: use inside `describeCluster`. */
export function clusterSettings(): ClusterSettings {
  const provision = clusterProvision();
  if (!provision.available) throw new Error(provision.reason);
  return provision.settings;
}

/** `describe`, skipped with the reason in its name when there is no etcd and Cassandra. */
export function describeCluster(name: string, suite: () => void): void {
  const provision = clusterProvision();
  if (provision.available) describe(name, suite);
  else describe.skip(`${name} (no etcd and Cassandra: ${provision.reason})`, suite);
}

export interface TestClusterEngine extends Engine, AsyncDisposable {
  /** Another engine with the same prefix sees the same tenants. */
  readonly prefix: string;
}

export interface TestClusterOptions {
  /** Made up when absent. */
  readonly prefix?: string;
  readonly settings?: ClusterSettings;
  /** `matrix` and `second` when absent. */
  readonly tenants?: readonly string[];
}

export const clusterRuntime: Runtime = {
  clock: realClock,
  random: { next: () => Math.random(), bytes: (count) => new Uint8Array(randomBytes(count)) },
  log: pino({ level: process.env.ODP_TEST_LOG ?? "silent" }),
};

/** Keys and keyspaces of its own with the tenants `matrix` and `second`; disposing removes them all. */
export async function openTestClusterEngine(options: TestClusterOptions = {}): Promise<TestClusterEngine> {
  const prefix = options.prefix ?? `t${randomBytes(5).toString("hex")}`;
  const tenants = options.tenants ?? ["matrix", "second"];
  const inner = await openClusterEngine({ ...(options.settings ?? clusterSettings()), prefix, runtime: clusterRuntime });
  const made = new Set<string>();
  const createTenant: Engine["createTenant"] = async (name, settings) => {
    await inner.createTenant(name, settings);
    made.add(name);
  };
  for (const tenant of tenants) await createTenant(tenant);
  return {
    kind: inner.kind,
    prefix,
    system: () => inner.system(),
    tenant: (name) => inner.tenant(name),
    createTenant,
    dropTenant: (name) => inner.dropTenant(name),
    nodes: () => inner.nodes(),
    ready: () => inner.ready(),
    close: () => inner.close(),
    [Symbol.asyncDispose]: async () => {
      for (const name of made) await inner.dropTenant(name);
      await inner.close();
    },
  };
}
