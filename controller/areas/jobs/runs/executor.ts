import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { JOB_PARALLEL_HOSTS, JOB_RUNS_IN_FLIGHT_MAX } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import { memberOf } from "../../../../common/members.ts";
import type { Runtime } from "../../../runtime.ts";
import type { NewWork } from "../../../store/journal/index.ts";
import type { KvTxn } from "../../../store/kv.ts";
import { AppendNotifier } from "../../../store/tail.ts";
import type { CommandOutcome } from "../../hosts/index.ts";
import type { Notifications } from "../../notifications/index.ts";
import type { CancelSignals, RunCancels } from "./cancels.ts";
import { ReleasedError, type RunCommands } from "./commands.ts";
import { exitOf, type PlacedRun, type RunEndings } from "./endings.ts";
import { hostTurns, type HostTurns } from "../queues/host-turns.ts";
import { runNotice, type NotifiedState } from "../history/notices.ts";
import type { OpenRun, RunJournal, VersionedRun } from "./open-runs.ts";
import { RunOutput } from "../output/output.ts";
import { keyOf, nameOf, type JobOutputs } from "../output/outputs.ts";
import { inOrder, type Run } from "./plan.ts";
import { anotherTry, triesOf, tryOf } from "./retries.ts";
import { rightsKey, rightsNote } from "../rights/rights.ts";
import type { HostRun } from "../types.ts";

export interface CarryingDependencies {
  readonly journal: RunJournal;
  readonly outputs: JobOutputs;
  readonly commands: RunCommands;
  readonly endings: RunEndings;
  readonly notifications: Pick<Notifications, "publish">;
  readonly cancels: RunCancels;
  readonly runtime: Runtime;
  /** `JOB_RUNS_IN_FLIGHT_MAX` when absent. */
  readonly runsInFlightMax?: number;
}

/**
 * Carries out executions on their hosts, one after the other or in parallel. Each host goes from its journal entry to
 * its decided end.
 */
export class RunExecutor {
  /** Announces stored output and ended runs, by `keyOf` of the run. */
  readonly appends = new AppendNotifier();
  readonly #with: CarryingDependencies;
  #inFlight = 0;

  constructor(dependencies: CarryingDependencies) {
    this.#with = dependencies;
  }

  /** Reserves room for `hosts` hosts, until `leave` or the end of `start`. False: there is not enough room. */
  enter(hosts: number): boolean {
    const isRoom = this.#inFlight + hosts <= (this.#with.runsInFlightMax ?? JOB_RUNS_IN_FLIGHT_MAX);
    if (isRoom) this.#inFlight += hosts;
    return isRoom;
  }

  leave(hosts: number): void {
    this.#inFlight -= hosts;
  }

  /**
   * Opens the first host, and stores the rights of the run, in one transaction with `within`. `undefined`: a condition
   * of `within` does not hold, and nothing was opened. The entry is written before the row. So each row has an entry by
   * which a controller can end the run.
   */
  openFirst(run: Run, within: KvTxn): Promise<VersionedRun | undefined> {
    const [host = ""] = run.order.hosts;
    if (run.order.hosts.length === 1) return this.#open(onlyWorkOf(run), within);
    return this.#open(workOf(run, host), { ...within, then: [...within.then, rightsNote(run)] });
  }

  /**
   * Begins a scheduled run on its only host, in one transaction with `within`. The room reserved for it is released at
   * its end. False: a condition of `within` does not hold, and nothing was begun.
   */
  async fire(run: Run, within: KvTxn): Promise<boolean> {
    const { inFlight } = this.#with.journal;
    const work = onlyWorkOf(run);
    let begun: VersionedRun | undefined;
    // Without this, maintenance could find the entry before its work runs here, and take it over.
    inFlight.hold(work.id);
    try {
      begun = await this.#with.journal.beginWithin(work, within);
    } finally {
      if (!begun) {
        inFlight.letGo(work.id);
        this.leave(1);
      }
    }
    if (!begun) return false;
    const held = begun;
    void inFlight.carry([work.id], () => this.#fired(run, held));
    return true;
  }

  async #fired(run: Run, held: VersionedRun): Promise<void> {
    try {
      await this.#with.endings.beginScheduled(held.open);
    } catch (error) {
      this.leave(1);
      return this.#tellBreak(run, error);
    }
    // `start` logs its own failures.
    await this.start(run, [held], 1).catch(() => undefined);
  }

  /**
   * Opens another host. `AppError("unavailable")` if the run has already ended on all opened hosts, which removes its
   * rights.
   */
  async openOther(run: Run, host: string, first: VersionedRun): Promise<VersionedRun> {
    const held = await this.#open(workOf(run, host), {
      if: [{ key: rightsKey(run.id), revision: first.revision }],
      then: [],
    });
    if (!held)
      throw new AppError("unavailable", `The job run ${run.id} was ended before all of its hosts were opened.`);
    return held;
  }

  async #open(work: NewWork<OpenRun>, within: KvTxn): Promise<VersionedRun | undefined> {
    const held = await this.#with.journal.beginWithin(work, within);
    if (held) await this.#with.endings.begin(held.open);
    return held;
  }

  /**
   * Carries out the run on the opened hosts. The work continues even if its promise is not awaited. Room for `entered`
   * hosts is released at the end.
   */
  start(run: Run, held: readonly VersionedRun[], entered = 0): Promise<readonly HostRun[]> {
    const ids = held.map(({ open }) => open.id);
    const cancels = this.#with.cancels.enter(run.order.principal.tenant, run.id);
    const carried = this.#with.journal.inFlight
      .carry(ids, () => this.#all(run, inOrder(held), cancels))
      .finally(() => {
        cancels.leave();
        this.leave(entered);
      });
    carried.catch((error: unknown) => this.#tellBreak(run, error));
    return carried;
  }

  /** An object that collects the output of the run on one host and stores it. */
  output(open: Pick<OpenRun, "runId" | "host" | "attempt" | "order" | "tries">): RunOutput {
    return new RunOutput(async (offset, bytes) => {
      await this.#with.outputs.append(open.order.principal.tenant, open, { offset, bytes });
      this.appends.tell(keyOf(open));
    }, open.tries);
  }

  /** If a controller before this one made earlier tries, copies their output to the start of this attempt's output. */
  async withOutputBefore(open: OpenRun): Promise<void> {
    const { tries, order } = open;
    if (!tries || tries.attempt === open.attempt) return;
    await this.#with.outputs.copy(order.principal.tenant, open, { attempt: tries.attempt, size: tries.kept });
  }

  async #all(run: Run, held: readonly VersionedRun[], cancels: CancelSignals): Promise<readonly HostRun[]> {
    const lanes = run.order.groupmode === "sequence" ? 1 : JOB_PARALLEL_HOSTS;
    const turns = (): HostTurns => hostTurns(run.order.principal.tenant, this.#with.runtime.clock);
    const [begins, ends] = [turns(), turns()];
    return mapLimited(held, lanes, async (each) => {
      await begins();
      return this.#host(withSignal(run, cancels.of(each.open.host)), each, ends);
    });
  }

  async #host(run: Run, held: VersionedRun, ends: HostTurns): Promise<HostRun> {
    try {
      return await this.#with.journal.inFlight.carry([held.open.id], () => this.#toItsEnd(run, held, ends));
    } finally {
      this.appends.tell(keyOf(held.open));
    }
  }

  async #toItsEnd(run: Run, held: VersionedRun, ends: HostTurns): Promise<HostRun> {
    const { open } = held;
    if (open.attempt === 0) this.publish(open, { status: "running" });
    await this.withOutputBefore(open);
    let [now, ended] = [held, await this.#try(run, open)];
    for (;;) {
      const tries = anotherTry(now.open, { ...ended, nowMs: this.#with.runtime.clock.nowMs() });
      if (!tries) break;
      const next = await this.#with.endings.nextTry(now, tries);
      // Another controller continues the run; `#end` answers the end that it decides.
      if (!next) break;
      [now, ended] = [next, await this.#try(run, next.open)];
    }
    await ends();
    return this.#end(now, ended, ends);
  }

  async #try(run: Run, open: OpenRun): Promise<Tried> {
    const { clock } = this.#with.runtime;
    const output = this.output(open);
    if (!(await this.#dueTry(run, open))) {
      const atMs = clock.nowMs();
      const outcome = {
        host: open.host,
        state: "cancelled",
        message: CANCELLED,
        startedMs: atMs,
        endedMs: atMs,
      } as const;
      return { outcome: byWhom(outcome, run), output, tries: triesOf(open) };
    }
    try {
      const outcome = await this.#with.commands.run(tryOf(run, clock), open, output);
      return { outcome: byWhom(outcome, run), output, tries: triesOf(open) + 1 };
    } finally {
      await output.finish();
    }
  }

  /** Waits until the next try is due. False: the run was cancelled first. `ReleasedError` if this controller stops. */
  async #dueTry(run: Run, { tries }: OpenRun): Promise<boolean> {
    if (!tries) return true;
    const { clock } = this.#with.runtime;
    const { stopping } = this.#with.journal.inFlight;
    const cancelled = run.watcher?.signal;
    await wait(clock, Math.max(0, tries.dueMs - clock.nowMs()), stopping, cancelled);
    if (stopping.aborted) throw new ReleasedError(run.id);
    return cancelled?.aborted !== true;
  }

  async #end(held: VersionedRun, ended: Tried, turn: HostTurns): Promise<HostRun> {
    const { host } = held.open;
    const end = await this.#with.endings.finish(held, { ...ended, turn });
    await turn();
    const { state, message, tries = 1 } = end;
    const exit = exitOf(end);
    if (end.mine) this.publish(held.open, { status: state, message, ...exit });
    return {
      host,
      state,
      message,
      output: ended.output.text,
      ...exit,
      ...(tries > 1 && { tries }),
    };
  }

  publish(open: PlacedRun, state: NotifiedState): void {
    const { notifications, runtime } = this.#with;
    notifications.publish(open.order.principal.tenant, runNotice(open, state, runtime.clock.nowMs()));
  }

  #tellBreak(run: Run, error: unknown): void {
    const { log } = this.#with.runtime;
    if (error instanceof ReleasedError) log.info({ run: run.id }, "a job execution was let go of, to be taken over");
    else log.error({ err: error, run: run.id }, "a job execution broke off");
  }
}

/** Result of one try. */
interface Tried {
  readonly outcome: CommandOutcome;
  readonly output: RunOutput;
  /** Number of tries. Includes this one, unless it was cancelled before its start. */
  readonly tries: number;
}

const CANCELLED = "The run was cancelled before it was tried again.";

/** The run, which the given signal also cancels. */
export function withSignal(run: Run, signal: AbortSignal): Run {
  const { watcher } = run;
  return {
    ...run,
    watcher: { ...watcher, signal: watcher?.signal ? AbortSignal.any([watcher.signal, signal]) : signal },
  };
}

function byWhom(outcome: CommandOutcome, { watcher }: Run): CommandOutcome {
  const by: unknown = watcher?.signal?.reason;
  if (outcome.state !== "cancelled" || typeof by !== "string") return outcome;
  return { ...outcome, message: `${outcome.message} (cancelled by ${by})`.trim() };
}

/** Like `workOf`, for a run on one host: its entry also stores the rights of the run. */
function onlyWorkOf(run: Run): NewWork<OpenRun> {
  const work = workOf(run, run.order.hosts[0] ?? "");
  return { ...work, order: { ...work.order, principal: run.order.principal } };
}

/** The data that the entry of one host stores. It does not contain the rights of the run. */
export function workOf({ id: runId, order, startedMs, deadlineMs }: Run, host: string): NewWork<OpenRun> {
  const { hosts, behind, principal, ...rest } = order;
  const group = behind && memberOf(behind, host);
  const { tenant, ospace, user, traceparent } = principal;
  const kept = { ...rest, principal: { tenant, ospace, user, traceparent } };
  return {
    ...{ id: nameOf({ runId, host }), runId, host, place: hosts.indexOf(host) },
    ...(group !== undefined && { group }),
    ...{ order: kept, startedMs, deadlineMs },
  };
}
