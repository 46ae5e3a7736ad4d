import { ClusterInfoInput, ClusterInfoOutput } from "../../../common/api/cluster.ts";
import { endpoint, type Endpoint } from "../../http/endpoint.ts";
import type { ClusterService } from "./service.ts";

export function clusterRoutes(cluster: ClusterService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/cluster/info",
      permission: "cluster:read",
      summary: "The nodes that hold the data",
      input: ClusterInfoInput,
      output: ClusterInfoOutput,
      handler: async ({ principal }) => ({ message: { datastore: [...(await cluster.nodes(principal))] } }),
    }),
  ];
}
