import { Type } from "typebox";
import {
  CommandPolicyInput,
  LogPolicyInput,
  PolicyChange,
  PolicyDeploy,
  PolicyList,
  PolicyRecord,
  PolicyRemove,
  PolicySelect,
} from "../../../common/api/policies.ts";
import { endpoint, type Answer, type Endpoint } from "../../http/interface/endpoint.ts";
import { confRoutes } from "./conf/routes.ts";
import { policyInput } from "./input.ts";
import type { PolicyService } from "./service.ts";
import { targetRoutes } from "./targets/routes.ts";

export function policyRoutes(policies: PolicyService): readonly Endpoint[] {
  return [
    ...savingRoutes(policies),
    ...readingRoutes(policies),
    ...placingRoutes(policies),
    ...confRoutes(policies.confs),
    ...targetRoutes(policies.targets),
  ];
}

function answerOf(policy: PolicyRecord): Answer<PolicyRecord> {
  return { message: policy, revision: policy.revision };
}

/** The answer of a change, with the warnings that it gave. */
async function answered(
  changed: (warn: (text: string) => void) => Promise<PolicyRecord>,
): Promise<Answer<PolicyRecord>> {
  const warnings: string[] = [];
  const answer = answerOf(await changed((text) => warnings.push(text)));
  return { ...answer, warnings };
}

function savingRoutes(policies: PolicyService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/monitoring/policy",
      permission: "policies:write",
      summary: "Creates or replaces a command policy",
      body: "json",
      input: CommandPolicyInput,
      output: PolicyRecord,
      revised: true,
      handler: ({ principal, input, expected }) =>
        answered((warn) => policies.save(principal, { ...policyInput("command", input), warn }, expected)),
    }),
    endpoint({
      method: "POST",
      path: "/monitoring/policy/log",
      permission: "policies:write",
      summary: "Creates or replaces a log policy",
      body: "json",
      input: LogPolicyInput,
      output: PolicyRecord,
      revised: true,
      handler: ({ principal, input, expected }) =>
        answered((warn) => policies.save(principal, { ...policyInput("log", input), warn }, expected)),
    }),
    endpoint({
      method: "PATCH",
      path: "/monitoring/policy/:name",
      permission: "policies:write",
      summary: "Changes the members that are sent",
      body: "json",
      input: PolicyChange,
      output: PolicyRecord,
      revised: true,
      handler: ({ principal, input, expected }) =>
        answered((warn) => policies.edit(principal, input, { expected, warn })),
    }),
    endpoint({
      method: "DELETE",
      path: "/monitoring/policy/:name",
      permission: "policies:write",
      summary: "Deletes a policy",
      input: PolicyRemove,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input: { name, force }, expected }) => {
        await policies.remove(principal, name, { expected, force });
        return { message: "", revision: undefined };
      },
    }),
  ];
}

function readingRoutes(policies: PolicyService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/monitoring/policy",
      permission: "policies:read",
      summary: "Lists the policies",
      input: PolicyList,
      output: Type.Array(PolicyRecord),
      handler: async ({ principal }) => ({ message: [...(await policies.list(principal))] }),
    }),
    endpoint({
      method: "GET",
      path: "/monitoring/policy/:name",
      permission: "policies:read",
      summary: "One policy",
      input: PolicySelect,
      output: PolicyRecord,
      revised: true,
      handler: async ({ principal, input }) => answerOf(await policies.get(principal, input.name)),
    }),
  ];
}

function placingRoutes(policies: PolicyService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/monitoring/policy/deploy/:name",
      permission: "policies:run",
      summary: "Deploys a policy to its hosts",
      input: PolicyDeploy,
      output: PolicyRecord,
      revised: true,
      handler: ({ principal, input: { name, hosts }, expected }) =>
        answered((warn) => policies.deploy(principal, name, hosts, { expected, warn })),
    }),
    endpoint({
      method: "POST",
      path: "/monitoring/policy/undeploy/:name",
      permission: "policies:run",
      summary: "Stops a policy on all its hosts",
      input: PolicySelect,
      output: PolicyRecord,
      revised: true,
      handler: async ({ principal, input, expected }) =>
        answerOf(await policies.undeploy(principal, input.name, expected)),
    }),
  ];
}
