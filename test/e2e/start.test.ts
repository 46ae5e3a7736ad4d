import { afterEach, expect, test } from "vitest";
import { addressOf, openProxy, type LinkProxy } from "../helpers/cluster-proxy.ts";
import { clusterSettings, describeCluster } from "../helpers/cluster.ts";
import { clusterVariables, Installation } from "./installation.ts";

describeCluster("a controller that starts while its stores are away", () => {
  const open: (LinkProxy | Installation)[] = [];
  afterEach(async () => {
    for (const one of open.splice(0)) await ("stop" in one ? one.stop() : one[Symbol.asyncDispose]());
  });

  test.each(["Cassandra", "etcd"] as const)("waits for %s, says so, and begins when it is there", async (part) => {
    const settings = clusterSettings();
    const toCassandra = await openProxy(addressOf(settings.cassandraContactPoints[0] ?? ""));
    const toEtcd = await openProxy(addressOf(settings.etcdEndpoints[0] ?? ""));
    open.unshift(toCassandra, toEtcd);
    const away = part === "etcd" ? toEtcd : toCassandra;
    away.set("cut");
    const through = {
      ...settings,
      etcdEndpoints: [`http://127.0.0.1:${String(toEtcd.port)}`],
      cassandraContactPoints: [`127.0.0.1:${String(toCassandra.port)}`],
    };
    const odp = await Installation.begin(clusterVariables(through));
    open.unshift(odp);
    await odp.controller.printed(new RegExp(`the start waits for the stores.*${part}`));
    away.set("open");
    await odp.ready();
    expect(await odp.mql("select host from /matrix/system/hostinfo")).toEqual([]);
  });
});
