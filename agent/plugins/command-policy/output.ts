import { outputRecords, type OutputRecords } from "../../../common/agent/output-records.ts";
import type { RawRecord } from "../../../common/agent/raw-records.ts";
import { EXEC_ERROR_TAIL_BYTES, LOG_FINAL_MS } from "../../../common/limits.ts";
import { counted } from "../../../common/text/counted.ts";
import { TextStream } from "../../../common/text/text-stream.ts";
import type { Run, RunEnd } from "./run.ts";
import type { CommandWork } from "./work.ts";

export interface CarryOutOptions {
  readonly signal: AbortSignal;
  /** Absent for a daemon. */
  readonly timeoutMs?: number;
  /** Records are written at once, and not only at the end or when the buffer is full. */
  readonly atOnce?: boolean;
}

/**
 * Runs the command of a policy, and cuts its standard output into records of the run. Resolves with the end of the
 * command.
 */
export async function carryOut(work: CommandWork, run: Run, options: CarryOutOptions): Promise<RunEnd> {
  const records = outputRecords(work);
  const errors = new Tail();
  const errorText = work.encoding && new TextStream(work.encoding);
  const take = async (cut: readonly RawRecord[]) => {
    await run.add(cut, options.signal);
    if (options.atOnce) await run.flush(options.signal);
  };
  const settling = settleWhenSilent(work, records, take);
  const result = await work.host
    .exec({
      line: work.spec.command,
      cwd: work.depotFolder ?? work.folder,
      env: environmentOf(work),
      timeoutMs: options.timeoutMs,
      signal: options.signal,
      onOutput: async (data, stderr) => {
        if (stderr) return errors.add(errorText ? Buffer.from(errorText.take(data)) : data);
        settling.heard();
        return take(records.push(data));
      },
    })
    .catch((error: unknown) => {
      // The policy is stopping, so the wait for room was aborted.
      if (!options.signal.aborted) throw error;
      return { ended: "cancelled" as const, code: -1, message: "" };
    })
    .finally(() => settling.stop());
  if (!options.signal.aborted) await take(records.end());
  return endOf(result, [errors.text(), complaint(work, records)]);
}

function environmentOf({ policy, folder, confPath }: CommandWork): Record<string, string> {
  const own = { ODP_POLICY: policy.name, ODP_POLICY_FOLDER: folder };
  return confPath === undefined ? own : { ...own, ODP_POLICY_CONF: confPath };
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

function endOf(result: { ended: string; code: number; message: string }, said: readonly string[]): RunEnd {
  if (result.ended === "cancelled")
    return { state: "interrupted", code: result.code, message: "The agent or the policy was stopped." };
  const ok = result.ended === "exit" && result.code === 0;
  const what = result.ended === "timeout" ? "ended at its deadline" : result.message;
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

/** The last `EXEC_ERROR_TAIL_BYTES` of the error output. */
class Tail {
  #bytes: Buffer = Buffer.alloc(0);

  add(data: Buffer): void {
    const all = Buffer.concat([this.#bytes, data]);
    this.#bytes = all.subarray(Math.max(0, all.length - EXEC_ERROR_TAIL_BYTES));
  }

  text(): string {
    return this.#bytes.toString().trim();
  }
}
