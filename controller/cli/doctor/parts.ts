import { isOdpError, type OdpClient } from "../../../common/client/index.ts";
import { AppError, errorText } from "../../../common/errors.ts";
import { CLI_DOCTOR_ROWS_MAX } from "../../../common/limits.ts";

export interface Reading {
  readonly client: Pick<OdpClient, "call" | "download">;
  readonly signal: AbortSignal;
}

/** A part of the bundle; `text`: it is no JSON. */
export interface Part {
  readonly name: string;
  /** Its content, for people. */
  readonly about: string;
  readonly read: (reading: Reading) => Promise<unknown>;
}

/** All that a bundle reads of the controller. Each part is a call, or statements that read. */
export const PARTS: readonly Part[] = [
  {
    name: "readiness.json",
    about: "readiness",
    read: ({ client, signal }) => client.call("getReadyz", {}, { signal }),
  },
  {
    name: "metrics.txt",
    about: "metrics",
    read: async ({ client, signal }) => (await client.download("getMetrics", {}, { signal })).text(),
  },
  {
    name: "cluster.json",
    about: "nodes of the store",
    read: ({ client, signal }) => client.call("getClusterInfo", {}, { signal }),
  },
  {
    name: "settings.json",
    about: "settings of the controller",
    read: ({ client, signal }) => client.call("getClusterSettings", {}, { signal }),
  },
  {
    name: "repairs.json",
    about: "repairs",
    read: ({ client, signal }) => client.call("getClusterRepairs", {}, { signal }),
  },
  { name: "scrub.json", about: "scrub", read: ({ client, signal }) => client.call("getClusterScrub", {}, { signal }) },
  { name: "hosts.json", about: "hosts", read: hosts },
  { name: "policies.json", about: "policies", read: policies },
  {
    name: "failed-runs.json",
    about: "runs of jobs",
    read: (reading) =>
      newest(reading, "jobs/jobrun", "runid, host, name, status, code, message, stime, etime", "status != 'ok'"),
  },
  {
    name: "failed-deployments.json",
    about: "deployments",
    read: (reading) =>
      newest(
        reading,
        "system/deployment",
        "host, depot, version, action, state, code, message, ended",
        "state != 'ok'",
      ),
  },
  {
    name: "failed-policy-runs.json",
    about: "runs of policies",
    read: (reading) =>
      newest(reading, "system/policyrun", "host, policy, state, code, message, ended", "state != 'ok'"),
  },
  ...(["rule", "serverjs", "trigger"] as const).map(
    (kind): Part => ({
      name: `errors-of-${kind}.json`,
      about: `console log of ${kind}`,
      read: (reading) => newest(reading, `consolelog/${kind}`, "name, level, msg, edtime", "level >= 3"),
    }),
  ),
];

/** States alone: addresses, facts and settings of hosts may be anything. */
async function hosts({ client, signal }: Reading): Promise<unknown> {
  const all = await client.call("getHost", {}, { signal });
  return all.map(({ host, status, policies: states, depot, isagent, isextagent }) => ({
    ...{ host, status, isagent, isextagent, policies: states, depots: depot },
  }));
}

/** Without commands and their parameters. */
async function policies({ client, signal }: Reading): Promise<unknown> {
  const all = await client.call("getMonitoringPolicy", {}, { signal });
  return all.map(({ name, kind, status, hosts: targets, rule, changed }) => ({
    ...{ name, kind, status, hosts: targets, rule, changed },
  }));
}

async function newest(reading: Reading, name: string, columns: string, where: string): Promise<unknown> {
  const { client, signal } = reading;
  const mql = `select ${columns} from /${await spaceOf(reading)}/${name} where ${where} order by vtime desc limit ${CLI_DOCTOR_ROWS_MAX}`;
  return client.call("postMxobjectMql", { body: { mql } }, { signal, isRepeatable: true });
}

/**
 * Name space of the tenant, as the class of a job shows it: the jobs of the platform are in every tenant.
 * `AppError("denied")` if the user sees none of them.
 */
async function spaceOf({ client, signal }: Reading): Promise<string> {
  const [job] = await client.call("getJob", {}, { signal });
  if (job === undefined) throw new AppError("denied", "You see no job.");
  return job.class.split("/")[1] ?? "";
}

/** Why a part cannot be read, as `denied: …`. */
export function refusalText(error: unknown): string {
  return isOdpError(error) ? `${error.code}: ${error.message}` : errorText(error);
}
