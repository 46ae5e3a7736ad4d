import { CLOCK_JUMP_MAX_MS, POLICY_RUN_MAX_MS, TIMER_MAX_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import { policyMarks } from "../../policies/host.ts";
import type { Emission } from "../../outbox/outbox.ts";
import type { Mark } from "../../outbox/segment.ts";
import type { Runner } from "../../policies/plugin.ts";
import type { CommandWork } from "./work.ts";
import { dueAfter, dueBetween } from "./due.ts";
import { carryOut } from "./output.ts";
import { commandProblem, interruptedRun, Run } from "./run.ts";

/** Difference between wall and steady clock that is a jump, not a late timer. */
const JUMP_MS = 1_000;

/**
 * Runs a command at its due times, one at a time. Everything up to the mark `due` is accounted for: each due time is
 * the scheduled time of one run or counted in one gap, and the mark moves in the same write.
 */
export class IntervalRunner implements Runner {
  readonly #work: CommandWork;
  #problem: string | undefined;

  constructor(work: CommandWork) {
    this.#work = work;
  }

  /** Time of the last run. */
  get problem(): string | undefined {
    return this.#problem;
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#recover(signal);
    while (!signal.aborted) {
      const dueMs = dueAfter(this.#work.spec, this.#through());
      const jumped = await this.#waitUntil(dueMs, signal);
      if (signal.aborted) break;
      if (!this.#work.host.hasRoom()) await this.#skipUntilRoom(signal);
      else await this.#runDue(jumped ? "clock_jump" : "overrun", signal);
    }
    await this.#leave();
  }

  /**
   * Writes the gap of runs that fell due while there was no room, before the policy goes: afterwards their times are
   * lost. It uses the reserve, and does not wait for room.
   */
  async #leave(): Promise<void> {
    const { host } = this.#work;
    const nowMs = host.clock.nowMs();
    const gap = this.#gap("outbox_full", nowMs);
    if (gap.length > 0) await host.emit(gap, { marks: [this.#mark(nowMs)], reserve: true, impatient: true });
  }

  /** Writes the gap of runs that fell due while the agent was away, and the end of the run that was interrupted. */
  async #recover(signal: AbortSignal): Promise<void> {
    const { host, policy } = this.#work;
    const open = interruptedRun(policy.name, host);
    const nowMs = host.clock.nowMs();
    const known = host.mark(this.#key()) !== undefined;
    const gap = known ? this.#gap("agent_down", nowMs) : [];
    const toMs = known ? Math.max(nowMs, this.#through()) : nowMs;
    await host.emit([...open.emissions, ...gap], { marks: [...open.marks, this.#mark(toMs)], reserve: true, signal });
  }

  /** True when the clock was moved forward meanwhile. */
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

  /** The clock had been far ahead: what was marked then would hold the policy up until it comes again. */
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

  async #runDue(reason: "overrun" | "clock_jump", signal: AbortSignal): Promise<void> {
    const { host, policy, spec } = this.#work;
    const due = dueBetween(spec, this.#through(), host.clock.nowMs());
    if (!due) return;
    // The latest is run; those before it that did not run are counted.
    const missed = due.count > 1 ? this.#gap(reason, due.lastMs - 1) : [];
    const run = await Run.begin(
      { host, policy, spec, scheduledMs: due.lastMs, signal },
      { emissions: missed, marks: [this.#mark(due.lastMs)] },
    );
    const end = await carryOut(this.#work, run, { signal, timeoutMs: POLICY_RUN_MAX_MS });
    this.#problem = commandProblem(end);
    const nowMs = Math.max(host.clock.nowMs(), due.lastMs);
    await run.end(end, { emissions: this.#gap("overrun", nowMs), marks: [this.#mark(nowMs)] });
  }

  /** Due times after the mark through `toMs`, as one gap. */
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
