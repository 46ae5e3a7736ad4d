import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLocalCluster, type ClusterSettings } from "../../../deploy/local/cluster.ts";

/** Etcd and Cassandra named by the settings, or otherwise one or three of each on this machine while `work` runs. */
export async function withCluster<T>(
  work: (settings: ClusterSettings) => Promise<T>,
  { nodes = 1 }: { readonly nodes?: 1 | 3 } = {},
): Promise<T> {
  const {
    ODP_ETCD_ENDPOINTS: etcd,
    ODP_CASSANDRA_CONTACT_POINTS: cassandra,
    ODP_CASSANDRA_DATACENTER: datacenter,
  } = process.env;
  if (etcd && cassandra)
    return work({
      etcdEndpoints: etcd.split(","),
      cassandraContactPoints: cassandra.split(","),
      cassandraDatacenter: datacenter || "datacenter1",
    });
  const dir = await mkdtemp(join(tmpdir(), "odp-bench-"));
  const local = await startLocalCluster({ dir, nodes, progress: (line) => console.log(`  ${line}`) });
  try {
    return await work(local.settings);
  } finally {
    await local.stop({ now: true });
    await rm(dir, { recursive: true, force: true });
  }
}
