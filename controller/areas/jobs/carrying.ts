import { mapLimited } from "../../../common/concurrency.ts";
import { JOB_PARALLEL_HOSTS, JOB_RUNS_IN_FLIGHT_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { NewWork } from "../../store/journal/index.ts";
import type { KvTxn } from "../../store/kv.ts";
import { Appends } from "../../store/tail.ts";
import type { Notifications } from "../notifications/index.ts";
import { LetGo, type RunCommands } from "./commands.ts";
import type { PlacedRun, RunEndings } from "./endings.ts";
import { runNotice, type NotifiedState } from "./notices.ts";
import type { OpenRun, RunJournal, VersionedRun } from "./open-runs.ts";
import { RunOutput } from "./output.ts";
import { keyOf, nameOf, type JobOutputs } from "./outputs.ts";
import { inOrder, type Run } from "./plan.ts";
import type { HostRun } from "./types.ts";

export interface CarryingDependencies {
  readonly journal: RunJournal;
  readonly outputs: JobOutputs;
  readonly commands: RunCommands;
  readonly endings: RunEndings;
  readonly notifications: Pick<Notifications, "publish">;
  readonly runtime: Runtime;
}

/** Carries executions out: host after host or side by side, each from its entry in the journal to its decided end. */
export class RunCarrying {
  /** Told of output that is stored, and of runs that are over, by `keyOf` of the run. */
  readonly appends = new Appends();
  readonly #with: CarryingDependencies;
  #inFlight = 0;

  constructor(dependencies: CarryingDependencies) {
    this.#with = dependencies;
  }

  /** Takes room for so many hosts, until `leave` or the end of `start`; false: there is not as much. */
  enter(hosts: number): boolean {
    const isRoom = this.#inFlight + hosts <= JOB_RUNS_IN_FLIGHT_MAX;
    if (isRoom) this.#inFlight += hosts;
    return isRoom;
  }

  leave(hosts: number): void {
    this.#inFlight -= hosts;
  }

  /** Entry first, so that a run never has a row that no controller would end. */
  async open(run: Run, host: string): Promise<VersionedRun> {
    const held = await this.#with.journal.begin(workOf(run, host));
    await this.#with.endings.begin(held.open);
    return held;
  }

  /** As `open`, in one transaction with `within`; `undefined`: a condition of it does not hold, nothing was opened. */
  async openWithin(run: Run, host: string, within: KvTxn): Promise<VersionedRun | undefined> {
    const held = await this.#with.journal.beginWithin(workOf(run, host), within);
    if (held) await this.#with.endings.begin(held.open);
    return held;
  }

  /** Goes on whether or not it is awaited; `entered` is left with its end. */
  start(run: Run, held: readonly VersionedRun[], entered = 0): Promise<readonly HostRun[]> {
    const ids = held.map(({ open }) => open.id);
    const carried = this.#with.journal.underWay
      .carry(ids, () => this.#all(run, inOrder(run, held)))
      .finally(() => this.leave(entered));
    carried.catch((error: unknown) => this.#tellBreak(run, error));
    return carried;
  }

  /** What comes of the run's host, to be stored. */
  output(open: Pick<OpenRun, "runId" | "host" | "attempt" | "order">): RunOutput {
    return new RunOutput(async (offset, bytes) => {
      await this.#with.outputs.append(open.order.principal.tenant, open, { offset, bytes });
      this.appends.tell(keyOf(open));
    });
  }

  async #all(run: Run, held: readonly VersionedRun[]): Promise<readonly HostRun[]> {
    const lanes = run.order.groupmode === "sequence" ? 1 : JOB_PARALLEL_HOSTS;
    return mapLimited(held, lanes, (each) => this.#host(run, each));
  }

  async #host(run: Run, held: VersionedRun): Promise<HostRun> {
    try {
      return await this.#with.journal.underWay.carry([held.open.id], () => this.#toItsEnd(run, held));
    } finally {
      this.appends.tell(keyOf(held.open));
    }
  }

  async #toItsEnd(run: Run, held: VersionedRun): Promise<HostRun> {
    const { open } = held;
    if (open.attempt === 0) this.publish(open, { status: "running" });
    const output = this.output(open);
    const outcome = await this.#with.commands.run(run, open, output).finally(() => output.finish());
    const end = await this.#with.endings.finish(held, { outcome, output });
    if (end.mine) this.publish(open, { status: end.state, code: end.code, message: end.message });
    return {
      host: open.host,
      state: end.state,
      message: end.message,
      output: output.text,
      ...(end.code === undefined ? {} : { code: end.code }),
    };
  }

  publish(open: PlacedRun, state: NotifiedState): void {
    const { notifications, runtime } = this.#with;
    notifications.publish(open.order.principal.tenant, runNotice(open, state, runtime.clock.nowMs()));
  }

  #tellBreak(run: Run, error: unknown): void {
    const { log } = this.#with.runtime;
    if (error instanceof LetGo) log.info({ run: run.id }, "a job execution was let go of, to be taken over");
    else log.error({ err: error, run: run.id }, "a job execution broke off");
  }
}

export function workOf({ id: runId, order, startedMs, deadlineMs }: Run, host: string): NewWork<OpenRun> {
  return { id: nameOf({ runId, host }), runId, host, order, startedMs, deadlineMs };
}
