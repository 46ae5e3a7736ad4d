import type { Area } from "../../area.ts";
import { extagentsRoutes } from "./routes.ts";
import type { ExtAgentService } from "./service.ts";

export function extagentsArea(agents: ExtAgentService): Area {
  return { name: "extagents", endpoints: extagentsRoutes(agents) };
}
