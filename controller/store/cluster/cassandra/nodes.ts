import type { HostMap } from "cassandra-driver";
import type { DataNode } from "../../engine.ts";

/** The nodes that the driver knows. A node counts as up if this controller can reach it. */
export function dataNodes(hosts: HostMap): readonly DataNode[] {
  return hosts.values().map((host) => {
    const colon = host.address.lastIndexOf(":");
    return {
      datacenter: host.datacenter,
      hostid: host.hostId.toString(),
      isup: host.isUp(),
      peer: host.address.slice(0, colon),
      port: Number(host.address.slice(colon + 1)),
      rack: host.rack,
    };
  });
}
