import {
  BegunRuns,
  Firings,
  JobGroups,
  JobRuns,
  JobService,
  OutputFollowing,
  ProxiedHosts,
  RunAccess,
  RunAges,
  RunRetention,
} from "../areas/jobs/index.ts";
import { PolicyPreviews, SshPolicyRunner } from "../areas/policies/index.ts";
import type { Core } from "./core.ts";
import type { Data } from "./data.ts";
import type { HostServices } from "./hosts.ts";
import type { Identity } from "./identity.ts";
import type { Scripting } from "./scripting.ts";

export type Execution = ReturnType<typeof execution>;

/** Jobs: their definitions, schedules and runs. */
export function execution(from: Core & Identity & Data & HostServices & Scripting) {
  const { options, points, runtime, secrets, stores, objects, membership, notifications, users, ospaceOf } = from;
  const { hosts, targets, stored, deployments, serverScripts } = from;
  const { rules, depots, policies, trials, actAs } = from;
  const jobs = new JobService({
    stores,
    runtime,
    objects,
    hosts,
    targets,
    ...(options.zone && { zone: options.zone }),
  });
  points.authoredJobs.fill(jobs);
  const begun = new BegunRuns({ stores, objects, jobs });
  points.begunRuns.fill({ kind: "job runs", goesOn: (...whose) => begun.goesOn(...whose) });
  const proxied = new ProxiedHosts({ stores, runtime, objects, secrets, hosts });
  points.proxied.fill(proxied);
  const access = new RunAccess({ stores, runtime, secrets, address: options.httpUrl });
  const retention = new RunRetention({ stores, objects, runtime });
  const runs = new JobRuns({
    ...{ access, stores, runtime, secrets, jobs, hosts, targets, stored, objects, notifications, proxied, retention },
    controllers: membership,
    scripts: serverScripts,
    authors: users,
  });
  points.commands.fill({
    gave: async (tenant, host, commandId) =>
      (await runs.gave(tenant, host, commandId)) || deployments.gave(tenant, host, commandId),
  });
  const firings = new Firings({
    ...{ stores, runtime, runs, ospaceOf },
    endings: runs.endings,
    authors: users,
    zone: options.zone ?? "UTC",
  });
  return {
    jobs,
    previews: new PolicyPreviews({
      ...{ hosts, targets, runtime, rules, depots, policies, trials },
      zoneOf: async ({ tenant, traceparent }, host) => hosts.zone(await actAs(tenant, traceparent), host),
    }),
    overSsh: new SshPolicyRunner({
      ...{ stores, runtime, tenants: from.tenants, sent: from.sent, hosts: hosts.overSsh, entries: from.ingest },
      controllers: membership,
    }),
    access,
    retention,
    ages: new RunAges({ stores, objects, runtime, ospaceOf }),
    runs,
    firings,
    jobGroups: new JobGroups({ stores, objects, secrets, runtime }),
    following: new OutputFollowing({ stores, objects, clock: runtime.clock, appends: runs.appends }),
  };
}
