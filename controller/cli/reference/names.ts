import type { OdpClient } from "../../../common/client/index.ts";
import { allGroups } from "../commands/groups.ts";
import { newestRuns } from "../commands/runs.ts";
import { scriptPaths } from "../commands/scripts.ts";
import { userNodes } from "../commands/users.ts";
import type { NamedThing } from "../declared/declaration.ts";

/** Names of things, for the completion of shells. */
export const NAMES: Readonly<Record<NamedThing, (client: OdpClient) => Promise<readonly string[]>>> = {
  hosts: async (client) => (await client.call("getHost")).map(({ host }) => host),
  policies: async (client) => (await client.call("getMonitoringPolicy")).map(({ name }) => name),
  jobs: async (client) => (await client.call("getJob")).map(({ fullname }) => fullname),
  depots: async (client) => (await client.call("getMonitoringDepot")).map(({ name }) => name),
  users: async (client) =>
    (await userNodes(client, {})).filter(({ otype }) => otype === "usr").map(({ username }) => username),
  groups: async (client) => (await allGroups(client)).map(({ fullname }) => fullname),
  tenants: async (client) => (await client.call("getCompanys")).map(({ name }) => name),
  classes: async (client) => (await client.call("getMxobjectSchemaClassList")).map(({ name }) => name),
  rules: async (client) => (await client.call("getMxobjectRule")).map(({ key }) => key),
  runs: newestRuns,
  scripts: async (client) => await scriptPaths(client),
};
