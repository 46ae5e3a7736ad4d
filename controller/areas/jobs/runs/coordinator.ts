import { AppError } from "../../../../common/errors.ts";
import {
  JOB_FOLLOW_POLL_MS,
  JOB_LOST_AFTER_MS,
  JOB_QUEUE_WAIT_MAX_MS,
  JOB_SCRIPT_MESSAGE_MAX_CHARACTERS,
} from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import { wait } from "../../../../common/time.ts";
import type { Value } from "../../../../common/value.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Controllers } from "../../../store/journal/index.ts";
import type { KvTxn } from "../../../store/kv.ts";
import type { RunCancels } from "./cancels.ts";
import type { RunExecutor } from "./executor.ts";
import { ReleasedError, LeaseLostError } from "./commands.ts";
import type { RunEndings } from "./endings.ts";
import type { ExecutionEnds } from "./execution-ends.ts";
import { hasOpen, type ExecutionJournal, type OpenExecution, type VersionedExecution } from "./executions.ts";
import { hasOpenHosts, type RunJournal } from "./open-runs.ts";
import { HostOpening } from "./opening.ts";
import type { JobPlaces } from "../queues/places.ts";
import { roomOf, type Run } from "./plan.ts";
import { JobQueues } from "../queues/queues.ts";
import type { ExecutionScripts } from "./scripts.ts";
import type { HostRun } from "../types.ts";

export interface WholeDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly controllers: Controllers;
  readonly executions: ExecutionJournal;
  readonly journal: RunJournal;
  readonly executor: RunExecutor;
  readonly endings: RunEndings;
  readonly places: JobPlaces;
  readonly scripts: ExecutionScripts;
  readonly ends: ExecutionEnds;
  readonly cancels: RunCancels;
}

const NOTHING: KvTxn = { if: [], then: [] };

interface Carried {
  readonly watcher?: Run["watcher"] | undefined;
  readonly hasRoom?: boolean;
}

/** The current entry, and the ends of hosts and scripts that callers get. */
interface Worked {
  readonly told: readonly HostRun[];
  readonly now: VersionedExecution;
}

/**
 * Carries out executions that have an entry of their own. Each waits for its turn in its queue, then opens its hosts.
 * It ends when its last host has ended.
 */
export class ExecutionCoordinator {
  readonly #with: WholeDependencies;
  readonly #queues: JobQueues;
  readonly #opening: HostOpening;

  constructor(dependencies: WholeDependencies) {
    this.#with = dependencies;
    this.#queues = new JobQueues({ stores: dependencies.stores, clock: dependencies.runtime.clock });
    this.#opening = new HostOpening(dependencies);
  }

  /**
   * Stores the execution at the end of its queue, in one transaction with `within`. `undefined`: a condition of
   * `within` does not hold, and nothing was written.
   */
  begin(run: Run, queueKey: string, within: KvTxn = NOTHING): Promise<VersionedExecution | undefined> {
    const { id, order, limit, scripts, startedMs: askedMs } = run;
    const { tenant } = order.principal;
    const timeoutMs = run.deadlineMs - askedMs;
    const work = { id, order, limit, queueKey, askedMs, timeoutMs, opened: 0, ...(scripts && { scripts }) };
    const write = (beside: KvTxn): Promise<VersionedExecution | undefined> =>
      this.#with.executions.beginWithin(work, {
        if: [...within.if, ...beside.if],
        then: [...within.then, ...beside.then],
      });
    return queueKey === "" ? write(NOTHING) : this.#queues.enter({ tenant, key: queueKey, runId: id }, write);
  }

  /**
   * Carries out an execution. The work continues even if its promise is not awaited. `hasRoom`: room was reserved by
   * `enter` of the executor; it is released at the end.
   */
  carry(held: VersionedExecution, { watcher, hasRoom = false }: Carried = {}): Promise<readonly HostRun[]> {
    const { executions, runtime } = this.#with;
    const cancels = this.#with.cancels.enter(held.open.order.principal.tenant, held.open.id);
    const signal = watcher?.signal ? AbortSignal.any([watcher.signal, cancels.run]) : cancels.run;
    const carried = executions.inFlight
      .carry([held.open.id], () => this.#all(held, { watcher: { ...watcher, signal }, hasRoom }))
      .finally(() => cancels.leave());
    carried.catch((error: unknown) => {
      const run = held.open.id;
      if (error instanceof ReleasedError || error instanceof LeaseLostError) runtime.log.info({ run }, error.message);
      else runtime.log.error({ err: error, run }, "a job execution broke off, to be gone on with");
    });
    if (!watcher) return carried;
    const told = carried.catch((error: unknown) => {
      if (error instanceof LeaseLostError) return this.#with.ends.follow(this.#runOf(held.open, watcher));
      throw error;
    });
    // Some callers do not wait for `told`, so its error must not be unhandled.
    told.catch(() => undefined);
    return told;
  }

  /** Continues executions whose controller is gone. Several controllers may call it at once. */
  async attend(tenant: string): Promise<void> {
    const { executions, controllers } = this.#with;
    for await (const found of executions.abandoned(tenant)) {
      const { owner, attempt, order, opened } = found.open;
      // The call that began this execution got an error, so the execution must not run later.
      const failed = owner === controllers.own && attempt === 0 && order.dueMs === undefined;
      if (failed && opened === 0 && !found.open.scripts) await this.#end(found.open);
      else {
        const mine = await executions.take(found);
        const goesOn = mine && failed && opened === 0 ? await this.#givenUp(mine) : mine;
        if (goesOn) void this.carry(goesOn).catch(() => undefined);
      }
    }
  }

  /** Marks the execution as given up: only its last script runs, to undo the work of the first one. */
  async #givenUp(mine: VersionedExecution): Promise<VersionedExecution | undefined> {
    const { executions } = this.#with;
    try {
      const noted = await executions.step(mine, { isGivenUp: true });
      if (!noted) executions.inFlight.letGo(mine.open.id);
      return noted;
    } catch (error) {
      executions.inFlight.letGo(mine.open.id);
      throw error;
    }
  }

  async #all(held: VersionedExecution, { watcher, hasRoom }: Carried): Promise<readonly HostRun[]> {
    const { open } = held;
    const cancelled = watcher?.signal;
    if (!(await this.#turn(open, cancelled))) return this.#leaveQueue(open, cancelled);
    const { executor, ends, scripts } = this.#with;
    const room = roomOf(open.order);
    if (!hasRoom) await this.#enter(open.id, room);
    try {
      const { told, now } = await this.#work(this.#runOf(open, watcher), held);
      const run = this.#runOf(now.open, watcher);
      const end = await scripts.run(run, now, "end", statusOf(await ends.all(run, now.open.opened, told)));
      await this.#end(open);
      return end && end.told.state !== "ok" ? [...told, end.told] : told;
    } finally {
      executor.leave(room);
    }
  }

  /** Runs everything except the script `end`. */
  async #work(run: Run, held: VersionedExecution): Promise<Worked> {
    if (held.open.isGivenUp) return { told: [], now: held };
    const { scripts } = this.#with;
    const begin = await scripts.run(run, held, "begin");
    if (begin && begin.told.state !== "ok") return { told: [begin.told], now: begin.held };
    const now = begin?.held ?? held;
    const script = await scripts.run(run, now, "serverjs");
    if (script) return { told: [script.told], now: script.held };
    return run.order.groupmode === "one" ? this.#firstReachable(run, now) : this.#allHosts(run, now);
  }

  /** Waits for the turn in the queue. False: the turn did not come in time, or the run was cancelled first. */
  async #turn(
    { id, order, queueKey, askedMs, startedMs }: OpenExecution,
    cancelled: AbortSignal | undefined,
  ): Promise<boolean> {
    if (queueKey === "" || startedMs !== undefined) return true;
    const { tenant } = order.principal;
    const { stopping } = this.#with.executions.inFlight;
    const signal = cancelled ? AbortSignal.any([stopping, cancelled]) : stopping;
    const came = await this.#queues.turn(
      { tenant, key: queueKey, runId: id },
      {
        signal,
        untilMs: askedMs + JOB_QUEUE_WAIT_MAX_MS,
        goesOn: (runId) => hasOpen(this.#with.stores, tenant, runId),
      },
    );
    if (!came && stopping.aborted) throw new ReleasedError(id);
    return came;
  }

  async #leaveQueue(open: OpenExecution, cancelled: AbortSignal | undefined): Promise<readonly HostRun[]> {
    const by: unknown = cancelled?.reason;
    const state = cancelled?.aborted ? "cancelled" : "expired";
    const message = cancelled?.aborted
      ? `It was cancelled while it waited in its queue${typeof by === "string" ? ` (cancelled by ${by})` : ""}.`
      : "Its turn in the queue did not come.";
    await this.#with.endings.note(open.order, { runId: open.id, status: state, message });
    await this.#end(open);
    return open.order.hosts.map((host) => ({ host, state, message, output: "" }));
  }

  async #enter(runId: string, room: number): Promise<void> {
    const { executor, executions, runtime } = this.#with;
    const { stopping } = executions.inFlight;
    while (!executor.enter(room)) {
      await wait(runtime.clock, JOB_FOLLOW_POLL_MS, stopping);
      if (stopping.aborted) throw new ReleasedError(runId);
    }
  }

  #runOf({ id, order, limit, timeoutMs, startedMs }: OpenExecution, watcher: Run["watcher"]): Run {
    const { clock } = this.#with.runtime;
    const nowMs = clock.nowMs();
    const beganMs = startedMs ?? nowMs;
    const deadlineMs = beganMs + timeoutMs;
    const deadlineMonotonicMs = clock.monotonicMs() + deadlineMs - nowMs;
    const run = { id, order, limit, queue: "", startedMs: beganMs, deadlineMs, deadlineMonotonicMs };
    return watcher ? { ...run, watcher } : run;
  }

  async #allHosts(run: Run, held: VersionedExecution): Promise<Worked> {
    const { opened, now } = await this.#opening.open(run, held, run.order.hosts.length);
    const told = opened.length === 0 ? [] : await this.#with.executor.start(run, opened);
    await this.#othersEnded(run);
    return { told, now };
  }

  /**
   * Tries one host after the other until one is reachable. Begins with the host that an earlier controller opened, if
   * any.
   */
  async #firstReachable(run: Run, held: VersionedExecution): Promise<Worked> {
    const { executor, ends } = this.#with;
    const { hosts } = run.order;
    const told: HostRun[] = [];
    let now = held;
    if (now.open.opened > 0) {
      await this.#othersEnded(run);
      const host = hosts[now.open.opened - 1] ?? "";
      told.push(await ends.recorded(run, host));
    }
    while (now.open.opened < hosts.length && told.every(({ state }) => state === "unreachable")) {
      const next = await this.#opening.open(run, now, now.open.opened + 1);
      now = next.now;
      told.push(...(await executor.start(run, next.opened)));
    }
    return { told, now };
  }

  /** Waits until the hosts that an earlier controller opened have ended. `RunTakeover` continues these hosts. */
  async #othersEnded({ id, order, deadlineMs }: Run): Promise<void> {
    const { stores, runtime, executions } = this.#with;
    const { stopping } = executions.inFlight;
    while (await hasOpenHosts(stores, order.principal.tenant, id)) {
      if (runtime.clock.nowMs() > deadlineMs + 3 * JOB_LOST_AFTER_MS)
        throw new AppError("deadline", `Hosts of the job run ${id} have not ended by its deadline.`);
      await wait(runtime.clock, JOB_FOLLOW_POLL_MS, stopping);
      if (stopping.aborted) throw new ReleasedError(id);
    }
  }

  /**
   * Ends the execution. Removes the entry last: if this controller stops before, another one finds the entry and
   * repeats the steps.
   */
  async #end(open: OpenExecution): Promise<void> {
    const { id, order, queueKey, limit } = open;
    const { tenant } = order.principal;
    if (limit > 0) await this.#with.places.giveBack({ id, order });
    if (queueKey !== "") await this.#queues.leave({ tenant, key: queueKey, runId: id });
    await this.#with.executions.end(open);
  }
}

/**
 * Input of the script `end`: the state of each host or script, and as `status` the first one that is not `ok`. `status`
 * is `failed` if there is none at all.
 */
function statusOf(ends: readonly HostRun[]): { readonly status: string; readonly runs: Value } {
  const status = ends.find(({ state }) => state !== "ok")?.state ?? (ends.length === 0 ? "failed" : "ok");
  const runs = ends.map(({ host, state, code = null, signal = null, message }) => {
    return { host, state, code, signal, message: beginningOf(message, JOB_SCRIPT_MESSAGE_MAX_CHARACTERS) };
  });
  return { status, runs };
}
