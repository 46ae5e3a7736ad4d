import {
  DeploymentService,
  DepotService,
  depotRoutes,
  depotClasses,
  WaitingDeployments,
} from "../../../controller/areas/depots/index.ts";
import type {
  AgentState,
  CommandOutcome,
  DispatchOptions,
  HostCommand,
  Hosts,
  HostSettings,
  WayTo,
} from "../../../controller/areas/hosts/index.ts";
import {
  jobClasses,
  jobRoutes,
  JobRuns,
  JobService,
  jobSockets,
  OutputFollowing,
  RunCancelling,
  RunRetrying,
  RunStates,
} from "../../../controller/areas/jobs/index.ts";
import type { Notification } from "../../../controller/areas/notifications/index.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { PolicyService, policyRoutes, policyClasses } from "../../../controller/areas/policies/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import type { Row } from "../../../common/value.ts";
import { AppError } from "../../../common/errors.ts";
import type { Rule } from "../../../controller/areas/rules/index.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import { UNAUDITED } from "../areas/audit.ts";
import { realClock } from "../time/clock.ts";
import { openTestEngine } from "../engines/engine.ts";
import { openTestHttp } from "../http/http-app.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../time/runtime.ts";
import { ALONE, NAMED_HOSTS, noReports } from "../hosts/named-hosts.ts";

/** Maximum number of hosts in all concurrent executions. */
export const MONITORING_RUNS_MAX = 256;

/** Hosts `h1`, `h2`, …. Commands sent to them are recorded, and answered according to `behaviour`. */
export class ScriptedHosts
  implements
    Pick<
      Hosts,
      | "dispatch"
      | "noteDepot"
      | "exists"
      | "wayTo"
      | "refresh"
      | "agentState"
      | "policyReports"
      | "depotsOn"
      | "settings"
    >
{
  readonly sent: { readonly host: string; readonly command: HostCommand }[] = [];
  readonly depots: { readonly host: string; readonly name: string; readonly present: boolean }[] = [];
  readonly refreshed: string[] = [];
  /** Reports of agents, by host. Other hosts have agents that are connected and report no confs. */
  readonly agents = new Map<string, Partial<AgentState>>();
  behaviour: (host: string, command: HostCommand, options: DispatchOptions) => Partial<CommandOutcome> = () => ({});

  async dispatch(
    _principal: unknown,
    host: string,
    command: HostCommand,
    options: DispatchOptions,
  ): Promise<CommandOutcome> {
    if (!(await this.exists(undefined, host))) throw new AppError("not_found", `There is no host ${host}.`);
    this.sent.push({ host, command });
    return {
      host,
      state: "ok",
      code: 0,
      message: "",
      startedMs: 1,
      endedMs: Date.now(),
      ...this.behaviour(host, command, options),
    };
  }

  exists(_principal: unknown, host: string): Promise<boolean> {
    return Promise.resolve(/^h\d+$/.test(host));
  }

  async wayTo(_principal: unknown, host: string): Promise<WayTo | undefined> {
    return (await this.exists(undefined, host)) ? "agent" : undefined;
  }

  policyReports(): AsyncIterable<never> {
    return noReports();
  }

  async agentState(_principal: unknown, host: string): Promise<AgentState | undefined> {
    if (!(await this.exists(undefined, host))) return undefined;
    return { hasAgent: true, isOnline: true, policies: {}, confs: {}, ...this.agents.get(host) };
  }

  settings(): Promise<HostSettings> {
    return Promise.resolve({ isextagent: 0, iszabbix: 0, config: {} });
  }

  refresh(_tenant: string, hosts: readonly string[]): void {
    this.refreshed.push(...hosts);
  }

  depotsOn(_principal: unknown, host: string): Promise<readonly string[]> {
    return Promise.resolve(this.depots.filter((one) => one.host === host && one.present).map(({ name }) => name));
  }

  noteDepot(_principal: unknown, host: string, depot: { readonly name: string }, present: boolean): Promise<void> {
    this.depots.push({ host, name: depot.name, present });
    return Promise.resolve();
  }
}

/** Depots, policies and jobs with real permission checks, objects and queries, on an embedded store. */
export async function openMonitoring() {
  const runtime = testRuntime(realClock);
  const engine = await openTestEngine();
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  const hosts = new ScriptedHosts();
  const published: Notification[] = [];
  const notifications = { publish: (_tenant: string, notification: Notification) => void published.push(notification) };
  const services = servicesOn({ stores: engine, runtime, objects, hosts, notifications });
  const { depots, policies, jobs, runs } = services;
  for (const definition of [...depotClasses(depots), ...policyClasses(policies), ...jobClasses(jobs)])
    objects.registerSystemClass(definition);
  const query = new QueryService({ objects, runtime });
  const following = new OutputFollowing({ stores: engine, objects, clock: runtime.clock, appends: runs.appends });
  const retrying = new RunRetrying({ runs, query });
  const cancelling = new RunCancelling({ runs, jobs, query });
  const states = new RunStates({ stores: engine, jobs, query });
  const ofJobs = jobRoutes({ jobs, runs, following, retrying, cancelling, states, audit: UNAUDITED });
  const endpoints = [...depotRoutes(services), ...policyRoutes(policies), ...ofJobs];
  const http = await openTestHttp({ endpoints, sockets: jobSockets({ following }) });
  return {
    hosts,
    depots,
    policies,
    jobs,
    runs,
    published,
    http,
    engine,
    objects,
    mql: (text: string, tenant = "matrix"): Promise<readonly Row[]> =>
      query.rows(testPrincipal("administrator", tenant), text),
    change: (text: string) => query.run(testPrincipal(), text),
    async [Symbol.asyncDispose]() {
      await runs.close();
      await http[Symbol.asyncDispose]();
      await objects.close();
      await engine.close();
    },
  };
}

interface Surroundings {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly objects: ObjectService;
  readonly hosts: ScriptedHosts;
  readonly notifications: { publish(tenant: string, notification: Notification): void };
}

function servicesOn({ stores, runtime, objects, hosts, notifications }: Surroundings) {
  const depots = new DepotService({ stores, runtime, objects });
  const stored = { outcome: () => Promise.resolve(undefined) };
  const controllers = { own: "this", has: () => true };
  const deployments = new DeploymentService({
    targets: NAMED_HOSTS,
    depots,
    hosts,
    stores,
    stored,
    objects,
    notifications,
    controllers,
    runtime,
  });
  const waiting = new WaitingDeployments({
    ...{ deployments, hosts, stores, objects, runtime },
    authors: { present: (tenant) => Promise.resolve(testPrincipal("administrator", tenant)) },
  });
  const policies = new PolicyService({
    targets: NAMED_HOSTS,
    controllers: ALONE,
    limit: { percent: 20, hosts: 5 },
    stores,
    runtime,
    rules: RULES,
    depots,
    hosts,
    objects,
    actAs: (tenant) => Promise.resolve(testPrincipal("administrator", tenant)),
  });
  const jobs = new JobService({ targets: NAMED_HOSTS, stores, runtime, objects, hosts });
  const runs = new JobRuns({
    targets: NAMED_HOSTS,
    runsInFlightMax: MONITORING_RUNS_MAX,
    secrets: TEST_SECRETS,
    stores,
    runtime,
    jobs,
    hosts,
    stored,
    objects,
    notifications,
    controllers,
  });
  return { depots, deployments, waiting, policies, jobs, runs };
}

/** Rules that exist, unless their key contains `missing`. */
const RULES = {
  load: (_principal: unknown, key: string) =>
    key.includes("missing")
      ? Promise.reject(new AppError("not_found", `There is no rule ${key}.`))
      : Promise.resolve({} as Rule),
};

/** A multipart body as a browser sends it. A value with a name is a file. */
export async function multipart(
  fields: readonly (readonly [
    string,
    string | { readonly name: string; readonly content: string | Uint8Array<ArrayBuffer> },
  ])[],
) {
  const form = new FormData();
  for (const [name, value] of fields) {
    if (typeof value === "string") form.append(name, value);
    else form.append(name, new Blob([value.content]), value.name);
  }
  const request = new Response(form);
  return {
    headers: { "content-type": request.headers.get("content-type") ?? "" },
    payload: Buffer.from(await request.arrayBuffer()),
  };
}
