import { backoffMs } from "../../../common/agent/backoff.ts";
import { dueAfter, dueBetween } from "../../../common/agent/due.ts";
import { commandProblem, pausedText, type RunEnd } from "../../../common/agent/run-end.ts";
import { runDeadline } from "../../../common/agent/run-bounds.ts";
import { CLOCK_JUMP_MAX_MS, TIMER_MAX_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import { policyMarks } from "../../policies/host.ts";
import type { Emission } from "../../outbox/outbox.ts";
import type { Mark } from "../../outbox/segment.ts";
import type { Runner } from "../../policies/plugin.ts";
import type { CommandWork } from "./work.ts";
import { carryOut } from "./output.ts";
import { placeOf, type Place } from "./place.ts";
import { interruptedRun, Run } from "./run.ts";

/**
 * Difference between the wall clock and the monotonic clock that counts as a jump. A late timer causes a smaller one.
 */
const JUMP_MS = 1_000;

interface DueRun {
  /** Reason of the gap for due times that were missed before. */
  readonly reason: "overrun" | "clock_jump";
  readonly place: Place;
  readonly signal: AbortSignal;
}

/**
 * Runs a command at its due times, one run at a time. Each due time up to the mark `due` is either the scheduled time
 * of one run or counted in one gap. The mark changes in the same write as the run or the gap.
 */
export class IntervalRunner implements Runner {
  readonly #work: CommandWork;
  #problem: string | undefined;
  /** Failed runs in a row since this runner began. */
  #failures = 0;
  /** Pause that is due now; 0: none. */
  #pauseMs = 0;

  constructor(work: CommandWork) {
    this.#work = work;
  }

  /** The reason why the command of the last run could not be run, or why it pauses; undefined when it ran. */
  get problem(): string | undefined {
    return this.#problem;
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#recover(signal);
    const place = await placeOf(this.#work, signal);
    while (!signal.aborted) {
      const dueMs = dueAfter(this.#work.spec, this.#through());
      const jumped = await this.#waitUntil(dueMs, signal);
      if (signal.aborted) break;
      if (!this.#work.host.hasRoom()) await this.#skipUntilRoom(signal);
      else await this.#runDue({ reason: jumped ? "clock_jump" : "overrun", place, signal });
      if (this.#pauseMs > 0) await this.#pause(signal);
    }
    await this.#leave();
  }

  /**
   * Writes the gap of runs that were due while the outbox had no room, before the runner stops: afterwards their times
   * are not known any more. It uses the reserve, and does not wait for room.
   */
  async #leave(): Promise<void> {
    const { host } = this.#work;
    const nowMs = host.clock.nowMs();
    const gap = this.#gap("outbox_full", nowMs);
    if (gap.length > 0) await host.emit(gap, { marks: [this.#mark(nowMs)], reserve: true, impatient: true });
  }

  /** Writes the gap of runs that were due while the agent did not run, and the end of a run that was interrupted. */
  async #recover(signal: AbortSignal): Promise<void> {
    const { host, policy } = this.#work;
    const open = interruptedRun(policy.name, host);
    const nowMs = host.clock.nowMs();
    const known = host.mark(this.#key()) !== undefined;
    const gap = known ? this.#gap("agent_down", nowMs) : [];
    const toMs = known ? Math.max(nowMs, this.#through()) : nowMs;
    await host.emit([...open.emissions, ...gap], { marks: [...open.marks, this.#mark(toMs)], reserve: true, signal });
  }

  /** Waits for a due time. True when the clock was set forward meanwhile, or far back (`#setBack`). */
  async #waitUntil(dueMs: number, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#work.host;
    let jumped = false;
    for (let nowMs = clock.nowMs(); nowMs < dueMs && !signal.aborted; nowMs = clock.nowMs()) {
      if (this.#through() - nowMs > CLOCK_JUMP_MAX_MS) return this.#setBack(nowMs, signal);
      const steadyMs = clock.monotonicMs();
      await wait(clock, Math.min(dueMs - nowMs, TIMER_MAX_MS), signal);
      jumped ||= clock.nowMs() - nowMs - (clock.monotonicMs() - steadyMs) > JUMP_MS;
    }
    return jumped;
  }

  /**
   * Sets the mark back to the current time, with a gap. The clock was far ahead when the mark was written, and without
   * this the policy would wait until that time.
   */
  async #setBack(nowMs: number, signal: AbortSignal): Promise<boolean> {
    const value = {
      policy: this.#work.policy.name,
      source: "command",
      reason: "clock_jump",
      count: 0,
      unit: "runs",
      fromMs: nowMs,
      toMs: this.#through(),
    };
    await this.#work.host.emit([{ body: { $case: "gap", value } }], {
      marks: [this.#mark(nowMs)],
      reserve: true,
      signal,
    });
    return true;
  }

  async #skipUntilRoom(signal: AbortSignal): Promise<void> {
    const { host } = this.#work;
    await host.room(signal);
    if (signal.aborted) return;
    const nowMs = host.clock.nowMs();
    await host.emit(this.#gap("outbox_full", nowMs), { marks: [this.#mark(nowMs)], reserve: true, signal });
  }

  /** Waits after failures. Runs that are due meanwhile are counted in one gap, also if the policy is stopped. */
  async #pause(signal: AbortSignal): Promise<void> {
    const { host } = this.#work;
    await wait(host.clock, this.#pauseMs, signal);
    this.#pauseMs = 0;
    const nowMs = host.clock.nowMs();
    const gap = this.#gap("backoff", nowMs);
    const giving = signal.aborted ? { impatient: true } : { signal };
    if (gap.length > 0) await host.emit(gap, { marks: [this.#mark(nowMs)], reserve: true, ...giving });
  }

  async #runDue({ reason, place, signal }: DueRun): Promise<void> {
    const { host, policy, spec } = this.#work;
    const due = dueBetween(spec, this.#through(), host.clock.nowMs());
    if (!due) return;
    // Only the latest due time is run. The missed ones before it are counted in a gap.
    const missed = due.count > 1 ? this.#gap(reason, due.lastMs - 1) : [];
    const run = await Run.begin(
      { host, policy, spec, scheduledMs: due.lastMs, signal },
      { emissions: missed, marks: [this.#mark(due.lastMs)] },
    );
    const deadline = runDeadline(spec, host.clock.nowMs());
    const { end, droppedBytes } = await carryOut(this.#work, run, { signal, place, deadline });
    this.#noteEnd(end);
    // A run that is due meanwhile is skipped. With `queue` and `replace`, the next look finds it.
    const isSkipped = (spec.overlap || "skip") === "skip";
    const nowMs = isSkipped ? Math.max(host.clock.nowMs(), due.lastMs) : due.lastMs;
    const lost = outputGap({ policy: policy.name, droppedBytes, fromMs: due.lastMs, toMs: host.clock.nowMs() });
    await run.end(end, { emissions: [...this.#gap("overrun", nowMs), ...lost], marks: [this.#mark(nowMs)] });
  }

  #noteEnd(end: RunEnd): void {
    const { spec, host } = this.#work;
    this.#problem = commandProblem(end);
    this.#failures = end.state === "failed" ? this.#failures + 1 : 0;
    if (this.#failures === 0 || spec.backoff === undefined) return;
    const nextMs = dueAfter(spec, host.clock.nowMs());
    const intervalMs = dueAfter(spec, nextMs) - nextMs;
    const failures = this.#failures;
    this.#pauseMs = backoffMs({ failures, intervalMs, maxMs: spec.backoff * 1_000 }, host.random);
    this.#problem = pausedText({ pauseMs: this.#pauseMs, failures, message: end.message });
  }

  /** One gap for the due times after the mark and up to `toMs`. Empty when there is none. */
  #gap(reason: string, toMs: number): Emission[] {
    const due = dueBetween(this.#work.spec, this.#through(), toMs);
    if (!due) return [];
    const value = {
      policy: this.#work.policy.name,
      source: "command",
      reason,
      count: due.count,
      unit: "runs",
      fromMs: due.firstMs,
      toMs: due.lastMs,
    };
    return [{ body: { $case: "gap", value } }];
  }

  #key(): string {
    return `${policyMarks(this.#work.policy.name)}due`;
  }

  #through(): number {
    return Number(this.#work.host.mark(this.#key()) ?? this.#work.host.clock.nowMs());
  }

  #mark(throughMs: number): Mark {
    return { key: this.#key(), value: String(throughMs) };
  }
}

/** The gap of output beyond the limit of the policy. Empty if nothing was dropped. */
function outputGap(lost: {
  readonly policy: string;
  readonly droppedBytes: number;
  readonly fromMs: number;
  readonly toMs: number;
}): Emission[] {
  const { droppedBytes, ...where } = lost;
  if (droppedBytes === 0) return [];
  const value = { ...where, source: "command", reason: "output_limit", count: droppedBytes, unit: "bytes" };
  return [{ body: { $case: "gap", value } }];
}
