import { setMaxListeners } from "node:events";
import { mapLimited, withinTime } from "../../../common/concurrency.ts";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import {
  DISPATCH_GRACE_MS,
  JOB_DEFAULT_S,
  JOB_FINISH_ATTEMPTS,
  JOB_FINISH_PAUSE_MS,
  JOB_HOST_RETURN_MS,
  JOB_HOST_RETURN_PAUSE_MS,
  JOB_LOST_AFTER_MS,
  JOB_MAX_S,
  JOB_PARALLEL_HOSTS,
  JOB_RUNS_IN_FLIGHT_MAX,
  SHUTDOWN_DEADLINE_MS,
} from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { Appends } from "../../store/tail.ts";
import type { CommandOutcome, FinalState, Hosts, StoredCommands } from "../hosts/index.ts";
import type { Notifications } from "../notifications/index.ts";
import type { Objects } from "../objects/index.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { pathOf, RunEndings, startRow, type StandingEnd } from "./endings.ts";
import { contextId, formatJobName } from "./names.ts";
import { RunOutput } from "./output.ts";
import { parseParameters, type Parameters } from "./parameters.ts";
import { REMOTE_COMMAND, type JobService } from "./service.ts";
import {
  JobStore,
  keyOf,
  type OpenRun,
  type RunEnd,
  type RunName,
  type RunOrder,
  type StoredJob,
  type VersionedRun,
} from "./store.ts";
import type { Execution, ExecutionRequest, HostRun } from "./types.ts";

export interface RunDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly jobs: Pick<JobService, "visible">;
  readonly hosts: Pick<Hosts, "dispatch">;
  readonly stored: Pick<StoredCommands, "outcome">;
  readonly objects: Pick<Objects, "insert" | "get">;
  readonly notifications: Pick<Notifications, "publish">;
  readonly controllers: Controllers;
}

/** The controllers of the installation, as far as runs need to know them. */
export interface Controllers {
  /** Of this one, new with every start. */
  readonly own: string;
  /** Whether the controller is there; false only when it is gone or cut off. */
  has(id: string): boolean;
}

/** One execution: what is the same for all its hosts. */
interface Run {
  /** Who waits for it here; absent when nobody does, as of a run that was taken over. */
  readonly watcher?: Pick<ExecutionRequest, "onOutput" | "signal">;
  readonly id: string;
  readonly order: RunOrder;
  /** By the wall clock and by the monotonic one. */
  readonly startedMs: number;
  readonly deadlineMs: number;
  readonly deadlineMonotonicMs: number;
}

interface HostEnd {
  readonly told: HostRun;
  /** Whether this controller decided it. */
  readonly mine: boolean;
}

/** Thrown where a run is left as it is, open, because this controller ends. */
class LetGo extends AppError {
  constructor(runId: string) {
    super(
      "deadline",
      `The job run ${runId} goes on and its end will be on record, but the controller that was asked is shutting down.`,
    );
  }
}

/**
 * Executes jobs. Every host of an execution ends in exactly one final state, decided once for all controllers. A run
 * whose controller is gone is taken over: its commands are sent again under their ids, which runs none of them twice.
 */
export class JobRuns {
  readonly #store: JobStore;
  readonly #endings: RunEndings;
  readonly #runtime: Runtime;
  readonly #jobs: RunDependencies["jobs"];
  readonly #hosts: RunDependencies["hosts"];
  readonly #stored: RunDependencies["stored"];
  readonly #notifications: RunDependencies["notifications"];
  readonly #controllers: Controllers;
  /** Told of output that is stored, and of runs that are over, by `keyOf` of the run. */
  readonly appends = new Appends();
  readonly #closing = new AbortController();
  readonly #executions = new Set<Promise<unknown>>();
  /** What is worked on here and now. */
  readonly #running = new Set<string>();
  #inFlight = 0;

  constructor(dependencies: RunDependencies) {
    setMaxListeners(JOB_RUNS_IN_FLIGHT_MAX, this.#closing.signal);
    this.#store = new JobStore(dependencies.stores);
    this.#endings = new RunEndings({ ...dependencies, store: this.#store });
    this.#runtime = dependencies.runtime;
    this.#jobs = dependencies.jobs;
    this.#hosts = dependencies.hosts;
    this.#stored = dependencies.stored;
    this.#notifications = dependencies.notifications;
    this.#controllers = dependencies.controllers;
  }

  /** Whether a run gave this command to the host, however long ago that is as far as its output is kept. */
  async gave(tenant: string, host: string, commandId: string): Promise<boolean> {
    const run = runOf(commandId);
    return run?.host === host && this.#store.knows(tenant, run);
  }

  /** Resolves when the execution is on record and on its way; it goes on whether or not anybody waits for it. */
  async execute(principal: Principal, fullName: string, request: ExecutionRequest): Promise<Execution> {
    requirePermission(principal, "jobs:run");
    if (this.#closing.signal.aborted) throw new AppError("unavailable", "The controller is shutting down.");
    const job = await this.#jobs.visible(principal, fullName);
    const run = this.#plan(principal, job, { request, parameters: parseParameters(request.param) });
    const { hosts, groupmode } = run.order;
    if (this.#inFlight + hosts.length > JOB_RUNS_IN_FLIGHT_MAX) {
      throw new AppError(
        "limited",
        `At most ${JOB_RUNS_IN_FLIGHT_MAX} job runs can be under way at once; try again later.`,
      );
    }
    this.#inFlight += hosts.length;
    try {
      const first = groupmode === "one" ? hosts.slice(0, 1) : hosts;
      const open = await mapLimited(first, JOB_PARALLEL_HOSTS, (host) => this.#open(run, host));
      return { runId: run.id, finished: this.#track(run, this.#runAll(run, open), hosts.length) };
    } catch (error) {
      this.#inFlight -= hosts.length;
      // What was opened before it failed, or is being opened still, is nobody's now: maintenance ends it.
      throw error;
    }
  }

  /**
   * Takes over runs whose controller is gone, ends those that nobody ended well past their deadline, puts decided ends
   * on record, and removes outputs that are too old. Called at the start, from time to time and when a controller went;
   * safe on several controllers.
   */
  async maintain(tenant: string): Promise<void> {
    const executions = new Map<string, VersionedRun[]>();
    for (const run of await this.#store.openRuns(tenant)) {
      if (this.#running.has(keyOf(run.open))) continue;
      executions.set(run.open.runId, [...(executions.get(run.open.runId) ?? []), run]);
    }
    for (const [runId, runs] of executions) {
      await this.#attend(runs).catch((error: unknown) =>
        this.#runtime.log.error({ err: error, run: runId }, "a job run could not be attended to"),
      );
    }
    await this.#store.sweepOutputs(tenant, this.#runtime.clock.nowMs());
  }

  /**
   * Lets go of what is under way: commands go on, and whichever controller is there next takes the runs over as after a
   * crash. Ends that are known are put on record. To be called while the agents are still connected, so that a lost
   * connection is not taken for an end.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    await withinTime(this.#runtime.clock, Promise.allSettled(this.#executions), SHUTDOWN_DEADLINE_MS);
  }

  /** Runs of one execution that nobody here works on. */
  async #attend(runs: readonly VersionedRun[]): Promise<void> {
    const nowMs = this.#runtime.clock.nowMs();
    const orphans: VersionedRun[] = [];
    for (const run of runs) {
      const { end, deadlineMs, owner } = run.open;
      if (end) await this.#endings.settle(run.open);
      else if (deadlineMs + JOB_LOST_AFTER_MS <= nowMs) await this.#endLate(run);
      else if (deadlineMs > nowMs && owner !== this.#controllers.own && !this.#controllers.has(owner))
        orphans.push(run);
    }
    if (orphans.length > 0) await this.#takeOver(orphans);
  }

  async #takeOver(orphans: readonly VersionedRun[]): Promise<void> {
    if (this.#closing.signal.aborted || this.#inFlight + orphans.length > JOB_RUNS_IN_FLIGHT_MAX) return;
    const taken: VersionedRun[] = [];
    for (const orphan of orphans) {
      const mine = await this.#take(orphan);
      if (mine) taken.push(mine);
    }
    const [first] = taken;
    if (!first) return;
    this.#inFlight += taken.length;
    const run = this.#resumed(first.open);
    void this.#track(run, this.#runAll(run, inOrder(run, taken)), taken.length);
  }

  #take(run: VersionedRun): Promise<VersionedRun | undefined> {
    return this.#store.take(run.open.order.principal.tenant, run, this.#controllers.own);
  }

  /** What the agent said decides, if it said something; the controller that ran it does not matter. */
  async #endLate(run: VersionedRun): Promise<void> {
    const mine = await this.#take(run);
    if (!mine) return;
    const output = this.#output(mine.open);
    const result = await this.#storedEnd(mine.open, output);
    const endedMs = this.#runtime.clock.nowMs();
    const message = "The controller that ran it went away before it ended.";
    await output.finish();
    await this.#endings.end(mine, this.#endOf(output, result ?? { state: "expired", message, endedMs }));
  }

  async #storedEnd(open: OpenRun, output: RunOutput): Promise<CommandOutcome | undefined> {
    const { tenant, traceparent } = open.order.principal;
    let last: CommandOutcome | undefined;
    for (const [index] of open.order.commands.entries()) {
      last = await this.#stored.outcome({ tenant, host: open.host, traceparent }, commandIdOf(open, index), (piece) =>
        output.take(piece),
      );
      if (last?.state !== "ok") break;
    }
    return last;
  }

  #plan(
    principal: Principal,
    job: StoredJob,
    { request, parameters }: { request: ExecutionRequest; parameters: Parameters },
  ): Run {
    const { clock, random } = this.#runtime;
    refuseUnrunnable(job);
    const hosts = [...new Set(parameters.hosts ?? job.host)];
    if (hosts.length === 0)
      throw new AppError("invalid", `The job ${formatJobName(job)} has no host, and param gives none as HOST!.`);
    const timeoutMs = 1_000 * timeoutSeconds([request.timeoutSeconds, parameters.timeoutSeconds, job.timeout]);
    const startedMs = clock.nowMs();
    const id = ulidOf(startedMs, random.bytes(10));
    return {
      id,
      watcher: request,
      order: {
        principal,
        hosts,
        name: formatJobName(job),
        dir: job.dir,
        groupmode: job.groupmode,
        sid: contextId(startedMs, random.bytes(6)),
        commands: commandsOf(job, parameters),
        environment: { ...parameters.environment, ODP_RUN_ID: id },
      },
      startedMs,
      deadlineMs: startedMs + timeoutMs,
      deadlineMonotonicMs: clock.monotonicMs() + timeoutMs,
    };
  }

  /** As it was begun elsewhere; what is left of its time is what this wall clock says. */
  #resumed({ runId, order, startedMs, deadlineMs }: OpenRun): Run {
    const { clock } = this.#runtime;
    return {
      id: runId,
      order,
      startedMs,
      deadlineMs,
      deadlineMonotonicMs: clock.monotonicMs() + deadlineMs - clock.nowMs(),
    };
  }

  #track(run: Run, work: Promise<readonly HostRun[]>, count: number): Promise<readonly HostRun[]> {
    const tracked = work.finally(() => {
      this.#inFlight -= count;
      this.#executions.delete(tracked);
    });
    this.#executions.add(tracked);
    tracked.catch((error: unknown) => this.#toldBreak(run, error));
    return tracked;
  }

  #toldBreak(run: Run, error: unknown): void {
    if (error instanceof LetGo)
      this.#runtime.log.info({ run: run.id }, "a job execution was let go of, to be taken over");
    else this.#runtime.log.error({ err: error, run: run.id }, "a job execution broke off");
  }

  async #runAll(run: Run, held: readonly VersionedRun[]): Promise<readonly HostRun[]> {
    if (run.order.groupmode === "one") return this.#runFirstReachable(run, held);
    const lanes = run.order.groupmode === "sequence" ? 1 : JOB_PARALLEL_HOSTS;
    return (await mapLimited(held, lanes, (each) => this.#runHost(run, each))).map(({ told }) => told);
  }

  /** One host after the other, from the one that is open, until one could be reached; or somebody else goes on. */
  async #runFirstReachable(run: Run, [first]: readonly VersionedRun[]): Promise<readonly HostRun[]> {
    const runs: HostRun[] = [];
    if (!first) return runs;
    const { hosts } = run.order;
    for (const host of hosts.slice(hosts.indexOf(first.open.host))) {
      const { told, mine } = await this.#runHost(run, host === first.open.host ? first : await this.#open(run, host));
      runs.push(told);
      if (told.state !== "unreachable" || !mine) break;
    }
    return runs;
  }

  /** Open first, so that a run never has a row that nobody would end. */
  async #open(run: Run, host: string): Promise<VersionedRun> {
    const { id: runId, order, startedMs, deadlineMs } = run;
    const open: OpenRun = { runId, host, order, startedMs, deadlineMs, owner: this.#controllers.own, attempt: 0 };
    const held = await this.#store.open(order.principal.tenant, open);
    await this.#endings.begin(open);
    return held;
  }

  async #runHost(run: Run, held: VersionedRun): Promise<HostEnd> {
    const key = keyOf(held.open);
    this.#running.add(key);
    try {
      return await this.#toItsEnd(run, held);
    } finally {
      this.#running.delete(key);
      this.appends.tell(key);
    }
  }

  async #toItsEnd(run: Run, held: VersionedRun): Promise<HostEnd> {
    const { open } = held;
    if (open.attempt === 0) this.#publish(open, { status: "running" });
    const output = this.#output(open);
    const outcome = await this.#commands(run, open, output).finally(() => output.finish());
    const end = await this.#finish(held, { outcome, output });
    if (end.mine) this.#publish(open, { status: end.state, code: end.code, message: end.message });
    const told = {
      host: open.host,
      state: end.state,
      message: end.message,
      output: output.text,
      ...(end.code === undefined ? {} : { code: end.code }),
    };
    return { told, mine: end.mine };
  }

  #output(open: OpenRun): RunOutput {
    return new RunOutput(async (offset, bytes) => {
      await this.#store.appendOutput(open.order.principal.tenant, open, { offset, bytes });
      this.appends.tell(keyOf(open));
    });
  }

  /** The job's command lines in their order; the first that does not end well is the last. */
  async #commands(run: Run, open: OpenRun, output: RunOutput): Promise<CommandOutcome> {
    let last: CommandOutcome | undefined;
    for (const [index, line] of run.order.commands.entries()) {
      last = await this.#reach(run, open, () =>
        this.#dispatch(run, { host: open.host, line, output, commandId: commandIdOf(open, index) }),
      );
      if (last.state !== "ok") break;
    }
    if (last === undefined) throw new AppError("internal", "A job without commands was started.");
    return last;
  }

  /**
   * Where a controller went, its agents are on their way to another one: a run that was taken over waits for its host.
   */
  async #reach(run: Run, open: OpenRun, dispatch: () => Promise<CommandOutcome>): Promise<CommandOutcome> {
    const { clock } = this.#runtime;
    const untilMs = Math.min(run.deadlineMonotonicMs, clock.monotonicMs() + JOB_HOST_RETURN_MS);
    for (;;) {
      const outcome = await dispatch();
      if (outcome.state !== "unreachable" || open.attempt === 0 || clock.monotonicMs() >= untilMs) return outcome;
      await wait(clock, JOB_HOST_RETURN_PAUSE_MS, this.#closing.signal);
      if (this.#closing.signal.aborted) throw new LetGo(run.id);
    }
  }

  async #dispatch(
    run: Run,
    { host, line, output, commandId }: { host: string; line: string; output: RunOutput; commandId: string },
  ): Promise<CommandOutcome> {
    const { clock } = this.#runtime;
    const { principal, environment } = run.order;
    const startedMs = clock.nowMs();
    const ended = (state: FinalState, message: string): CommandOutcome => ({
      host,
      state,
      message,
      startedMs,
      endedMs: clock.nowMs(),
    });
    const timeoutMs = run.deadlineMonotonicMs - clock.monotonicMs();
    if (timeoutMs <= 0) return ended("timeout", "Its turn did not come before the deadline.");
    try {
      const work = this.#untilClosing(run.id, () =>
        this.#hosts.dispatch(
          principal,
          host,
          { kind: "exec", line, environment },
          {
            ...(run.watcher?.signal && { signal: run.watcher.signal }),
            timeoutMs,
            commandId,
            onOutput: (piece) => {
              if (this.#closing.signal.aborted) return;
              output.take(piece);
              run.watcher?.onOutput?.(host, piece);
            },
          },
        ),
      );
      return (
        (await withinTime(clock, work, timeoutMs + DISPATCH_GRACE_MS)) ??
        ended("timeout", "The host did not answer in time.")
      );
    } catch (error) {
      if (error instanceof LetGo) throw error;
      if (isAppError(error, "not_found")) return ended("unreachable", `There is no host ${host}.`);
      this.#runtime.log.warn({ err: error, host, commandId }, "a job could not be sent");
      return ended("failed", errorText(error));
    }
  }

  /** The work itself is not told to stop: whoever takes the run over finds the command as it is by then. */
  async #untilClosing<T>(runId: string, begin: () => Promise<T>): Promise<T> {
    const { signal } = this.#closing;
    if (signal.aborted) throw new LetGo(runId);
    let letGo = (): void => {};
    const closing = new Promise<never>((_, reject) => {
      letGo = () => reject(new LetGo(runId));
      signal.addEventListener("abort", letGo, { once: true });
    });
    try {
      return await Promise.race([begin(), closing]);
    } finally {
      signal.removeEventListener("abort", letGo);
    }
  }

  /**
   * Puts the end on record. A store that is away for a moment is waited for; the open entry outlives this controller.
   */
  async #finish(
    held: VersionedRun,
    { outcome, output }: { outcome: CommandOutcome; output: RunOutput },
  ): Promise<StandingEnd> {
    const lost = await output.finish();
    const message =
      lost === undefined
        ? outcome.message
        : `${outcome.message} (its output could not be stored: ${errorText(lost)})`.trim();
    const end = this.#endOf(output, { ...outcome, message });
    try {
      return await this.#persist(() => this.#endings.end(held, end));
    } catch (error) {
      const { runId, host } = held.open;
      this.#runtime.log.error(
        { err: error, run: runId, host, state: outcome.state },
        "the end of a job run could not be recorded",
      );
      return { ...end, mine: true };
    }
  }

  #endOf(output: RunOutput, { state, code, message, endedMs }: Omit<CommandOutcome, "host" | "startedMs">): RunEnd {
    const { out, err, bytes: outputSize } = output;
    return {
      state,
      message,
      out,
      err,
      outputSize,
      endedMs,
      decidedMs: this.#runtime.clock.nowMs(),
      ...(code === undefined ? {} : { code }),
    };
  }

  async #persist<T>(write: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await write();
      } catch (error) {
        if (!isAppError(error, "unavailable", "unknown_outcome") || attempt === JOB_FINISH_ATTEMPTS) throw error;
        await wait(this.#runtime.clock, JOB_FINISH_PAUSE_MS * 2 ** attempt, this.#closing.signal);
      }
    }
  }

  #publish(open: OpenRun, state: NotifiedState): void {
    const { runId, host, order } = open;
    const { principal, name, sid } = order;
    const { status, code = null, message = "" } = state;
    this.#notifications.publish(principal.tenant, {
      keyspace: principal.ospace,
      source: host,
      subject: "jobrun",
      title: name,
      reply: "",
      msg: JSON.stringify({ runid: runId, sid, host, name, ...state }),
      about: {
        permission: "jobs:read",
        class: pathOf(open),
        id: undefined,
        values: { ...startRow(open), status, code, message },
        vtimeMs: this.#runtime.clock.nowMs(),
        ctimeMs: open.startedMs,
        told: ["host", "name"],
      },
    });
  }
}

/** What a notification says of a run on one host. */
interface NotifiedState {
  readonly status: string;
  readonly code?: number | undefined;
  readonly message?: string;
}

function refuseUnrunnable(job: StoredJob): void {
  const name = formatJobName(job);
  if (job.enable === 0) throw new AppError("conflict", `The job ${name} is disabled.`);
  if (job.begin !== "" || job.end !== "")
    throw new AppError("unsupported", `The job ${name} has begin or end scripts, which are not offered yet.`);
  if (job.group !== "" && job.host.length === 0)
    throw new AppError("unsupported", `The job ${name} runs on a job group, which is not offered yet.`);
}

function commandsOf(job: StoredJob, { cmd }: Parameters): readonly string[] {
  if (job !== REMOTE_COMMAND) return job.exec;
  if (cmd === undefined || cmd.trim() === "")
    throw new AppError("invalid", `${formatJobName(job)} needs a command line as cmd in param.`);
  return [cmd];
}

/** The first that is more than nothing. */
function timeoutSeconds(candidates: readonly (number | undefined)[]): number {
  const chosen = candidates.find((seconds) => seconds !== undefined && seconds > 0) ?? JOB_DEFAULT_S;
  return Math.min(chosen, JOB_MAX_S);
}

/** The hosts in the order of the execution. */
function inOrder(run: Run, held: readonly VersionedRun[]): readonly VersionedRun[] {
  const { hosts } = run.order;
  return [...held].sort((a, b) => hosts.indexOf(a.open.host) - hosts.indexOf(b.open.host));
}

/** The same on whatever controller: by it a host knows what it has done already. */
function commandIdOf({ runId, host }: RunName, index: number): string {
  return `job/${runId}/${host}/${index}`;
}

/** Of the id of a command; `undefined` for one that no run can have. */
function runOf(commandId: string): RunName | undefined {
  const [, runId = "", host = ""] = /^job\/([^/]+)\/(.+)\/\d+$/.exec(commandId) ?? [];
  return host === "" ? undefined : { runId, host };
}
