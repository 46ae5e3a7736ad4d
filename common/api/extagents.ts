import { Type, type Static } from "typebox";
import { DEPLOY_DEFAULT_S, DEPOT_COMMAND_MAX_CHARS, EXTERNAL_AGENT_KEY_MAX_CHARS } from "../limits.ts";
import { FILE_NAME } from "./documented.ts";
import { HostEntry } from "./targets.ts";

/** Schemas of `/monitoring/extagent` and `/monitoring/zabbix`. */

const Hosts = Type.Array(HostEntry, { minItems: 1 });
const Name = Type.String({ minLength: 1, maxLength: 255, documented: FILE_NAME, description: "a depot" });
const Version = Type.String({ pattern: "^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}$", description: "three numbers: 1.0.0" });
const timeout = Type.Optional(Type.Integer({ minimum: 1, default: DEPLOY_DEFAULT_S, description: "seconds" }));

const force = Type.Optional(Type.Boolean({ description: "also what policies use" }));

export const ExtAgentTargets = Type.Object({ hosts: Hosts, timeout });
export type ExtAgentTargets = Static<typeof ExtAgentTargets>;

export const ExtAgentRemoval = Type.Object({ hosts: Hosts, name: Name, version: Version, timeout, force });

export const ExtAgentDeployment = Type.Object({
  hosts: Hosts,
  name: Name,
  version: Version,
  key: Type.Optional(
    Type.String({
      maxLength: EXTERNAL_AGENT_KEY_MAX_CHARS,
      description: "content of agent.key in the folder of the agent; without it the file is not changed",
    }),
  ),
  command: Type.Optional(
    Type.String({
      maxLength: DEPOT_COMMAND_MAX_CHARS,
      description: "run in the folder of the agent before it starts; without it, the depot's own command",
    }),
  ),
  timeout,
  force,
});
