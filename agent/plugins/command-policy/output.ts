import { outputRecords, type OutputRecords } from "../../../common/agent/output-records.ts";
import type { RawRecord } from "../../../common/agent/raw-records.ts";
import { processLimits } from "../../../common/agent/process-limits.ts";
import { ErrorTail, OutputLimit, type RunDeadline } from "../../../common/agent/run-bounds.ts";
import type { RunEnd } from "../../../common/agent/run-end.ts";
import { LOG_FINAL_MS } from "../../../common/limits.ts";
import { counted } from "../../../common/text/counted.ts";
import { TextStream } from "../../../common/text/text-stream.ts";
import type { Place } from "./place.ts";
import type { Run } from "./run.ts";
import type { CommandWork } from "./work.ts";

export interface CarryOutOptions {
  readonly signal: AbortSignal;
  readonly place: Place;
  /** Absent for a daemon. */
  readonly deadline?: RunDeadline;
  /** Records are written at once, and not only at the end or when the buffer is full. */
  readonly atOnce?: boolean;
  readonly onStart?: (pid: number) => void;
}

/** End of a command. */
export interface CarriedOut {
  readonly end: RunEnd;
  /** Bytes of the standard output beyond the limit of the policy. */
  readonly droppedBytes: number;
}

/**
 * Runs the command of a policy, and cuts its standard output into records of the run. Resolves with the end of the
 * command.
 */
export async function carryOut(work: CommandWork, run: Run, options: CarryOutOptions): Promise<CarriedOut> {
  const records = outputRecords(work);
  const errors = new ErrorTail();
  const errorText = work.encoding && new TextStream(work.encoding);
  const take = async (cut: readonly RawRecord[]) => {
    await run.add(cut, options.signal);
    if (options.atOnce) await run.flush(options.signal);
  };
  const settling = settleWhenSilent(work, records, take);
  const limit = new OutputLimit(work.spec.isdaemon ? undefined : work.spec.outputlimit);
  const result = await work.host
    .exec({
      line: work.spec.command,
      ...options.place,
      limits: processLimits(work.spec),
      timeoutMs: options.deadline?.timeoutMs,
      signal: options.signal,
      ...(options.onStart && { onStart: options.onStart }),
      onOutput: async (data, stderr) => {
        if (stderr) return errors.add(errorText ? new TextEncoder().encode(errorText.take(data)) : data);
        settling.heard();
        return take(records.push(limit.kept(data)));
      },
    })
    .catch((error: unknown) => {
      // The policy is stopping, so the wait for room was aborted.
      if (!options.signal.aborted) throw error;
      return { ended: "cancelled" as const, code: -1, message: "" };
    })
    .finally(() => settling.stop());
  if (!options.signal.aborted) await take(limit.ended(records.end()));
  const said = [limit.message, errors.text(), complaint(work, records)];
  return { end: endOf(result, said, options.deadline), droppedBytes: limit.droppedBytes };
}

/**
 * A message with the number of characters of the standard output that are invalid in the encoding. Empty when there are
 * none.
 */
function complaint({ encoding }: CommandWork, { malformed }: OutputRecords): string {
  if (malformed === 0) return "";
  const characters = counted(malformed, "character of the output is", "characters of the output are");
  return `${characters} no ${encoding?.name ?? ""}`;
}

function endOf(
  result: { ended: string; code: number; message: string },
  said: readonly string[],
  deadline: RunDeadline | undefined,
): RunEnd {
  if (result.ended === "cancelled")
    return { state: "interrupted", code: result.code, message: "The agent or the policy was stopped." };
  const ok = result.ended === "exit" && result.code === 0;
  const what = result.ended === "timeout" ? deadline?.message : result.message;
  return { state: ok ? "ok" : "failed", code: result.code, message: [what, ...said].filter(Boolean).join(": ") };
}

/**
 * Sends the last record after `LOG_FINAL_MS` of silence, although the next one has not begun, unless it ends within a
 * line. Only for daemons.
 */
function settleWhenSilent(
  work: CommandWork,
  records: OutputRecords,
  take: (cut: readonly RawRecord[]) => Promise<void>,
) {
  let cancel = () => undefined as void;
  const { clock, log } = work.host;
  if (!work.spec.isdaemon) return { heard: cancel, stop: cancel };
  const settle = () => {
    take(records.settle()).catch((error: unknown) =>
      log("debug", "record held back", { policy: work.policy.name, error: String(error) }),
    );
  };
  const heard = () => {
    cancel();
    cancel = clock.after(LOG_FINAL_MS, settle);
  };
  return { heard, stop: () => cancel() };
}
