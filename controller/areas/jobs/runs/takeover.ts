import { JOB_LOST_AFTER_MS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Controllers } from "../../../store/journal/index.ts";
import type { RunExecutor } from "./executor.ts";
import type { RunCommands } from "./commands.ts";
import type { RunEndings } from "./endings.ts";
import type { OpenRun, RunJournal, VersionedRun } from "./open-runs.ts";
import { resumedRun } from "./plan.ts";
import { triesOf } from "./retries.ts";
import type { RunRights } from "../rights/rights.ts";

export interface TakeoverDependencies {
  readonly journal: RunJournal;
  readonly executor: RunExecutor;
  readonly commands: RunCommands;
  readonly endings: RunEndings;
  readonly rights: RunRights;
  readonly controllers: Controllers;
  readonly runtime: Runtime;
}

/** Continues runs on hosts that no controller carries out any more. */
export class RunTakeover {
  readonly #with: TakeoverDependencies;

  constructor(dependencies: TakeoverDependencies) {
    this.#with = dependencies;
  }

  /** Checks all open runs once. A failure in one execution does not stop the others. */
  async attend(tenant: string): Promise<void> {
    const { journal, runtime } = this.#with;
    const executions = new Map<string, VersionedRun[]>();
    for await (const run of journal.all(tenant)) {
      if (journal.inFlight.has(run.open.id)) continue;
      executions.set(run.open.runId, [...(executions.get(run.open.runId) ?? []), run]);
    }
    for (const [runId, runs] of executions) {
      await this.#execution(runs).catch((error: unknown) =>
        runtime.log.error({ err: error, run: runId }, "a job run could not be attended to"),
      );
    }
  }

  async #execution(runs: readonly VersionedRun[]): Promise<void> {
    const nowMs = this.#with.runtime.clock.nowMs();
    const orphans: VersionedRun[] = [];
    for (const run of runs) {
      const { end, deadlineMs } = run.open;
      if (end) await this.#with.endings.settle(run.open);
      else if (deadlineMs + JOB_LOST_AFTER_MS <= nowMs) await this.#endLate(run);
      else if (deadlineMs > nowMs && this.#isOrphan(run.open)) orphans.push(run);
    }
    if (orphans.length > 0) await this.#takeOver(orphans);
  }

  /**
   * True if this controller must continue the run. A run that this controller began and does not carry out has failed
   * for its caller, so it must not be executed later. This does not apply to scheduled runs and to runs that were taken
   * over.
   */
  #isOrphan(open: OpenRun): boolean {
    const { journal, controllers } = this.#with;
    const hasNoCaller = open.owner !== controllers.own || open.attempt > 0 || open.order.dueMs !== undefined;
    return journal.isAbandoned(open) && hasNoCaller;
  }

  async #takeOver(orphans: readonly VersionedRun[]): Promise<void> {
    const { executor, runtime } = this.#with;
    const [first] = orphans;
    const principal = first && (await this.#with.rights.of(first.open));
    // Without its rights the run is not continued. After its deadline it ends with the outcome that its agent reported,
    // or as `expired`.
    if (!principal)
      return runtime.log.warn({ run: first?.open.runId }, "the rights of a job run are not there any more");
    if (!executor.enter(orphans.length)) return;
    const taken: VersionedRun[] = [];
    for (const orphan of orphans) {
      const mine = await this.#take(orphan);
      if (mine) taken.push(mine);
    }
    executor.leave(orphans.length - taken.length);
    const run = resumedRun(
      taken.map(({ open }) => open),
      principal,
      runtime.clock,
    );
    if (run) void executor.start(run, taken, taken.length);
  }

  /** Takes the run over. If this fails now, it is tried again next time; the other runs continue. */
  async #take(orphan: VersionedRun): Promise<VersionedRun | undefined> {
    try {
      return await this.#with.journal.take(orphan);
    } catch (error) {
      const { runId: run, host } = orphan.open;
      this.#with.runtime.log.warn({ err: error, run, host }, "a job run could not be taken over yet");
      return undefined;
    }
  }

  /**
   * Ends a run that is past its deadline. If the agent reported an outcome to any controller, that outcome is the end.
   * Otherwise the run ends as `expired`.
   */
  async #endLate(run: VersionedRun): Promise<void> {
    const { journal } = this.#with;
    const mine = await journal.take(run);
    if (mine) await journal.inFlight.carry([mine.open.id], () => this.#endTaken(mine));
  }

  async #endTaken(mine: VersionedRun): Promise<void> {
    const { executor, commands, endings, runtime } = this.#with;
    await executor.withOutputBefore(mine.open);
    const output = executor.output(mine.open);
    const result = await commands.stored(mine.open, output);
    const endedMs = runtime.clock.nowMs();
    const message = "The controller that ran it went away before it ended.";
    const tries = triesOf(mine.open) + (result ? 1 : 0);
    await output.finish();
    await endings.end(mine, endings.endOf(output, { ...(result ?? { state: "expired", message, endedMs }), tries }));
  }
}
