import type { Area } from "../../area.ts";
import { queryHostObject } from "./host-objects.ts";
import { queryRoutes, searchRoutes } from "./routes.ts";
import type { SearchService } from "./search/index.ts";
import type { QueryService } from "./service.ts";

export interface QueryParts {
  readonly query: QueryService;
  readonly search: SearchService;
}

export function queryArea({ query, search }: QueryParts): Area {
  return {
    name: "query",
    hostObjects: [queryHostObject({ query, search })],
    endpoints: [...queryRoutes({ query }), ...searchRoutes({ search })],
    maintain: (tenant) => query.maintain(tenant),
    // Batches are resumed by the maintenance, which waits for them.
    stop: () => query.close(),
  };
}
