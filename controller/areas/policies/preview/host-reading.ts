import { ErrorTail } from "../../../../common/agent/run-bounds.ts";
import { withinTime } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { ulidOf } from "../../../../common/ids.ts";
import { DISPATCH_GRACE_MS, POLICY_PREVIEW_MS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import { unstoredId, type CommandOutcome, type HostCommand, type Hosts, type OutputPiece } from "../../hosts/index.ts";
import type { Principal } from "../../permissions/index.ts";

export interface HostReadingParts {
  readonly hosts: Pick<Hosts, "dispatch">;
  readonly runtime: Runtime;
}

export interface ReadOptions {
  readonly host: string;
  readonly command: HostCommand & { readonly kind: "exec" };
  readonly signal: AbortSignal;
  /** Called with the standard output in order. False: it has enough, so the command is ended. */
  readonly take: (data: Uint8Array) => boolean;
}

export interface HostRead {
  /** ended: the command ended by itself. enough: it was ended because `take` had enough. timeout: at the deadline. */
  readonly state: "ended" | "enough" | "timeout";
  /** Exit code, if it ended by itself. */
  readonly code?: number;
  /** The end of its error output. */
  readonly errors: string;
}

/**
 * Runs one command on a host and reads its output, for `POLICY_PREVIEW_MS` at most. Neither output nor result is stored.
 * `AppError("not_found")` for an unknown host, `unavailable` if the host is away or the command could not be begun.
 */
export async function readHost(
  principal: Principal,
  { hosts, runtime }: HostReadingParts,
  options: ReadOptions,
): Promise<HostRead> {
  const enough = new AbortController();
  const errors = new ErrorTail();
  const onOutput = ({ stderr, data }: OutputPiece): void => {
    if (stderr) errors.add(data);
    else if (!enough.signal.aborted && !options.take(data)) enough.abort();
  };
  const work = hosts.dispatch(principal, options.host, options.command, {
    timeoutMs: POLICY_PREVIEW_MS,
    commandId: unstoredId(ulidOf(runtime.clock.nowMs(), runtime.random.bytes(10))),
    signal: AbortSignal.any([enough.signal, options.signal]),
    onOutput,
  });
  const outcome = await withinTime(runtime.clock, work, POLICY_PREVIEW_MS + DISPATCH_GRACE_MS);
  if (options.signal.aborted) throw new AppError("cancelled", "The caller ended the preview.");
  if (enough.signal.aborted) return { state: "enough", errors: errors.text() };
  if (outcome === undefined || outcome.state === "timeout") return { state: "timeout", errors: errors.text() };
  return { state: "ended", code: codeOf(outcome), errors: errors.text() };
}

/** Throws for a command that did not run to its end by itself. */
function codeOf({ host, state, code, message, signal }: CommandOutcome): number {
  if ((state === "ok" || state === "failed") && code !== undefined && (code >= 0 || signal !== undefined)) return code;
  const text = message === "" ? `it ended as ${state}.` : message;
  throw new AppError("unavailable", `The policy cannot be previewed on ${host}: ${text}`);
}
