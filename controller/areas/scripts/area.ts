import type { Area } from "../../area.ts";
import { CONCURRENT_HOST_OBJECT, webcontextHostObject, type WebContextParts } from "./host-objects.ts";
import { scriptRoutes } from "./routes.ts";
import type { ScriptService } from "./service.ts";

export interface ScriptParts extends WebContextParts {
  readonly scripts: ScriptService;
}

export function scriptsArea({ scripts, ...parts }: ScriptParts): Area {
  return {
    name: "scripts",
    endpoints: scriptRoutes(scripts),
    hostObjects: [CONCURRENT_HOST_OBJECT, webcontextHostObject(parts)],
  };
}
