import type { Area } from "../../area.ts";
import type { Outbound } from "../../outbound/index.ts";
import { LUA_LIBRARY_OBJECTS } from "../../scripting/index.ts";
import { CONCURRENT_HOST_OBJECT, webcontextHostObject, type WebContextParts } from "./host-objects.ts";
import { dialHostObject, httpHostObject } from "./http.ts";
import { REFUSED_HOST_OBJECTS } from "./refused.ts";
import { scriptRoutes } from "./routes.ts";
import type { ScriptService } from "./service.ts";

export interface ScriptParts extends WebContextParts {
  readonly scripts: ScriptService;
  readonly outbound: Outbound;
}

export function scriptsArea({ scripts, outbound, ...parts }: ScriptParts): Area {
  return {
    name: "scripts",
    endpoints: scriptRoutes(scripts),
    hostObjects: [
      CONCURRENT_HOST_OBJECT,
      webcontextHostObject(parts),
      httpHostObject(outbound),
      dialHostObject(outbound),
      ...LUA_LIBRARY_OBJECTS,
      ...REFUSED_HOST_OBJECTS,
    ],
  };
}
