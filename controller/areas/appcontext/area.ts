import type { Area } from "../../area.ts";
import { appcontextHostObject } from "./host-objects.ts";
import { appcontextRoutes } from "./routes.ts";
import type { AppcontextService } from "./service.ts";

export function appcontextArea(appcontext: AppcontextService): Area {
  return {
    name: "appcontext",
    endpoints: appcontextRoutes(appcontext),
    hostObjects: [appcontextHostObject(appcontext)],
  };
}
