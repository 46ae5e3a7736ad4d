import { Type } from "typebox";
import { DeploymentOutcome } from "../../../common/api/depots.ts";
import { ExtAgentDeployment, ExtAgentRemoval, ExtAgentTargets } from "../../../common/api/extagents.ts";
import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import { answeredDeployment } from "../depots/index.ts";
import type { ExtAgentService } from "./service.ts";

/** Both names mean the same; clients use either. */
const NAMES = ["extagent", "zabbix"] as const;

const SUMMARIES = {
  start: "Starts external agents",
  stop: "Stops external agents",
  restart: "Stops external agents and starts them again",
} as const;

const ACTIONS = ["start", "stop", "restart"] as const;

const DECLARED = {
  method: "POST",
  permission: "depots:run",
  failsInPart: true,
  body: "multipart",
  output: Type.Array(DeploymentOutcome),
} as const;

export function extagentsRoutes(agents: ExtAgentService): readonly Endpoint[] {
  return NAMES.flatMap((name) => [...placingRoutes(agents, name), ...runningRoutes(agents, name)]);
}

function placingRoutes(agents: ExtAgentService, name: (typeof NAMES)[number]): readonly Endpoint[] {
  return [
    endpoint({
      ...DECLARED,
      path: `/monitoring/${name}/deploy`,
      summary: "Puts external agents on hosts and starts them",
      input: ExtAgentDeployment,
      secrets: ["key"],
      handler: ({ principal, input: { timeout, ...request } }) =>
        answeredDeployment((warn) => agents.deploy(principal, { ...request, timeoutSeconds: timeout, warn })),
    }),
    endpoint({
      ...DECLARED,
      path: `/monitoring/${name}/undeploy`,
      summary: "Stops external agents and takes them off hosts",
      input: ExtAgentRemoval,
      handler: ({ principal, input: { timeout, ...request } }) =>
        answeredDeployment((warn) => agents.undeploy(principal, { ...request, timeoutSeconds: timeout, warn })),
    }),
  ];
}

function runningRoutes(agents: ExtAgentService, name: (typeof NAMES)[number]): readonly Endpoint[] {
  return ACTIONS.map((action) =>
    endpoint({
      ...DECLARED,
      path: `/monitoring/${name}/${action}`,
      summary: SUMMARIES[action],
      input: ExtAgentTargets,
      handler: ({ principal, input: { hosts, timeout } }) =>
        answeredDeployment((warn) => agents.run(principal, action, { hosts, timeoutSeconds: timeout, warn })),
    }),
  );
}
