import { randomBytes } from "node:crypto";
import { openClusterEngine } from "../../../controller/store/cluster/index.ts";
import type { Engine } from "../../../controller/store/engine.ts";
import { openTestEngine } from "../../helpers/engines/engine.ts";
import { realRuntime } from "../http/crew.ts";

export type BenchEngine = Pick<Engine, "system" | "tenant"> & AsyncDisposable;

/**
 * An embedded engine, or with `ODP_BENCH_STORE=cluster` a name space on the etcd and Cassandra that the settings name.
 * It has the tenant `matrix`, and removes all its data at the end.
 */
export async function openBenchEngine(): Promise<BenchEngine> {
  const { env } = process;
  if (env["ODP_BENCH_STORE"] !== "cluster") return openTestEngine();
  const engine = await openClusterEngine({
    etcdEndpoints: (env["ODP_ETCD_ENDPOINTS"] ?? "").split(","),
    cassandraContactPoints: (env["ODP_CASSANDRA_CONTACT_POINTS"] ?? "").split(","),
    cassandraDatacenter: env["ODP_CASSANDRA_DATACENTER"] ?? "datacenter1",
    prefix: `bench${randomBytes(4).toString("hex")}`,
    runtime: realRuntime(),
  });
  await engine.createTenant("matrix");
  return {
    system: () => engine.system(),
    tenant: (name) => engine.tenant(name),
    [Symbol.asyncDispose]: async () => {
      await engine.dropTenant("matrix");
      await engine.close();
    },
  };
}
