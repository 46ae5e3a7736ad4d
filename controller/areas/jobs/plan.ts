import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import { JOB_DEFAULT_S, JOB_MAX_S } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { Principal } from "../permissions/index.ts";
import { contextId, formatJobName } from "./names.ts";
import type { OpenRun, RunOrder, VersionedRun } from "./open-runs.ts";
import { parseParameters, type Parameters } from "./parameters.ts";
import { REMOTE_COMMAND } from "./service.ts";
import type { StoredJob } from "./store.ts";
import type { ExecutionRequest } from "./types.ts";

/** One execution: what is the same for all its hosts. */
export interface Run {
  /** The caller that waits for it here; absent for a run that was taken over. */
  readonly watcher?: Pick<ExecutionRequest, "onOutput" | "signal">;
  readonly id: string;
  readonly order: RunOrder;
  /** By the wall clock and by the monotonic one. */
  readonly startedMs: number;
  readonly deadlineMs: number;
  readonly deadlineMonotonicMs: number;
}

/** What the request makes of the job; refuses what cannot be executed. */
export function plannedRun(
  principal: Principal,
  job: StoredJob,
  { request, runtime }: { readonly request: ExecutionRequest; readonly runtime: Runtime },
): Run {
  const { clock, random } = runtime;
  const parameters = parseParameters(request.param);
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
export function resumedRun({ runId, order, startedMs, deadlineMs }: OpenRun, clock: Clock): Run {
  const deadlineMonotonicMs = clock.monotonicMs() + deadlineMs - clock.nowMs();
  return { id: runId, order, startedMs, deadlineMs, deadlineMonotonicMs };
}

/** The hosts in the order of the execution. */
export function inOrder({ order: { hosts } }: Run, held: readonly VersionedRun[]): readonly VersionedRun[] {
  return [...held].sort((a, b) => hosts.indexOf(a.open.host) - hosts.indexOf(b.open.host));
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
