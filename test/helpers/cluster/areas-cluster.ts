import { inject } from "vitest";
import { openClusterEngine } from "../../../controller/store/cluster/index.ts";
import type { Engine, TenantStore } from "../../../controller/store/engine.ts";
import { ClusterAdmin, clusterRuntime } from "./admin.ts";
import { clusterProvision, clusterSettings } from "./cluster.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Start of the prefix of every installation of this run. */
    readonly areasPrefix: string;
  }
}

/** Tenants whose tables are created once per run and emptied for each test, because creating them takes seconds. */
const STANDING_TENANTS: readonly string[] = ["matrix", "second"];
const ALL = [...STANDING_TENANTS, "system"];

const inUse = new Set<number>();
/** Tenants requested since an installation was emptied, by its slot. Absent: unknown. */
const touched = new Map<number, Set<string>>();
let admin: Promise<ClusterAdmin> | undefined;

/**
 * Opens an empty installation on the cluster with the tenants `matrix` and `second`. After `close` the next test reuses
 * it. `undefined` if there is no cluster; then every test is skipped.
 */
export async function openAreasCluster(): Promise<Engine | undefined> {
  if (!clusterProvision().available) return undefined;
  let place = 0;
  while (inUse.has(place)) place++;
  inUse.add(place);
  const prefix = `${inject("areasPrefix")}p${place}`;
  admin ??= ClusterAdmin.connect(clusterSettings());
  await (await admin).empty(prefix, { kept: ALL, touched: touched.get(place) ?? new Set(ALL) });
  const tenants = new Set<string>();
  touched.set(place, tenants);
  const inner = await openClusterEngine({ ...clusterSettings(), prefix, runtime: clusterRuntime });
  return {
    kind: inner.kind,
    isRemote: inner.isRemote,
    system: () => {
      tenants.add("system");
      return inner.system();
    },
    tenant: (name) => {
      tenants.add(name);
      return tenant(inner, name);
    },
    createTenant: (name, options) => inner.createTenant(name, options),
    dropTenant: (name) => inner.dropTenant(name),
    releaseTenant: (name) => inner.releaseTenant(name),
    nodes: () => inner.nodes(),
    ready: () => inner.ready(),
    close: async () => {
      await inner.close();
      inUse.delete(place);
    },
  };
}

/** Created on request, because most tests need one of the two only. */
async function tenant(engine: Engine, name: string): Promise<TenantStore> {
  if (STANDING_TENANTS.includes(name)) await engine.createTenant(name);
  return engine.tenant(name);
}

export async function closeAreasCluster(): Promise<void> {
  await (await admin)?.close();
  admin = undefined;
}
