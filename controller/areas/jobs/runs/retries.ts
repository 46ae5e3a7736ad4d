import { JOB_RETRY_DELAY_MAX_S, JOB_TRY_MESSAGE_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import type { Clock } from "../../../../common/time.ts";
import type { CommandOutcome, FinalState } from "../../hosts/index.ts";
import type { OpenRun, RunOrder, RunRetry, RunTries } from "./open-runs.ts";
import type { RunOutput } from "../output/output.ts";
import type { StoredJob } from "../store.ts";

/** States after which a host may be tried again. */
const FAILED: readonly FinalState[] = ["failed", "timeout", "unreachable"];

/** How failed hosts are tried again; `undefined`: not at all. */
export function retryOf({ retry = 0, retrydelay = 0 }: StoredJob, timeoutMs: number): RunRetry | undefined {
  if (retry <= 0) return undefined;
  return { count: retry, delayMs: 1_000 * Math.min(Math.max(0, retrydelay), JOB_RETRY_DELAY_MAX_S), timeoutMs };
}

/** Maximum time of all tries of a host, with the pauses between them. */
export function wholeTimeMs(retry: RunRetry | undefined, timeoutMs: number): number {
  return retry ? timeoutMs * (retry.count + 1) + retry.delayMs * retry.count : timeoutMs;
}

/** Number of failed tries of the host before the current one. */
export function triesOf({ tries }: Pick<OpenRun, "tries">): number {
  return tries?.failures.length ?? 0;
}

interface Timed {
  readonly order: Pick<RunOrder, "retry">;
  readonly deadlineMonotonicMs: number;
}

/** The run, with the deadline of the try that begins now. */
export function tryOf<R extends Timed>(run: R, clock: Clock): R {
  const { retry } = run.order;
  if (!retry) return run;
  return { ...run, deadlineMonotonicMs: Math.min(run.deadlineMonotonicMs, clock.monotonicMs() + retry.timeoutMs) };
}

/** The tries to store before another try; `undefined`: no other try follows. */
export function anotherTry(
  open: OpenRun,
  { outcome, output, nowMs }: { readonly outcome: CommandOutcome; readonly output: RunOutput; readonly nowMs: number },
): RunTries | undefined {
  const { retry, groupmode } = open.order;
  const made = triesOf(open);
  if (!retry || made >= retry.count || !FAILED.includes(outcome.state)) return undefined;
  // Group mode `one` tries the next host instead.
  if (groupmode === "one" && outcome.state === "unreachable") return undefined;
  const dueMs = nowMs + retry.delayMs;
  if (dueMs >= open.deadlineMs) return undefined;
  return {
    failures: [...(open.tries?.failures ?? []), failureOf(outcome)],
    dueMs,
    written: output.bytes,
    kept: output.kept,
    attempt: open.attempt,
  };
}

function failureOf({ state, code, signal, message }: CommandOutcome): string {
  const text = `${[state, code, signal].filter((part) => part !== undefined).join(" ")}${message === "" ? "" : `: ${message}`}`;
  return beginningOf(text, JOB_TRY_MESSAGE_MAX_CHARACTERS);
}
