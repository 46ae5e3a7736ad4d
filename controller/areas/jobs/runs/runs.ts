import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../../common/errors.ts";
import { JOB_PARALLEL_HOSTS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { SecretBox } from "../../../secrets/index.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Controllers } from "../../../store/journal/index.ts";
import type { KvTxn } from "../../../store/kv.ts";
import type { AppendNotifier } from "../../../store/tail.ts";
import type { Hosts, HostTargets, StoredCommands } from "../../hosts/index.ts";
import type { Notifications } from "../../notifications/index.ts";
import type { Objects, Unrestricted } from "../../objects/index.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import { RunCancels } from "./cancels.ts";
import { RunExecutor } from "./executor.ts";
import { inOrderOf } from "./choosing.ts";
import { RunCommands, runOf } from "./commands.ts";
import { RunEndings } from "./endings.ts";
import { ExecutionEnds } from "./execution-ends.ts";
import { executionJournal, hasOpen, type ExecutionJournal } from "./executions.ts";
import { formatJobName } from "../definitions/names.ts";
import { openRunsOf, runJournal, type RunJournal } from "./open-runs.ts";
import { JobOutputs } from "../output/outputs.ts";
import { JobPlaces } from "../queues/places.ts";
import { plannedRun, type Run } from "./plan.ts";
import type { ProxiedHosts } from "../groups/proxied.ts";
import type { RunRetention } from "../history/retention.ts";
import { RunRights } from "../rights/rights.ts";
import { ExecutionScripts, type ServerScripts } from "./scripts.ts";
import type { RunAccess } from "../rights/run-access.ts";
import type { JobService } from "../service.ts";
import type { StoredJob } from "../store.ts";
import { RunTakeover } from "./takeover.ts";
import { JobTargets, type TargetOverride, type Targets } from "./targets.ts";
import type { Authors, Begun, Execution, ExecutionRequest, NamedRequest } from "../types.ts";
import { ExecutionCoordinator } from "./coordinator.ts";
import { ExecutionStarter } from "./starter.ts";

export interface RunDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly jobs: Pick<JobService, "visible" | "requireVisible">;
  readonly secrets: Pick<SecretBox, "seal" | "open">;
  readonly hosts: Pick<Hosts, "dispatch">;
  readonly targets: Pick<HostTargets, "hosts">;
  /** Reaches hosts of groups of type `proxy`; absent: there are no such groups. */
  readonly proxied?: ProxiedHosts;
  readonly stored: Pick<StoredCommands, "outcome">;
  readonly objects: Pick<Objects, "catalog" | "visible"> & Unrestricted<"insert" | "get">;
  readonly notifications: Pick<Notifications, "publish">;
  readonly controllers: Controllers;
  /** Runs serverJS; absent: this controller runs no scripts. */
  readonly scripts?: ServerScripts;
  readonly authors?: Authors;
  /** Gives commands access to the context of their run; absent: they have none. */
  readonly access?: RunAccess;
  /** Removes runs beyond a job's `keep`; absent: all runs are kept until they expire. */
  readonly retention?: Pick<RunRetention, "ran">;
  /** Maximum number of hosts of all executions at the same time; `JOB_RUNS_IN_FLIGHT_MAX` when absent. */
  readonly runsInFlightMax?: number;
}

/**
 * Executes jobs. Each host of an execution ends in exactly one final state, which is decided once for all controllers.
 * If a controller stops, another one takes over its runs. It sends the commands again with the same ids, so no command
 * runs twice.
 */
export class JobRuns {
  readonly #with: RunDependencies;
  readonly #journal: RunJournal;
  readonly #outputs: JobOutputs;
  readonly #targets: JobTargets;
  readonly #rights: RunRights;
  readonly #executor: RunExecutor;
  readonly #takeover: RunTakeover;
  readonly #executions: ExecutionJournal;
  readonly #coordinator: ExecutionCoordinator;
  readonly #starter: ExecutionStarter;
  readonly #cancels: RunCancels;
  readonly endings: RunEndings;

  constructor(dependencies: RunDependencies) {
    this.#with = dependencies;
    const journal = (this.#journal = runJournal(dependencies));
    const outputs = (this.#outputs = new JobOutputs(dependencies.stores));
    this.#targets = new JobTargets(dependencies);
    const places = new JobPlaces(dependencies);
    const rights = (this.#rights = new RunRights(dependencies));
    const endings = (this.endings = new RunEndings({ ...dependencies, journal }));
    const cancels = (this.#cancels = new RunCancels(dependencies));
    const commands = new RunCommands(dependencies, journal.inFlight.stopping);
    const executor = (this.#executor = new RunExecutor({
      ...dependencies,
      journal,
      outputs,
      commands,
      endings,
      cancels,
    }));
    this.#takeover = new RunTakeover({ ...dependencies, journal, executor, commands, endings, rights });
    const executions = (this.#executions = executionJournal(dependencies));
    const ends = new ExecutionEnds({ ...dependencies, executions, endings, outputs });
    const scripts = new ExecutionScripts({ ...dependencies, executions, executor, endings });
    const coordinator = (this.#coordinator = new ExecutionCoordinator({
      ...dependencies,
      executions,
      journal,
      executor,
      endings,
      places,
      scripts,
      ends,
      cancels,
    }));
    this.#starter = new ExecutionStarter({ ...dependencies, executor, coordinator, places, rights, cancels });
  }

  /** Announces stored output and ended runs, by `keyOf` of the run. */
  get appends(): AppendNotifier {
    return this.#executor.appends;
  }

  /** True if a run sent this command to the host. Known as long as the output of the run is kept. */
  async gave(tenant: string, host: string, commandId: string): Promise<boolean> {
    const run = runOf(commandId);
    return run?.host === host && this.#outputs.knows(tenant, run);
  }

  /**
   * Executes a job. Resolves when the execution is stored and begun. The execution continues even if the caller does
   * not wait for its end.
   */
  async execute(principal: Principal, fullName: string, request: ExecutionRequest): Promise<Execution> {
    requirePermission(principal, "jobs:run");
    const run = await this.#planned(principal, fullName, request);
    this.#starter.enter([run]);
    return this.#starter.begin(run);
  }

  /**
   * Executes several jobs in parallel, and answers in the order of `requests`. If a job does not exist, a request is
   * invalid, or the hosts of all jobs are too many, none is begun. Later failures affect only their own job.
   */
  async executeAll(principal: Principal, requests: readonly NamedRequest[]): Promise<readonly Begun[]> {
    requirePermission(principal, "jobs:run");
    const runs = await mapLimited(requests, JOB_PARALLEL_HOSTS, ({ name, ...request }, at) =>
      this.#planned(principal, name, request).catch((error: unknown) => {
        throw isAppError(error) ? ofBatch(error, name, at) : error;
      }),
    );
    this.#starter.enter(runs);
    return Promise.all(
      runs.map((run) =>
        this.#starter.begin(run).then(
          (execution) => ({ execution }),
          (error: unknown) => {
            this.#with.runtime.log.warn({ err: error, run: run.id }, "a job of a batch could not be begun");
            return { error };
          },
        ),
      ),
    );
  }

  /**
   * Begins the run of a schedule, in one transaction with its ticket. False: a condition of the ticket does not hold,
   * and nothing was begun. `job` must be read together with the ticket's conditions. If this controller stops, another
   * one continues with all remaining hosts.
   */
  async fire(principal: Principal, job: StoredJob, { dueMs, ticket, waits }: Firing): Promise<boolean> {
    requirePermission(principal, "jobs:run");
    await this.#with.jobs.requireVisible(principal, job);
    const run = await this.#plannedOf(principal, job, { dueMs });
    return this.#starter.fire(run, { ticket: ticket(run.id), waits });
  }

  /** True if an execution has not completely ended. */
  goesOn(tenant: string, runId: string): Promise<boolean> {
    return hasOpen(this.#with.stores, tenant, runId);
  }

  /**
   * State of an unfinished run; undefined if there is none. Checks no rights: the caller must check if the user may see
   * the run.
   */
  async openState(tenant: string, runId: string, host?: string): Promise<OpenState | undefined> {
    const [execution, open] = await Promise.all([
      this.#executions.find(tenant, runId),
      openRunsOf(this.#with.stores, tenant, runId),
    ]);
    const order = execution?.open.order ?? open[0]?.order;
    if (!order) return undefined;
    const begun = open.map(({ host }) => host);
    const waiting = execution ? execution.open.order.hosts.slice(execution.open.opened) : [];
    const { name, principal } = order;
    const hosts = [...begun, ...waiting];
    const goesOn = open.filter(({ end }) => end === undefined).map((one) => one.host);
    const isOver = host !== undefined && !hosts.includes(host) && (await this.#outputs.knows(tenant, { runId, host }));
    const known = { hosts: isOver ? [...hosts, host] : hosts, begun, open: [...goesOn, ...waiting] };
    return { user: principal.user, job: name, ...known };
  }

  /** Stores the request to cancel a run, or only its part on `host`. */
  askToEnd(tenant: string, runId: string, wish: { readonly by: string; readonly host?: string }): Promise<void> {
    return this.#cancels.request(tenant, { runId, ...wish });
  }

  async #planned(principal: Principal, fullName: string, request: ExecutionRequest): Promise<Run> {
    return this.#plannedOf(principal, await this.#with.jobs.visible(principal, fullName), request);
  }

  async #plannedOf(
    principal: Principal,
    job: StoredJob,
    request: ExecutionRequest & { readonly dueMs?: number },
  ): Promise<Run> {
    if (this.#journal.inFlight.stopping.aborted) throw new AppError("unavailable", "The controller is shutting down.");
    const targets = (of: StoredJob, asked: TargetOverride): Promise<Targets> => this.#targets.of(principal, of, asked);
    const { runtime, secrets, stores } = this.#with;
    const ordered = async (of: StoredJob, hosts: readonly string[]): Promise<readonly string[]> => {
      const { kv } = await stores.tenant(principal.tenant);
      return inOrderOf(hosts, { kv, random: runtime.random, job: formatJobName(of), algorithm: of.algorithm });
    };
    this.#with.retention?.ran(principal, job);
    return plannedRun(principal, job, { request, runtime, secrets, targets, ordered, dueMs: request.dueMs });
  }

  /**
   * Takes over runs whose controller is gone, ends runs that are well past their deadline, records decided ends, and
   * removes old outputs. Call it at the start, periodically, and when a controller has stopped. Several controllers may
   * call it at once.
   */
  async maintain(tenant: string): Promise<void> {
    await this.#takeover.attend(tenant);
    await this.#coordinator.attend(tenant);
    await this.#cancels.sweep(tenant);
    await this.#rights.sweep(tenant);
    await this.#outputs.sweep(tenant, this.#with.runtime.clock.nowMs());
  }

  /**
   * Stops without ending the runs: their commands continue, and another controller takes the runs over. Ends that are
   * already known are recorded. Call it while the agents are still connected. Otherwise the lost connections would
   * count as ends.
   */
  async close(): Promise<void> {
    await Promise.all([this.#journal.inFlight.close(), this.#executions.inFlight.close()]);
    await this.#cancels.close();
  }
}

/** State of a run that has not completely ended. */
export interface OpenState {
  /** The user who requested the run. */
  readonly user: string;
  /** `<name>@<dir>` */
  readonly job: string;
  /**
   * Hosts where the run is unfinished, those that it has not reached, and `host` of the question if the run ended
   * there.
   */
  readonly hosts: readonly string[];
  /** Hosts where the run has begun and its end is not completely recorded. They have rows. */
  readonly begun: readonly string[];
  /** Hosts where the run has no end yet, and hosts that it has not reached. */
  readonly open: readonly string[];
}

/** The run that a schedule begins. */
export interface Firing {
  readonly dueMs: number;
  /** The transaction to write together with the run. */
  readonly ticket: (runId: string) => KvTxn;
  /** True if the run must wait for the previous run of the schedule. */
  readonly waits: boolean;
}

function ofBatch(error: AppError, name: string, at: number): AppError {
  return new AppError(error.code, `Nothing was executed: jobs[${at}], ${name}: ${error.message}`, {
    cause: error,
    details: error.details,
  });
}
