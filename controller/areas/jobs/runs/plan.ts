import { AppError } from "../../../../common/errors.ts";
import { ulidOf } from "../../../../common/ids.ts";
import { JOB_DEFAULT_S, JOB_HOSTS_MAX, JOB_MAX_S } from "../../../../common/limits.ts";
import { isExpression } from "../../../../common/targets/index.ts";
import type { Clock } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { SecretBox } from "../../../secrets/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { commandLines } from "../definitions/definition.ts";
import { encodedLine } from "../output/encoding.ts";
import { contextId, formatJobName } from "../definitions/names.ts";
import type { OpenRun, RunOrder, VersionedRun } from "./open-runs.ts";
import { INPUT, parseParameters, sealedEnvironment, type Parameters } from "../definitions/parameters.ts";
import { retryOf, wholeTimeMs } from "./retries.ts";
import { serverScriptOf, type RunScripts } from "../definitions/stages.ts";
import { authorOf, type StoredJob } from "../store.ts";
import { systemJobOf } from "../definitions/system-jobs.ts";
import { NO_TARGETS, type TargetOverride, type Targets } from "./targets.ts";
import type { ExecutionRequest } from "../types.ts";

/** One execution: the data that is common to all its hosts. */
export interface Run {
  /** The caller on this controller that waits for the run; absent for a run that was taken over. */
  readonly watcher?: Pick<ExecutionRequest, "onOutput" | "signal">;
  readonly id: string;
  readonly order: RunOrder;
  /** Maximum number of concurrent executions of the job; 0: no limit. */
  readonly limit: number;
  /** Executions in the same queue run one after the other; empty: no queue. */
  readonly queue: string;
  readonly scripts?: RunScripts;
  /** Start by the wall clock. `deadlineMonotonicMs` is by the monotonic clock. */
  readonly startedMs: number;
  readonly deadlineMs: number;
  readonly deadlineMonotonicMs: number;
}

export interface Planning {
  readonly request: ExecutionRequest;
  readonly runtime: Runtime;
  readonly secrets: Pick<SecretBox, "seal">;
  /** Time at which the schedule was due; absent: a caller requested the run. */
  readonly dueMs?: number | undefined;
  /** Answers the hosts on which the job runs. */
  readonly targets: (job: StoredJob, asked: TargetOverride) => Promise<Targets>;
  /** Answers the hosts in the order in which group mode `one` tries them. */
  readonly ordered: (job: StoredJob, hosts: readonly string[]) => Promise<readonly string[]>;
}

/** Plans the run of a request. Throws for a job that cannot be executed now. */
export async function plannedRun(
  principal: Principal,
  job: StoredJob,
  { request, runtime, secrets, dueMs, targets, ordered }: Planning,
): Promise<Run> {
  const { clock, random } = runtime;
  const parameters = parseParameters(request.param);
  const scripts = scriptsOf(job);
  const isOnHosts = !scripts?.serverjs;
  if (!isOnHosts && INPUT in parameters.environment)
    throw new AppError("invalid", `The job ${formatJobName(job)} runs as a script, which has no ${INPUT}.`);
  const { hosts, behind } = isOnHosts ? await targets(job, parameters) : NO_TARGETS;
  if (isOnHosts && hosts.length === 0) throw noHost(job, parameters);
  refuseTooMany(hosts.length);
  const commands = isOnHosts ? commandsOf(job, parameters) : [];
  // Check the encoding again: older versions could store an unknown one.
  for (const line of commands) encodedLine(line, job.argenc === "" ? "utf-8" : job.argenc);
  const seconds = timeoutSeconds([request.timeoutSeconds, parameters.timeoutSeconds, job.timeout]);
  const mostMs = 1_000 * Math.min(request.mostSeconds ?? JOB_MAX_S, JOB_MAX_S);
  const tryMs = Math.min(1_000 * seconds, mostMs);
  const retry = isOnHosts ? retryOf(job, tryMs) : undefined;
  const timeoutMs = Math.min(wholeTimeMs(retry, tryMs), mostMs);
  const startedMs = clock.nowMs();
  const id = ulidOf(startedMs, random.bytes(10));
  return {
    id,
    watcher: request,
    limit: Math.max(0, job.limit),
    queue: job.queue.trim(),
    ...(scripts && { scripts }),
    order: {
      principal,
      hosts: job.groupmode === "one" ? await ordered(job, hosts) : hosts,
      ...(Object.keys(behind).length > 0 && { behind }),
      name: formatJobName(job),
      dir: job.dir,
      groupmode: job.groupmode,
      sid: contextId(startedMs, random.bytes(6)),
      commands,
      sealed: sealedEnvironment(secrets, {
        tenant: principal.tenant,
        runId: id,
        environment: { ...parameters.environment, ODP_RUN_ID: id },
      }),
      ...(job.argenc !== "" && { encoding: job.argenc }),
      ...(job.user && { hostUser: job.user }),
      ...(dueMs !== undefined && { dueMs }),
      ...(retry && { retry }),
      ...(request.origin !== undefined && { origin: request.origin }),
      ...(parameters.names.length > 0 && { params: parameters.names }),
    },
    startedMs,
    deadlineMs: startedMs + timeoutMs,
    deadlineMonotonicMs: clock.monotonicMs() + timeoutMs,
  };
}

/**
 * A run that another controller began, with the given hosts. The remaining time is computed by this controller's wall
 * clock.
 */
export function resumedRun(runs: readonly OpenRun[], principal: Principal, clock: Clock): Run | undefined {
  const [first] = runs;
  if (!first) return undefined;
  const { runId, startedMs, deadlineMs } = first;
  const order = { ...first.order, principal, hosts: runs.map(({ host }) => host) };
  const deadlineMonotonicMs = clock.monotonicMs() + deadlineMs - clock.nowMs();
  return { id: runId, order, limit: 0, queue: "", startedMs, deadlineMs, deadlineMonotonicMs };
}

/** Sorts the hosts into the order of the execution. */
export function inOrder(held: readonly VersionedRun[]): readonly VersionedRun[] {
  return [...held].sort((a, b) => a.open.place - b.open.place);
}

/**
 * Number of hosts for which an execution needs room: one in group mode `one`, otherwise all, also in mode `sequence`. A
 * script of the controller counts as one host.
 */
export function roomOf({ hosts, groupmode }: Pick<RunOrder, "hosts" | "groupmode">): number {
  return groupmode === "one" ? 1 : Math.max(1, hosts.length);
}

/**
 * True if the run has steps between which another controller must be able to continue, so that it needs an entry of its
 * own.
 */
export function isWhole({ queue, scripts, order }: Pick<Run, "queue" | "scripts" | "order">): boolean {
  return queue !== "" || scripts !== undefined || order.groupmode === "one";
}

function noHost(job: StoredJob, { hosts = job.host }: Parameters): AppError {
  const name = formatJobName(job);
  const text = hosts.some(isExpression)
    ? `${hosts.filter(isExpression).join(", ")} of the job ${name} matches no host now.`
    : `The job ${name} has no host, and param gives none as HOST! or GROUP!.`;
  return new AppError("invalid", text);
}

function scriptsOf(job: StoredJob): RunScripts | undefined {
  const [begin, end, serverjs] = [job.begin.trim(), job.end.trim(), serverScriptOf(job.exec)];
  return begin || end || serverjs ? { begin, end, serverjs, author: authorOf(job) } : undefined;
}

function refuseTooMany(hosts: number): void {
  if (hosts > JOB_HOSTS_MAX)
    throw new AppError("too_large", `An execution has at most ${JOB_HOSTS_MAX} hosts, not ${hosts}.`, {
      details: { limit: "JOB_HOSTS_MAX" },
    });
}

function commandsOf(job: StoredJob, { cmd }: Parameters): readonly string[] {
  if (!systemJobOf(formatJobName(job))) return commandLines(job);
  if (cmd === undefined || cmd.trim() === "")
    throw new AppError("invalid", `${formatJobName(job)} needs a command line as cmd in param.`);
  return [cmd];
}

/** The first positive number, or the default; at most `JOB_MAX_S`. */
function timeoutSeconds(candidates: readonly (number | undefined)[]): number {
  const chosen = candidates.find((seconds) => seconds !== undefined && seconds > 0) ?? JOB_DEFAULT_S;
  return Math.min(chosen, JOB_MAX_S);
}
