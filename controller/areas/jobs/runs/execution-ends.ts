import { mapLimited } from "../../../../common/concurrency.ts";
import { JOB_FOLLOW_POLL_MS, JOB_LOST_AFTER_MS, JOB_PARALLEL_HOSTS } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import { workOf } from "./executor.ts";
import { ReleasedError, LeaseLostError } from "./commands.ts";
import { exitOf, type RunEndings } from "./endings.ts";
import type { ExecutionJournal } from "./executions.ts";
import type { JobOutputs } from "../output/outputs.ts";
import type { Run } from "./plan.ts";
import { placeOf, STAGES, stageOf } from "../definitions/stages.ts";
import type { HostRun } from "../types.ts";

export interface EndsDependencies {
  readonly runtime: Runtime;
  readonly executions: ExecutionJournal;
  readonly endings: RunEndings;
  readonly outputs: JobOutputs;
}

/** The ends of an execution that other controllers decided. */
export class ExecutionEnds {
  readonly #with: EndsDependencies;

  constructor(dependencies: EndsDependencies) {
    this.#with = dependencies;
  }

  /** The ends of the scripts in `told`, and of the first `opened` hosts. All of them must have ended. */
  async all(run: Run, opened: number, told: readonly HostRun[]): Promise<readonly HostRun[]> {
    const known = new Map(told.map((end) => [end.host, end]));
    const ends = await mapLimited(
      run.order.hosts.slice(0, opened),
      JOB_PARALLEL_HOSTS,
      async (host) => known.get(host) ?? this.recorded(run, host),
    );
    return [...told.filter(({ host }) => stageOf(host) !== undefined), ...ends];
  }

  /**
   * Waits until another controller has ended the execution. Then answers the ends that a caller there gets, without
   * their outputs. `LeaseLostError` if it has not ended `4 * JOB_LOST_AFTER_MS` after the deadline, `ReleasedError` if
   * this controller stops.
   */
  async follow(run: Run): Promise<readonly HostRun[]> {
    const { executions, outputs, runtime } = this.#with;
    const { tenant } = run.order.principal;
    const untilMs = run.deadlineMs + 4 * JOB_LOST_AFTER_MS;
    while (await executions.find(tenant, run.id)) {
      if (runtime.clock.nowMs() >= untilMs) throw new LeaseLostError(run.id);
      await wait(runtime.clock, JOB_FOLLOW_POLL_MS, executions.inFlight.stopping);
      if (executions.inFlight.stopping.aborted) throw new ReleasedError(run.id);
    }
    const ran = (host: string): Promise<boolean> => outputs.knows(tenant, { runId: run.id, host });
    const ends: HostRun[] = [];
    for (const place of [...run.order.hosts, ...STAGES.map(placeOf)]) {
      if (!(await ran(place))) continue;
      const end = await this.recorded(run, place);
      if (end.state !== "ok" || !isBeside(place)) ends.push(end);
    }
    return ends;
  }

  async recorded(run: Run, host: string): Promise<HostRun> {
    const { state, message, tries = 1, ...exit } = await this.#with.endings.recorded(workOf(run, host));
    return { host, state, message, output: "", ...exitOf(exit), ...(tries > 1 && { tries }) };
  }
}

/** True for the scripts `begin` and `end`, which callers see only if they fail. */
function isBeside(place: string): boolean {
  const stage = stageOf(place);
  return stage === "begin" || stage === "end";
}
