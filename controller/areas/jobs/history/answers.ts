import type { JobBatchEnds } from "../../../../common/api/jobs.ts";
import { AppError, type ErrorCode } from "../../../../common/errors.ts";
import type { FinalState } from "../../hosts/index.ts";
import type { HostRun } from "../types.ts";

/** The end of an execution as a caller gets it. */
export function endOf({ output: _output, ...end }: HostRun): Omit<HostRun, "output"> {
  return end;
}

const CODE_OF_STATE: Readonly<Record<Exclude<FinalState, "ok">, ErrorCode>> = {
  failed: "unavailable",
  timeout: "deadline",
  unreachable: "unavailable",
  cancelled: "cancelled",
  expired: "deadline",
};

/**
 * The text of the answer. For one host: its output, even if a command ended with an exit code; other failures are
 * thrown. For several hosts: one block for each.
 */
export function outputOf(runs: readonly HostRun[]): string {
  const [only] = runs;
  if (only === undefined || runs.length > 1)
    return runs.map((run) => `# ${run.host}: ${run.state}\n${run.output || run.message}`).join("\n");
  if (only.state === "ok" || (only.state === "failed" && only.code !== undefined)) return only.output || only.message;
  throw new AppError(
    CODE_OF_STATE[only.state],
    `${only.host}: ${only.state}: ${only.message}${only.output === "" ? "" : `\n${only.output}`}`,
  );
}

/** Failed parts of an execution, each with its text, and the number of all parts. */
interface Parts {
  readonly faults: readonly string[];
  readonly of: number;
}

/** The hosts of an execution. */
export function hostsOf(runs: readonly HostRun[]): Parts {
  return { faults: runs.filter(isFailed).map(faultOf), of: runs.length };
}

/** The executions of a batch: the hosts of each job, and each job without hosts. */
export function executionsOf(ends: JobBatchEnds): Parts {
  const faults = ends.flatMap(({ name, status, message, runs = [] }) => {
    const failed = runs.filter(isFailed).map((run) => `${name} on ${faultOf(run)}`);
    return failed.length > 0 || status === "ok" ? failed : [`${name}: ${message}`];
  });
  return { faults, of: ends.reduce((sum, { runs = [] }) => sum + Math.max(runs.length, 1), 0) };
}

type RunEnd = NonNullable<JobBatchEnds[number]["runs"]>[number];

function isFailed({ state }: Pick<RunEnd, "state">): boolean {
  return state !== "ok";
}

function faultOf({ host, state, message }: Pick<RunEnd, "host" | "state" | "message">): string {
  return `${host}: ${state}${message === "" ? "." : `, ${message}`}`;
}

/**
 * Answers the result of `work`. If the call ends first, rejects with an error whose text begins with `left`, which says
 * what happens to the work.
 */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal, left: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const gone = (): void => reject(new AppError("deadline", `${left}, but this call no longer waits for its output.`));
    if (signal.aborted) return gone();
    signal.addEventListener("abort", gone, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", gone));
  });
}
