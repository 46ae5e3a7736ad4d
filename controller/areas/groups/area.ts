import type { Area } from "../../area.ts";
import type { ExplainService } from "./explain.ts";
import { permHostObject } from "./host-objects.ts";
import { explainRoutes, groupRoutes } from "./routes.ts";
import type { GroupService } from "./service.ts";

export interface GroupParts {
  readonly groups: GroupService;
  readonly explaining: ExplainService;
}

export function groupsArea({ groups, explaining }: GroupParts): Area {
  return {
    name: "groups",
    endpoints: [...groupRoutes(groups), ...explainRoutes(explaining)],
    hostObjects: [permHostObject(groups)],
    leave: (tenant) => groups.leave(tenant),
    close: () => groups.close(),
  };
}
