import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import type { Clock, Random } from "../../../common/time.ts";
import { openEmbeddedEngine } from "../../../controller/store/embedded/index.ts";
import type { Engine } from "../../../controller/store/engine.ts";
import { faulty } from "../../../controller/store/faulty.ts";
import { realClock, seededRandom } from "../time/clock.ts";
import { storeFolder } from "../runs/folders.ts";

/**
 * True if these tests run over a real etcd and Cassandra (vitest project `areas-cluster`), whose time cannot be moved.
 */
export const onCluster = process.env.ODP_TEST_ENGINE === "cluster";

export interface TestEngineOptions {
  /** Wraps the stores so that they show the faults of a cluster, determined by this seed. */
  readonly faultySeed?: number;
  /** Absent, and always on the cluster: the real clock. */
  readonly clock?: Clock;
}

/** An engine with the tenants `matrix` and `second` and its own folder. Disposing closes it and removes all data. */
export interface TestEngine extends Engine, AsyncDisposable {
  readonly dir: string;
}

const realRandom: Random = {
  next: () => Math.random(),
  bytes: (count) => new Uint8Array(randomBytes(count)),
};

export async function openTestEngine(options: TestEngineOptions = {}): Promise<TestEngine> {
  const dir = await storeFolder("odp-test-");
  const plain =
    (onCluster ? await openOnCluster() : undefined) ?? (await openEmbedded(dir, options.clock ?? realClock));
  const inner: Engine =
    options.faultySeed === undefined ? plain : faulty(plain, { random: seededRandom(options.faultySeed) });
  const close = async (): Promise<void> => {
    await inner.close();
    await rm(dir, { recursive: true, force: true });
  };
  return {
    kind: inner.kind,
    isRemote: inner.isRemote,
    dir,
    system: () => inner.system(),
    tenant: (name) => inner.tenant(name),
    createTenant: (name, tenantOptions) => inner.createTenant(name, tenantOptions),
    dropTenant: (name) => inner.dropTenant(name),
    releaseTenant: (name) => inner.releaseTenant(name),
    nodes: () => inner.nodes(),
    ready: () => inner.ready(),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function openEmbedded(dir: string, clock: Clock): Promise<Engine> {
  const engine = await openEmbeddedEngine({ dir, runtime: { clock, random: realRandom } });
  await engine.createTenant("matrix");
  await engine.createTenant("second");
  return engine;
}

/**
 * Tools use this file too, so vitest is imported only here. If tests are skipped because there is no cluster, hooks of
 * the whole file still run; they get an embedded engine.
 */
async function openOnCluster(): Promise<Engine | undefined> {
  const { openAreasCluster } = await import("../cluster/areas-cluster.ts");
  return openAreasCluster();
}
