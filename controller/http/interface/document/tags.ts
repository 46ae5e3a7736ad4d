import type { Permission } from "../../../areas/permissions/index.ts";
import type { Endpoint } from "../endpoint.ts";
import type { Json } from "./schemas.ts";

type Area = Permission extends infer Each ? (Each extends `${infer Name}:${string}` ? Name : never) : never;

/** The groups of operations: the area of their permission, `public` without one, and the probes. */
const TAGS: Readonly<Record<Area | "public" | "probes", string>> = {
  appcontext: "Variables and collections that scripts and pages share",
  audit: "The audit trail",
  cluster: "Nodes of the store, their repair and comparison",
  config: "Entries of configuration, with versions and schemas",
  consolelog: "Messages of scripts, rules and triggers",
  depots: "Versions of scripts and their deployment to hosts",
  files: "Files and folders",
  hosts: "Hosts and the enrolment of their agents",
  jobs: "Jobs, their runs, groups of hosts and contexts",
  licences: "Licences of tenants",
  notifications: "Notifications, which are sent to WebSockets",
  objects: "Objects: MQL, search, export and import",
  perms: "Groups and their rights",
  policies: "What hosts collect: output of commands and logs",
  probes: "State of the controller",
  public: "Sign-in, and what every user may do with the own account",
  rules: "Rules that turn records into objects",
  schema: "Definitions of classes",
  scripts: "Scripts that run on the controller",
  tables: "Extension tables",
  tags: "Trees of tags, and the tags of objects",
  tenants: "Tenants of the installation",
  triggers: "Triggers of classes",
  users: "Users and organisations",
};

export function tagOf({ permission }: Pick<Endpoint, "permission">): string {
  return permission.split(":", 1)[0] ?? permission;
}

/** The tags of these endpoints and of the probes, by name. */
export function tagsOf(endpoints: readonly Endpoint[]): readonly Json[] {
  const used = new Set([...endpoints.map(tagOf), "probes"]);
  return Object.entries(TAGS)
    .filter(([name]) => used.has(name))
    .map(([name, description]) => ({ name, description }));
}
