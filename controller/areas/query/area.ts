import type { Area } from "../../area.ts";
import type { Objects } from "../objects/index.ts";
import { AI_HOST_OBJECT, graphHostObject } from "./graph-host-objects.ts";
import { queryHostObject } from "./host-objects.ts";
import { queryRoutes, searchRoutes } from "./routes.ts";
import type { SearchService } from "./search/index.ts";
import type { QueryService } from "./service.ts";

export interface QueryParts {
  readonly query: QueryService;
  readonly search: SearchService;
  readonly objects: Pick<Objects, "visible">;
}

export function queryArea({ query, search, objects }: QueryParts): Area {
  return {
    name: "query",
    hostObjects: [queryHostObject({ query, search }), graphHostObject({ query, objects }), AI_HOST_OBJECT],
    endpoints: [...queryRoutes({ query }), ...searchRoutes({ search })],
    maintain: (tenant) => query.maintain(tenant),
    // The maintenance resumes batches and waits for them.
    stop: () => query.close(),
  };
}
