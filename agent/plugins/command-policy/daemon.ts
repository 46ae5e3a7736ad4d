import { POLICY_RESTART_MAX_MS, POLICY_RESTART_MIN_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runner } from "../../policies/plugin.ts";
import type { CommandWork } from "./work.ts";
import { carryOut } from "./output.ts";
import { placeOf } from "./place.ts";
import { interruptedRun, Run } from "./run.ts";

/**
 * Keeps a command running. While the outbox has no room, nothing is read from the command, so it blocks when its pipe
 * is full.
 */
export class DaemonRunner implements Runner {
  readonly #work: CommandWork;
  #problem: string | undefined;
  #pid: number | undefined;

  constructor(work: CommandWork) {
    this.#work = work;
  }

  /** How the command ended, while it waits to be started again. Undefined while it runs. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get pid(): number | undefined {
    return this.#pid;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { host, policy, spec } = this.#work;
    const open = interruptedRun(policy.name, host);
    if (open.emissions.length > 0) await host.emit(open.emissions, { marks: open.marks, reserve: true, signal });
    const place = await placeOf(this.#work, signal);
    const maxMs = spec.backoff === undefined ? POLICY_RESTART_MAX_MS : spec.backoff * 1_000;
    const onStart = (pid: number) => void (this.#pid = pid);
    let pauseMs = POLICY_RESTART_MIN_MS;
    while (!signal.aborted) {
      const startedMs = host.clock.monotonicMs();
      const run = await Run.begin({ host, policy, spec, scheduledMs: host.clock.nowMs(), signal });
      this.#problem = undefined;
      const { end } = await carryOut(this.#work, run, { signal, place, atOnce: true, onStart });
      this.#pid = undefined;
      this.#problem = end.message || "ended with code 0";
      await run.end(end);
      const lastedMs = host.clock.monotonicMs() - startedMs;
      pauseMs = lastedMs > POLICY_RESTART_MAX_MS ? POLICY_RESTART_MIN_MS : pauseMs;
      await wait(host.clock, pauseMs * (1 + host.random.next() / 2), signal);
      pauseMs = Math.min(maxMs, pauseMs * 2);
    }
  }
}
