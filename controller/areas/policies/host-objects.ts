import { Type } from "typebox";
import { CommandPolicyInput, LogPolicyInput } from "../../../common/api/policies.ts";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostFunction, type HostObject, membersOf } from "../../scripting/index.ts";
import { policyInput } from "./input.ts";
import type { PolicyService } from "./service.ts";

const NAME = { name: "name", schema: Type.String({ description: "Name of the policy" }) } as const;
const MADE = `rule.put("/matrix/rules/example", "--class=/matrix/consolelog/rule\\n--parser=text\\n--fields=msg");
policy.save({ name: "example", rule: "/matrix/rules/example", command: "date", ctype: 1, interval: 1, unit: "hour" }); `;

/** Host object `policy`: command and log policies. */
export function policyHostObject(policies: PolicyService): HostObject {
  return {
    name: "policy",
    summary: "Policies and the hosts they are deployed to, with the rights of the script",
    functions: [...reading(policies), ...changing(policies)],
  };
}

function reading(policies: PolicyService): readonly HostFunction[] {
  return [
    hostFunction({
      name: "list",
      summary: "The policies",
      parameters: [],
      returns: "list of records of policies",
      example: 'OUTPUT = _.pluck(policy.list(), "name")',
      call: async ({ principal }) => valueOf(await policies.list(principal)),
    }),
    hostFunction({
      name: "get",
      summary: "One policy",
      parameters: [NAME],
      returns: "its record",
      example: `${MADE}OUTPUT = policy.get("example").status`,
      call: async ({ principal }, name) => valueOf(await policies.get(principal, name)),
    }),
  ];
}

function changing(policies: PolicyService): readonly HostFunction[] {
  const saving = (name: "save" | "savelog", kind: "command" | "log", example: string): HostFunction =>
    hostFunction({
      name,
      summary: `Makes or replaces a ${kind} policy; where its hosts are given, it is deployed to them`,
      parameters: [
        {
          name: "policy",
          schema: Type.Object({}, { description: "Its members, as POST /monitoring/policy takes them" }),
        },
      ],
      returns: "its record",
      example,
      changes: true,
      call: async ({ principal, log }, policy) => {
        const input =
          kind === "log"
            ? policyInput(kind, membersOf(LogPolicyInput, policy, { log }))
            : policyInput(kind, membersOf(CommandPolicyInput, policy, { log }));
        return valueOf(await policies.save(principal, input));
      },
    });
  return [
    saving("save", "command", MADE.trim()),
    saving(
      "savelog",
      "log",
      `${MADE}policy.savelog({ name: "examplelog", rule: "/matrix/rules/example", dir: "/var/log", match: "x[.]log" })`,
    ),
    removing(policies),
    hostFunction({
      name: "deploy",
      summary: "Deploys a policy to its hosts",
      parameters: [
        NAME,
        {
          name: "hosts",
          schema: Type.Array(Type.String(), { description: "Added to the hosts of the policy" }),
          optional: true,
        },
      ],
      returns: "its record",
      example: `${MADE}try { policy.deploy("example", ["none"]) } catch (unknown) { OUTPUT = unknown.code }`,
      changes: true,
      call: async ({ principal }, name, hosts) => valueOf(await policies.deploy(principal, name, hosts)),
    }),
    hostFunction({
      name: "undeploy",
      summary: "Stops a policy on all its hosts",
      parameters: [NAME],
      returns: "its record",
      example: `${MADE}OUTPUT = policy.undeploy("example").status`,
      changes: true,
      call: async ({ principal }, name) => valueOf(await policies.undeploy(principal, name)),
    }),
  ];
}

function removing(policies: PolicyService): HostFunction {
  return hostFunction({
    name: "delete",
    summary: "Deletes a policy",
    parameters: [
      NAME,
      {
        name: "force",
        schema: Type.Boolean({ description: "True: also a policy that is deployed, which is stopped" }),
        optional: true,
      },
    ],
    returns: "nothing",
    example: `${MADE}policy.delete("example")`,
    changes: true,
    call: async ({ principal }, name, force) => {
      await policies.remove(principal, name, { force });
      return undefined;
    },
  });
}

function valueOf(answer: object): Value {
  return answer as Value;
}
