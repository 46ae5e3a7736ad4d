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
