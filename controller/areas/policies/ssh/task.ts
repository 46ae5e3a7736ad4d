import { backoffMs } from "../../../../common/agent/backoff.ts";
import { dueAfter, dueBetween } from "../../../../common/agent/due.ts";
import { runDeadline } from "../../../../common/agent/run-bounds.ts";
import { pausedText } from "../../../../common/agent/run-end.ts";
import type { CommandPolicySpec } from "../../../../common/api/policies.ts";
import { AppError } from "../../../../common/errors.ts";
import { CLOCK_JUMP_MAX_MS, POLICY_SSH_AGAIN_MS, POLICY_SSH_PAUSE_MAX_MS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Entry } from "../../../../proto/gen/agent/v1/agent.ts";
import { runCommand, type CommandParts, type CommandResult } from "./command.ts";
import { entriesOf, missedGap, outputGap, recordBodies, runBody } from "./entries.ts";
import type { MissedRuns, OpenRun, PolicyOnHost, SshMark, SshMarks } from "./marks.ts";
import { storeEntries, type StoringParts, type Stream } from "./storing.ts";

export interface TaskParts extends StoringParts, CommandParts {
  readonly runtime: Pick<Runtime, "clock" | "random" | "log">;
  readonly marks: Pick<SshMarks, "get" | "put" | "remove">;
  /** False if the policy of this revision is not to run on the host any more. Notes it as sent to the host. */
  readonly isWanted: (of: PolicyOnHost, revision: number) => Promise<boolean>;
  /** Takes the state of the policy as an agent reports it: `running`, or `failed: ` and the reason. */
  readonly report: (of: PolicyOnHost, state: string) => Promise<void>;
}

export interface WantedRuns {
  readonly spec: CommandPolicySpec;
  readonly revision: number;
}

/** Difference between the wall clock and the monotonic clock that counts as a jump. */
const JUMP_MS = 1_000;

/**
 * Runs one command policy on one host over SSH, at the due times of an agent. Each due time up to the mark is the
 * scheduled time of one run or is counted in one gap. A mark is written before a run begins, over the mark that was
 * read, so no two controllers run the same due time.
 */
export class SshTask {
  readonly of: PolicyOnHost;
  readonly #parts: TaskParts;
  #wanted: WantedRuns;
  #mark: { readonly value: SshMark; readonly revision: number } | undefined;
  #stopping = new AbortController();
  #failures = 0;
  #pauseUntilMs = 0;
  /** Wall clock and monotonic clock at the end of the last look. */
  #lastLook: { readonly wallMs: number; readonly steadyMs: number } | undefined;

  constructor(parts: TaskParts, of: PolicyOnHost, wanted: WantedRuns) {
    this.#parts = parts;
    this.of = of;
    this.#wanted = wanted;
  }

  /** Ends the run in progress; it is reported as interrupted. */
  stop(): void {
    this.#stopping.abort();
  }

  /**
   * Ends the run in progress if the policy changed, and runs the policy as it is now from its next due time. False if it
   * did not change.
   */
  change(wanted: WantedRuns): boolean {
    if (wanted.revision === this.#wanted.revision) return false;
    this.#wanted = wanted;
    this.#failures = 0;
    this.#pauseUntilMs = 0;
    this.stop();
    this.#stopping = new AbortController();
    return true;
  }

  /** Runs the policy if it is due. Returns the time of the next look. If it throws, nothing is run twice by a repetition. */
  async attend(): Promise<number> {
    const { clock } = this.#parts.runtime;
    try {
      const isJump = this.#hasJumped();
      if (!this.#mark) await this.#recover();
      const nowMs = clock.nowMs();
      if (this.#throughMs - nowMs > CLOCK_JUMP_MAX_MS) await this.#setBack(nowMs);
      if (this.#pauseUntilMs > nowMs) return this.#pauseUntilMs;
      if (this.#pauseUntilMs > 0) await this.#skip("backoff", nowMs);
      this.#pauseUntilMs = 0;
      const due = dueBetween(this.#wanted.spec, this.#throughMs, nowMs);
      if (due && !(await this.#runDue(due, isJump ? "clock_jump" : "overrun"))) return nowMs + POLICY_SSH_AGAIN_MS;
    } catch (error) {
      // The mark may have been written, so it is read again.
      this.#mark = undefined;
      throw error;
    }
    this.#lastLook = { wallMs: clock.nowMs(), steadyMs: clock.monotonicMs() };
    return Math.max(this.#pauseUntilMs, dueAfter(this.#wanted.spec, this.#throughMs));
  }

  /** Ends the account of a policy that is not to run on the host any more. Call it after `stop`. */
  async forget(): Promise<void> {
    this.#mark = undefined;
    await forgetRuns(this.#parts, this.of);
  }

  get #throughMs(): number {
    return this.#mark?.value.throughMs ?? this.#parts.runtime.clock.nowMs();
  }

  #hasJumped(): boolean {
    const { clock } = this.#parts.runtime;
    if (!this.#lastLook) return false;
    const { wallMs, steadyMs } = this.#lastLook;
    return clock.nowMs() - wallMs - (clock.monotonicMs() - steadyMs) > JUMP_MS;
  }

  /** Reads the mark. Reports the run that another controller left open, and the due times that none has seen. */
  async #recover(): Promise<void> {
    const { marks, runtime, requireLead } = this.#parts;
    const found = await marks.get(this.of);
    requireLead();
    const nowMs = runtime.clock.nowMs();
    if (!found.value) return this.#put({ throughMs: nowMs }, found.revision);
    const { throughMs, run } = found.value;
    const missed = this.#missed("controller_down", throughMs, nowMs);
    if (run) await this.#store(run.scheduledMs, interruptedEntries(this.of, run));
    if (missed) await this.#storeGap(missed);
    this.#mark = { value: found.value, revision: found.revision };
    if (run || missed) await this.#put({ throughMs: Math.max(throughMs, nowMs) }, found.revision);
  }

  /** False if the policy is not to run now. */
  async #runDue(due: NonNullable<ReturnType<typeof dueBetween>>, reason: string): Promise<boolean> {
    const { runtime, isWanted, requireLead } = this.#parts;
    const { spec, revision } = this.#wanted;
    const { signal } = this.#stopping;
    if (!(await isWanted(this.of, revision)) || signal.aborted) return false;
    const missed = due.count > 1 ? this.#missed(reason, this.#throughMs, due.lastMs - 1) : undefined;
    const startedMs = runtime.clock.nowMs();
    const run: OpenRun = { revision, scheduledMs: due.lastMs, startedMs, ...(missed && { missed }) };
    await this.#put({ throughMs: due.lastMs, run });
    const deadline = runDeadline(spec, startedMs);
    const result = await runCommand(this.#parts, { ...this.of, spec, deadline, signal });
    requireLead();
    const problem = this.#noteEnd(result);
    await this.#end(run, { result, spec });
    await this.#parts.report(this.of, problem === undefined ? "running" : `failed: ${problem}`);
    return true;
  }

  /** Stores the records and the end of a run, and then its mark. */
  async #end(run: OpenRun, { result, spec }: { readonly result: CommandResult; readonly spec: CommandPolicySpec }) {
    const { policy } = this.of;
    const endedMs = this.#parts.runtime.clock.nowMs();
    // A run that is due meanwhile is skipped. With `queue` and `replace`, the next look finds it.
    const isSkipped = (spec.overlap || "skip") === "skip";
    const throughMs = isSkipped ? Math.max(endedMs, run.scheduledMs) : run.scheduledMs;
    const overrun = this.#missed("overrun", run.scheduledMs, throughMs);
    const { droppedBytes: count, records, end } = result;
    const bodies = [
      ...(run.missed ? [missedGap(policy, run.missed)] : []),
      ...recordBodies({ policy, rule: spec.rule, run }, records),
      runBody(policy, run, { end, endedMs, records: records.length }),
      ...(overrun ? [missedGap(policy, overrun)] : []),
      ...(count > 0 ? [outputGap(policy, { count, fromMs: run.scheduledMs, toMs: endedMs })] : []),
    ];
    await this.#store(run.scheduledMs, entriesOf(bodies, endedMs), records.length > 0 ? spec.rule : undefined);
    await this.#put({ throughMs });
  }

  /** Returns the reason why the policy counts as failed; `undefined`: it runs. */
  #noteEnd({ end, problem, isUnreachable }: CommandResult): string | undefined {
    const { spec } = this.#wanted;
    const { clock, random } = this.#parts.runtime;
    this.#failures = end.state === "failed" ? this.#failures + 1 : 0;
    if (this.#failures === 0 || (spec.backoff === undefined && !isUnreachable)) return problem;
    const nextMs = dueAfter(spec, clock.nowMs());
    const maxMs = spec.backoff === undefined ? POLICY_SSH_PAUSE_MAX_MS : spec.backoff * 1_000;
    const failures = this.#failures;
    const pauseMs = backoffMs({ failures, intervalMs: dueAfter(spec, nextMs) - nextMs, maxMs }, random);
    this.#pauseUntilMs = clock.nowMs() + pauseMs;
    return pausedText({ pauseMs, failures, message: end.message });
  }

  /** Due times after the first time and up to the second one. `undefined`: there is none. */
  #missed(reason: string, afterMs: number, toMs: number): MissedRuns | undefined {
    const due = dueBetween(this.#wanted.spec, afterMs, toMs);
    return due && { reason, count: due.count, fromMs: due.firstMs, toMs: due.lastMs };
  }

  async #skip(reason: string, toMs: number): Promise<void> {
    const missed = this.#missed(reason, this.#throughMs, toMs);
    if (!missed) return;
    await this.#storeGap(missed);
    await this.#put({ throughMs: toMs });
  }

  /** The clock was far ahead when the mark was written. Without this the policy would wait until that time. */
  async #setBack(nowMs: number): Promise<void> {
    await this.#storeGap({ reason: "clock_jump", count: 0, fromMs: nowMs, toMs: this.#throughMs });
    await this.#put({ throughMs: nowMs });
  }

  /** The place of a gap follows from its first due time, so a repetition stores the same gap. */
  #storeGap(missed: MissedRuns): Promise<void> {
    return this.#store(`gap-${missed.fromMs}`, entriesOf([missedGap(this.of.policy, missed)], missed.fromMs));
  }

  #store(at: string | number, entries: Entry[], rule?: string): Promise<void> {
    return storeAt(this.#parts, this.of, { at, entries, rule, signal: this.#stopping.signal });
  }

  async #put(value: SshMark, over = this.#mark?.revision ?? 0): Promise<void> {
    this.#parts.requireLead();
    const revision = await this.#parts.marks.put(this.of, value, over);
    if (revision === undefined) throw new AppError("conflict", "Another controller runs the policy.");
    this.#mark = { value, revision };
  }
}

/** Reports the run that was left open as interrupted, and removes the mark. */
export async function forgetRuns(parts: TaskParts, of: PolicyOnHost): Promise<void> {
  const { value } = await parts.marks.get(of);
  parts.requireLead();
  if (value?.run) {
    const { signal } = new AbortController();
    await storeAt(parts, of, { at: value.run.scheduledMs, entries: interruptedEntries(of, value.run), signal });
  }
  await parts.marks.remove(of);
}

interface Place extends Omit<Stream, "source"> {
  /** Name of the stream among those of the policy on the host. */
  readonly at: string | number;
}

function storeAt(parts: TaskParts, { tenant, host, policy }: PolicyOnHost, { at, ...stream }: Place): Promise<void> {
  return storeEntries(parts, { ...stream, source: { tenant, host, streamId: `ssh/${policy}/${at}` } });
}

function interruptedEntries({ policy }: PolicyOnHost, run: OpenRun): Entry[] {
  const message = "The controller ended before the records of the run were stored.";
  const end = { state: "interrupted", code: -1, message } as const;
  const missed = run.missed ? [missedGap(policy, run.missed)] : [];
  return entriesOf([...missed, runBody(policy, run, { end, endedMs: run.startedMs, records: 0 })], run.startedMs);
}
