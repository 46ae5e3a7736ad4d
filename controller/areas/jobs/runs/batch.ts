import type { JobBatch, JobBatchEnds } from "../../../../common/api/jobs.ts";
import { AppError } from "../../../../common/errors.ts";
import { JOB_BATCH_ANSWER_MAX_BYTES } from "../../../../common/limits.ts";
import { TextStream } from "../../../../common/text/text-stream.ts";
import type { Principal } from "../../permissions/index.ts";
import { endOf, outputOf, untilAborted } from "../history/answers.ts";
import type { JobRuns } from "./runs.ts";
import type { Begun, HostRun, NamedRequest } from "../types.ts";

type BatchEnd = JobBatchEnds[number];

/**
 * Executes the jobs in parallel, and answers the result of each in their order. If `timeout` is 0 or more, waits for
 * their ends. The jobs continue even if the caller stops waiting.
 */
export async function runBatch(
  runs: Pick<JobRuns, "executeAll">,
  principal: Principal,
  { input: { jobs, timeout = -1 }, signal }: { readonly input: JobBatch; readonly signal: AbortSignal },
): Promise<BatchEnd[]> {
  const begun = await runs.executeAll(
    principal,
    jobs.map((job) => requestOf(job, timeout)),
  );
  const ends = begun.map((one, at) => endOfOne(jobs[at]?.name ?? "", one, timeout >= 0));
  return bounded(await untilAborted(Promise.all(ends), signal, "The jobs of the batch go on"));
}

function requestOf({ name, param, timeout }: JobBatch["jobs"][number], mostSeconds: number): NamedRequest {
  return {
    name,
    ...(param !== undefined && { param }),
    ...(timeout !== undefined && { timeoutSeconds: timeout }),
    ...(mostSeconds > 0 && { mostSeconds }),
  };
}

async function endOfOne(name: string, begun: Begun, waits: boolean): Promise<BatchEnd> {
  if ("error" in begun) return { name, ...failureOf(begun.error) };
  const { runId: runid, finished } = begun.execution;
  if (!waits) return { name, runid, status: "ok", message: runid };
  try {
    const ended = await finished;
    return { name, runid, ...answerOf(ended), runs: ended.map(endOf) };
  } catch (error) {
    return { name, runid, ...failureOf(error) };
  }
}

function answerOf(ended: readonly HostRun[]): Pick<BatchEnd, "status" | "code" | "message"> {
  try {
    return { status: "ok", message: outputOf(ended) };
  } catch (error) {
    return failureOf(error);
  }
}

/** Errors inside the controller are logged where they occur and are not shown to the caller. */
function failureOf(error: unknown): Pick<BatchEnd, "status" | "code" | "message"> {
  const { code, message } =
    error instanceof AppError ? error : new AppError("internal", "The job could not be executed.");
  return { status: "error", code, message };
}

/** Cuts the outputs to the size of one answer; earlier jobs come first. */
function bounded(ends: readonly BatchEnd[]): BatchEnd[] {
  let left = JOB_BATCH_ANSWER_MAX_BYTES;
  return ends.map((end) => {
    const bytes = Buffer.from(end.message);
    const kept = bytes.subarray(0, left);
    left -= kept.length;
    if (kept.length === bytes.length) return end;
    const message = `${new TextStream().take(kept)}\n[${bytes.length - kept.length} more bytes]`;
    return { ...end, message };
  });
}
