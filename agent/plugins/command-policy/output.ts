import { RecordStream, type StreamRecord } from "../../../common/agent/records.ts";
import { EXEC_ERROR_TAIL_BYTES, LOG_FINAL_MS, RECORD_MAX_BYTES } from "../../../common/limits.ts";
import type { CommandWork } from "./work.ts";
import { OutputText } from "./output-text.ts";
import type { Run, RunEnd } from "./run.ts";

export interface CarryOutOptions {
  readonly signal: AbortSignal;
  /** Absent for a daemon. */
  readonly timeoutMs?: number;
  /** Records go on their way as they come instead of at the end. */
  readonly atOnce?: boolean;
}

/** Runs the policy's command, cuts its standard output into records of the run, and says how it ended. */
export async function carryOut(work: CommandWork, run: Run, options: CarryOutOptions): Promise<RunEnd> {
  const records = work.spec.split || work.spec.isdaemon ? new RecordStream(work.cutter) : new WholeOutput();
  const errors = new Tail();
  const take = async (cut: readonly StreamRecord[]) => {
    await run.add(cut, options.signal);
    if (options.atOnce) await run.flush(options.signal);
  };
  const settling = settleWhenSilent(work, records, take);
  const text = new OutputText(work.encoding);
  const result = await work.host
    .exec({
      line: work.spec.command,
      cwd: work.depotFolder ?? work.folder,
      env: { ODP_POLICY: work.policy.name, ODP_POLICY_FOLDER: work.folder },
      timeoutMs: options.timeoutMs,
      signal: options.signal,
      onOutput: async (data, stderr) => {
        if (stderr) return errors.add(text.err(data));
        settling.heard();
        return take(records.push(text.out(data)));
      },
    })
    .catch((error: unknown) => {
      // Waiting for room was given up because the policy is to stop.
      if (!options.signal.aborted) throw error;
      return { ended: "cancelled" as const, code: -1, message: "" };
    })
    .finally(() => settling.stop());
  const rest = text.end();
  if (!options.signal.aborted) await take([...records.push(rest), ...records.end()]);
  return endOf(result, [errors.text(), text.complaint]);
}

function endOf(result: { ended: string; code: number; message: string }, said: readonly string[]): RunEnd {
  if (result.ended === "cancelled")
    return { state: "interrupted", code: result.code, message: "The agent or the policy was stopped." };
  const ok = result.ended === "exit" && result.code === 0;
  const what = result.ended === "timeout" ? "ended at its deadline" : result.message;
  return { state: ok ? "ok" : "failed", code: result.code, message: [what, ...said].filter(Boolean).join(": ") };
}

/** A record whose next does not begin is sent after a while of silence. */
function settleWhenSilent(
  work: CommandWork,
  records: RecordStream | WholeOutput,
  take: (cut: StreamRecord[]) => Promise<void>,
) {
  let cancel = () => undefined as void;
  const { clock, log } = work.host;
  if (!work.spec.isdaemon || records instanceof WholeOutput) return { heard: cancel, stop: cancel };
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

/** All output is one record. */
class WholeOutput {
  #chunks: Uint8Array[] = [];
  #bytes = 0;

  push(chunk: Uint8Array): StreamRecord[] {
    const room = Math.max(0, RECORD_MAX_BYTES - this.#bytes);
    if (room > 0) this.#chunks.push(chunk.slice(0, room));
    this.#bytes += chunk.length;
    return [];
  }

  end(): StreamRecord[] {
    const text = Buffer.concat(this.#chunks);
    const bytes = text.subarray(0, lengthWithoutBreaks(text));
    return bytes.length === 0 ? [] : [{ bytes, offset: 0, cut: this.#bytes > RECORD_MAX_BYTES }];
  }
}

function lengthWithoutBreaks(text: Buffer): number {
  let end = text.length;
  while (end > 0 && (text[end - 1] === 10 || text[end - 1] === 13)) end--;
  return end;
}

/** The last bytes of what a command complained. */
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
