import { mapLimited, withinTime } from "../../../common/concurrency.ts";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import {
  DISPATCH_GRACE_MS, JOB_DEFAULT_S, JOB_FINISH_ATTEMPTS, JOB_FINISH_PAUSE_MS, JOB_LOST_AFTER_MS, JOB_MAX_S, JOB_PARALLEL_HOSTS,
  JOB_RUN_TTL_DAYS, JOB_RUNS_IN_FLIGHT_MAX, SHUTDOWN_DEADLINE_MS,
} from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { CommandOutcome, FinalState, Hosts } from "../hosts/index.ts";
import type { Notifications } from "../notifications/index.ts";
import type { Edit, Objects } from "../objects/index.ts";
import { requirePermission, systemPrincipal, type Principal } from "../permissions/index.ts";
import { JOB_RUN_PATH } from "./classes.ts";
import { formatJobName } from "./names.ts";
import { RunOutput } from "./output.ts";
import { parseParameters, type Parameters } from "./parameters.ts";
import { REMOTE_COMMAND, type JobService } from "./service.ts";
import { JobStore, type OpenRun, type StoredJob } from "./store.ts";
import type { Execution, ExecutionRequest, HostRun } from "./types.ts";

export interface RunDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly jobs: Pick<JobService, "find">;
  readonly hosts: Pick<Hosts, "dispatch">;
  readonly objects: Pick<Objects, "insert" | "update" | "get">;
  readonly notifications: Pick<Notifications, "publish">;
}

/** One execution: what is the same for all its hosts. */
interface Run {
  readonly principal: Principal;
  /** Rows belong to the platform: who may run a job need not be able to write objects. */
  readonly platform: Principal;
  readonly id: string;
  readonly sid: string;
  readonly job: StoredJob;
  readonly commands: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly hosts: readonly string[];
  /** By the wall clock and by the monotonic one. */
  readonly deadlineMs: number;
  readonly deadlineMonotonicMs: number;
}

const MS_PER_DAY = 86_400_000;

/** Executes jobs. Every host of an execution ends in exactly one final state by its deadline. */
export class JobRuns {
  readonly #store: JobStore;
  readonly #runtime: Runtime;
  readonly #jobs: RunDependencies["jobs"];
  readonly #hosts: RunDependencies["hosts"];
  readonly #objects: RunDependencies["objects"];
  readonly #notifications: RunDependencies["notifications"];
  readonly #closing = new AbortController();
  readonly #executions = new Set<Promise<unknown>>();
  readonly #running = new Set<string>();
  #inFlight = 0;

  constructor(dependencies: RunDependencies) {
    this.#store = new JobStore(dependencies.stores);
    this.#runtime = dependencies.runtime;
    this.#jobs = dependencies.jobs;
    this.#hosts = dependencies.hosts;
    this.#objects = dependencies.objects;
    this.#notifications = dependencies.notifications;
  }

  /** Resolves when the execution is on record and on its way; it goes on whether or not anybody waits for it. */
  async execute(principal: Principal, fullName: string, request: ExecutionRequest): Promise<Execution> {
    requirePermission(principal, "jobs:run");
    if (this.#closing.signal.aborted) throw new AppError("unavailable", "The controller is shutting down.");
    const job = await this.#jobs.find(principal.tenant, fullName);
    const run = this.#plan(principal, job, { request, parameters: parseParameters(request.param) });
    if (this.#inFlight + run.hosts.length > JOB_RUNS_IN_FLIGHT_MAX) {
      throw new AppError("limited", `At most ${JOB_RUNS_IN_FLIGHT_MAX} job runs can be under way at once; try again later.`);
    }
    this.#inFlight += run.hosts.length;
    try {
      const first = job.groupmode === "one" ? run.hosts.slice(0, 1) : run.hosts;
      const open = await mapLimited(first, JOB_PARALLEL_HOSTS, (host) => this.#open(run, host));
      return { runId: run.id, finished: this.#track(run, this.#runAll(run, open)) };
    } catch (error) {
      this.#inFlight -= run.hosts.length;
      // Rows that were opened before it failed are nobody's now: maintenance ends them.
      for (const host of run.hosts) this.#running.delete(keyOf({ runId: run.id, host }));
      throw error;
    }
  }

  /** First `maxBytes` of what the run wrote on that host from `offset` on, and how much there is. */
  async output(principal: Principal, run: { readonly runId: string; readonly host: string }, part: { offset: number; maxBytes: number }) {
    requirePermission(principal, "jobs:read");
    return this.#store.readOutput(principal.tenant, run, part);
  }

  /**
   * Ends runs whose controller died, once their deadline is well past, and removes outputs that are too old. Called at the start
   * and from time to time; safe on several controllers.
   */
  async maintain(tenant: string): Promise<void> {
    const nowMs = this.#runtime.clock.nowMs();
    for (const open of await this.#store.openRuns(tenant)) {
      if (this.#running.has(keyOf(open)) || open.deadlineMs + JOB_LOST_AFTER_MS > nowMs) continue;
      await this.#expire(tenant, open);
    }
    await this.#store.sweepOutputs(tenant, nowMs);
  }

  /** Cancels what is under way and waits until it is on record. */
  async close(): Promise<void> {
    this.#closing.abort();
    await withinTime(this.#runtime.clock, Promise.allSettled(this.#executions), SHUTDOWN_DEADLINE_MS);
  }

  #plan(principal: Principal, job: StoredJob, { request, parameters }: { request: ExecutionRequest; parameters: Parameters }): Run {
    const { clock, random } = this.#runtime;
    refuseUnrunnable(job);
    const hosts = parameters.hosts ?? job.host;
    if (hosts.length === 0) throw new AppError("invalid", `The job ${formatJobName(job)} has no host, and param gives none as HOST!.`);
    const timeoutMs = 1_000 * timeoutSeconds([request.timeoutSeconds, parameters.timeoutSeconds, job.timeout]);
    const id = ulidOf(clock.nowMs(), random.bytes(10));
    return {
      principal, id, job, hosts,
      platform: systemPrincipal(principal.tenant, principal.ospace, principal.traceparent),
      sid: contextId(clock.nowMs(), random.bytes(6)),
      commands: commandsOf(job, parameters),
      environment: { ...parameters.environment, ODP_RUN_ID: id },
      deadlineMs: clock.nowMs() + timeoutMs,
      deadlineMonotonicMs: clock.monotonicMs() + timeoutMs,
    };
  }

  #track(run: Run, work: Promise<readonly HostRun[]>): Promise<readonly HostRun[]> {
    const tracked = work.finally(() => {
      this.#inFlight -= run.hosts.length;
      this.#executions.delete(tracked);
    });
    this.#executions.add(tracked);
    tracked.catch((error: unknown) => this.#runtime.log.error({ err: error, run: run.id }, "a job execution broke off"));
    return tracked;
  }

  #runAll(run: Run, open: readonly OpenRun[]): Promise<readonly HostRun[]> {
    if (run.job.groupmode === "one") return this.#runFirstReachable(run, open);
    const lanes = run.job.groupmode === "sequence" ? 1 : JOB_PARALLEL_HOSTS;
    return mapLimited(open, lanes, (each) => this.#runHost(run, each));
  }

  /** One host after the other, until one could be reached. */
  async #runFirstReachable(run: Run, open: readonly OpenRun[]): Promise<readonly HostRun[]> {
    const runs: HostRun[] = [];
    for (const [index, host] of run.hosts.entries()) {
      const one = await this.#runHost(run, open[index] ?? (await this.#open(run, host)));
      runs.push(one);
      if (one.state !== "unreachable") break;
    }
    return runs;
  }

  async #open(run: Run, host: string): Promise<OpenRun> {
    const { clock } = this.#runtime;
    const [objectId] = await this.#objects.insert(run.platform, pathOf(run), [{
      runid: run.id, host, sid: run.sid, name: formatJobName(run.job), dir: run.job.dir, source: run.principal.user, type: "job",
      status: "running", cmds: [...run.commands], stime: clock.nowMs(), deadline: run.deadlineMs,
    }]);
    const open: OpenRun = { runId: run.id, host, ospace: run.principal.ospace, objectId: objectId ?? "", deadlineMs: run.deadlineMs };
    await this.#store.open(run.principal.tenant, open, clock.nowMs() + (JOB_RUN_TTL_DAYS + 1) * MS_PER_DAY);
    this.#running.add(keyOf(open));
    return open;
  }

  async #runHost(run: Run, open: OpenRun): Promise<HostRun> {
    this.#publish(run, open.host, { status: "running" });
    const output = new RunOutput((offset, bytes) => this.#store.appendOutput(run.principal.tenant, open, { offset, bytes }));
    const outcome = await this.#commands(run, open, output);
    const message = await this.#finish(run, open, { outcome, output });
    this.#running.delete(keyOf(open));
    this.#publish(run, open.host, { status: outcome.state, code: outcome.code, message });
    return { host: open.host, state: outcome.state, message, output: output.text, ...(outcome.code === undefined ? {} : { code: outcome.code }) };
  }

  /** The job's command lines in their order; the first that does not end well is the last. */
  async #commands(run: Run, { host }: OpenRun, output: RunOutput): Promise<CommandOutcome> {
    let last: CommandOutcome | undefined;
    for (const [index, line] of run.commands.entries()) {
      last = await this.#dispatch(run, { host, line, output, commandId: `job/${run.id}/${host}/${index}` });
      if (last.state !== "ok") break;
    }
    if (last === undefined) throw new AppError("internal", "A job without commands was started.");
    return last;
  }

  async #dispatch(
    run: Run, { host, line, output, commandId }: { host: string; line: string; output: RunOutput; commandId: string },
  ): Promise<CommandOutcome> {
    const { clock } = this.#runtime;
    const startedMs = clock.nowMs();
    const ended = (state: FinalState, message: string): CommandOutcome => ({ host, state, message, startedMs, endedMs: clock.nowMs() });
    const timeoutMs = run.deadlineMonotonicMs - clock.monotonicMs();
    if (this.#closing.signal.aborted) return ended("cancelled", "The controller is shutting down.");
    if (timeoutMs <= 0) return ended("timeout", "Its turn did not come before the deadline.");
    try {
      const work = this.#hosts.dispatch(run.principal, host, { kind: "exec", line, environment: run.environment }, {
        timeoutMs, commandId, signal: this.#closing.signal, onOutput: (piece) => output.take(piece),
      });
      return (await withinTime(clock, work, timeoutMs + DISPATCH_GRACE_MS)) ?? ended("timeout", "The host did not answer in time.");
    } catch (error) {
      if (isAppError(error, "not_found")) return ended("unreachable", `There is no host ${host}.`);
      this.#runtime.log.warn({ err: error, host, commandId }, "a job could not be sent");
      return ended("failed", errorText(error));
    }
  }

  /** Puts the final state on record. A store that is away for a moment is waited for; the open entry outlives this controller. */
  async #finish(run: Run, open: OpenRun, { outcome, output }: { outcome: CommandOutcome; output: RunOutput }): Promise<string> {
    const lost = await output.finish();
    const message = lost === undefined ? outcome.message : `${outcome.message} (its output could not be stored: ${errorText(lost)})`.trim();
    const values = {
      status: outcome.state, code: outcome.code ?? null, message, out: output.out, err: output.err, outputsize: output.bytes,
      etime: outcome.endedMs,
    };
    const edits = Object.entries(values).map(([column, value]): Edit => ({ column, operation: "set", value: value ?? undefined }));
    try {
      await this.#persist(async () => {
        await this.#objects.update(run.platform, { id: open.objectId, class: pathOf(run) }, edits);
        await this.#store.close(run.principal.tenant, open);
      });
    } catch (error) {
      this.#runtime.log.error({ err: error, run: run.id, host: open.host, state: outcome.state }, "the end of a job run could not be recorded");
    }
    return message;
  }

  async #persist(write: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await write();
      } catch (error) {
        if (!isAppError(error, "unavailable", "unknown_outcome") || attempt === JOB_FINISH_ATTEMPTS) throw error;
        await wait(this.#runtime.clock, JOB_FINISH_PAUSE_MS * 2 ** attempt, this.#closing.signal);
      }
    }
  }

  async #expire(tenant: string, open: OpenRun): Promise<void> {
    const platform = systemPrincipal(tenant, open.ospace, "");
    const ref = { id: open.objectId, class: `${open.ospace}${JOB_RUN_PATH}` };
    const [row] = await this.#objects.get(platform, [ref]);
    if (row?.values["status"] === "running") {
      await this.#objects.update(platform, ref, [
        { column: "status", operation: "set", value: "expired" },
        { column: "message", operation: "set", value: "The controller that ran it went away before it ended." },
        { column: "etime", operation: "set", value: this.#runtime.clock.nowMs() },
      ]);
    }
    await this.#store.close(tenant, open);
  }

  #publish(run: Run, host: string, state: { readonly status: string; readonly code?: number | undefined; readonly message?: string }): void {
    const name = formatJobName(run.job);
    this.#notifications.publish(run.principal.tenant, {
      keyspace: run.principal.ospace, source: host, subject: "jobrun", title: name, reply: "",
      msg: JSON.stringify({ runid: run.id, sid: run.sid, host, name, ...state }),
    });
  }
}

function refuseUnrunnable(job: StoredJob): void {
  const name = formatJobName(job);
  if (job.enable === 0) throw new AppError("conflict", `The job ${name} is disabled.`);
  if (job.begin !== "" || job.end !== "") throw new AppError("unsupported", `The job ${name} has begin or end scripts, which are not offered yet.`);
  if (job.group !== "" && job.host.length === 0) throw new AppError("unsupported", `The job ${name} runs on a job group, which is not offered yet.`);
}

function commandsOf(job: StoredJob, { cmd }: Parameters): readonly string[] {
  if (job !== REMOTE_COMMAND) return job.exec;
  if (cmd === undefined || cmd.trim() === "") throw new AppError("invalid", `${formatJobName(job)} needs a command line as cmd in param.`);
  return [cmd];
}

/** The first that is more than nothing. */
function timeoutSeconds(candidates: readonly (number | undefined)[]): number {
  const chosen = candidates.find((seconds) => seconds !== undefined && seconds > 0) ?? JOB_DEFAULT_S;
  return Math.min(chosen, JOB_MAX_S);
}

/** `M<yyyymmddhhmm>:<digits>`, as clients know context ids. */
function contextId(nowMs: number, entropy: Uint8Array): string {
  const digits = [...entropy].map((byte) => byte.toString().padStart(3, "0")).join("");
  return `M${new Date(nowMs).toISOString().replace(/\D/g, "").slice(0, 12)}:${digits}`;
}

function pathOf(run: Run): string {
  return `${run.principal.ospace}${JOB_RUN_PATH}`;
}

function keyOf({ runId, host }: Pick<OpenRun, "runId" | "host">): string {
  return `${runId}/${host}`;
}
