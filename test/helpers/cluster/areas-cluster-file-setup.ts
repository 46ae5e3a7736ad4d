import { afterAll, beforeEach } from "vitest";
import { closeAreasCluster } from "./areas-cluster.ts";
import { clusterProvision } from "./cluster.ts";

const provision = clusterProvision();
beforeEach((context) => {
  if (!provision.available) context.skip(`no etcd and Cassandra: ${provision.reason}`);
});
afterAll(closeAreasCluster);
