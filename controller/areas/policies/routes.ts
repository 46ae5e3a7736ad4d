import { Type } from "typebox";
import {
  CommandPolicyInput, LogPolicyInput, PolicyDeploy, PolicyList, PolicyRecord, PolicySelect, type LogPolicySpec,
} from "../../../common/api/policies.ts";
import { AppError } from "../../../common/errors.ts";
import { endpoint, type Endpoint } from "../../http/endpoint.ts";
import type { PolicyService } from "./service.ts";
import type { PolicyInput } from "./types.ts";

export function policyRoutes(policies: PolicyService): readonly Endpoint[] {
  return [...savingRoutes(policies), ...readingRoutes(policies), ...placingRoutes(policies)];
}

function savingRoutes(policies: PolicyService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST", path: "/monitoring/policy", permission: "policies:write", summary: "Creates or replaces a command policy",
      body: "json", input: CommandPolicyInput, output: PolicyRecord,
      handler: async ({ principal, input }) => ({ message: await policies.save(principal, commandInput(input)) }),
    }),
    endpoint({
      method: "POST", path: "/monitoring/policy/log", permission: "policies:write", summary: "Creates or replaces a log policy",
      body: "json", input: LogPolicyInput, output: PolicyRecord,
      handler: async ({ principal, input }) => ({ message: await policies.save(principal, logInput(input)) }),
    }),
    endpoint({
      method: "DELETE", path: "/monitoring/policy/:name", permission: "policies:write", summary: "Stops a policy everywhere and deletes it",
      input: PolicySelect, output: Type.String(),
      handler: async ({ principal, input }) => {
        await policies.remove(principal, input.name);
        return { message: "" };
      },
    }),
  ];
}

function readingRoutes(policies: PolicyService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET", path: "/monitoring/policy", permission: "policies:read", summary: "Lists the policies",
      input: PolicyList, output: Type.Array(PolicyRecord),
      handler: async ({ principal }) => ({ message: [...(await policies.list(principal))] }),
    }),
    endpoint({
      method: "GET", path: "/monitoring/policy/:name", permission: "policies:read", summary: "One policy",
      input: PolicySelect, output: PolicyRecord,
      handler: async ({ principal, input }) => ({ message: await policies.get(principal, input.name) }),
    }),
  ];
}

function placingRoutes(policies: PolicyService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST", path: "/monitoring/policy/deploy/:name", permission: "policies:run", summary: "Deploys a policy to its hosts",
      input: PolicyDeploy, output: PolicyRecord,
      handler: async ({ principal, input }) => ({ message: await policies.deploy(principal, input.name, input.hosts) }),
    }),
    endpoint({
      method: "POST", path: "/monitoring/policy/undeploy/:name", permission: "policies:run", summary: "Stops a policy on all its hosts",
      input: PolicySelect, output: PolicyRecord,
      handler: async ({ principal, input }) => ({ message: await policies.undeploy(principal, input.name) }),
    }),
  ];
}

function commandInput({ hosts, tags, attrs, ...rest }: CommandPolicyInput): PolicyInput {
  return { spec: { kind: "command", ...rest, ...attributes(attrs) }, ...places(hosts, tags) };
}

function logInput({ hosts, tags, attrs, priority, translation, ...rest }: LogPolicyInput): PolicyInput {
  const order = { ...(priority === undefined ? {} : { priority: [...list(priority)] }), ...orders(translation) };
  return { spec: { kind: "log", ...rest, ...order, ...attributes(attrs) }, ...places(hosts, tags) };
}

type Texts = string | readonly string[];

function places(hosts: Texts | undefined, tags: Texts | undefined): Omit<PolicyInput, "spec"> {
  return { ...(hosts === undefined ? {} : { hosts: list(hosts) }), ...(tags === undefined ? {} : { tags: list(tags) }) };
}

/** One text is a list of one, JSON of a list, or nothing. */
function list(given: Texts): readonly string[] {
  if (typeof given !== "string") return given.filter((text) => text !== "");
  if (given === "") return [];
  const parsed = given.startsWith("[") ? parsedJson(given) : undefined;
  return Array.isArray(parsed) ? parsed.map(String) : [given];
}

function attributes(given: Readonly<Record<string, string>> | string | undefined): { attrs?: Record<string, string> } {
  const value = members("attrs", given);
  if (value === undefined) return {};
  return { attrs: Object.fromEntries(Object.entries(value).map(([name, text]) => [name, String(text)])) };
}

function orders(given: LogPolicySpec["translation"] | string): Pick<LogPolicySpec, "translation"> {
  const value = members("translation", given);
  if (value === undefined) return {};
  // Checked as a whole by the service; here it is only brought out of its text.
  return { translation: value as NonNullable<LogPolicySpec["translation"]> };
}

/** An object, or its JSON text. A script that put an object into a form without making it text sent `[object Object]`: absent. */
function members(name: string, given: object | string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (given === undefined || given === "" || given === "[object Object]") return undefined;
  const value = typeof given === "string" ? parsedJson(given) : given;
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw new AppError("invalid", `${name} is no JSON object.`);
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
