import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { JOB_PARALLEL_HOSTS, JOB_RUNS_IN_FLIGHT_MAX } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import type { KvTxn } from "../../../store/kv.ts";
import { hostTurns } from "../queues/host-turns.ts";
import type { JobPlaces } from "../queues/places.ts";
import { namedQueue, queueOfSchedule } from "../queues/queues.ts";
import type { RunRights } from "../rights/rights.ts";
import type { Execution } from "../types.ts";
import type { RunCancels } from "./cancels.ts";
import type { ExecutionCoordinator } from "./coordinator.ts";
import type { VersionedExecution } from "./executions.ts";
import type { RunExecutor } from "./executor.ts";
import type { VersionedRun } from "./open-runs.ts";
import { isWhole, roomOf, type Run } from "./plan.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly executor: RunExecutor;
  readonly coordinator: ExecutionCoordinator;
  readonly places: JobPlaces;
  readonly rights: RunRights;
  readonly cancels: RunCancels;
  /** Maximum number of hosts of all executions at the same time; `JOB_RUNS_IN_FLIGHT_MAX` when absent. */
  readonly runsInFlightMax?: number;
}

/** The transaction of a scheduled run, and its place in the order of runs. */
interface Scheduled {
  /** The transaction to write together with the run. */
  readonly ticket: KvTxn;
  /** True if the run must wait for the previous run of the schedule. */
  readonly waits: boolean;
}

const NOTHING: KvTxn = { if: [], then: [] };

/**
 * Starts planned executions. Some get an entry of their own, see `OpenExecution`. For the others, the entries of their
 * hosts are enough.
 */
export class ExecutionStarter {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Reserves room for all runs that do not wait in a queue. `AppError("limited")` if there is not enough for all. */
  enter(runs: readonly Run[]): void {
    const { executor, runsInFlightMax = JOB_RUNS_IN_FLIGHT_MAX } = this.#with;
    const begun = runs.filter(({ queue }) => queue === "");
    if (executor.enter(begun.reduce((room, { order }) => room + roomOf(order), 0))) return;
    throw new AppError("limited", `At most ${runsInFlightMax} job runs can be under way at once; try again later.`);
  }

  /**
   * Resolves when the execution is stored and begun. Call `enter` before; the reserved room is released at the end of
   * the run.
   */
  async begin(run: Run): Promise<Execution> {
    const execution = await this.#beginNow(run);
    this.#keepCancel(run, execution);
    return execution;
  }

  /**
   * Begins a scheduled run in one transaction with its ticket. False: a condition of the ticket does not hold, and
   * nothing was begun.
   */
  async fire(run: Run, { ticket, waits }: Scheduled): Promise<boolean> {
    const { executor, coordinator } = this.#with;
    const queueKey = run.queue === "" && waits ? queueOfSchedule(run.order.name) : queueKeyOf(run);
    if (queueKey === "" && isOneHost(run) && executor.enter(1)) return executor.fire(run, ticket);
    const held = await this.#beginWhole(run, queueKey, ticket);
    if (held) coordinator.carry(held).catch(() => undefined);
    return held !== undefined;
  }

  async #beginNow(run: Run): Promise<Execution> {
    if (run.queue !== "") return this.#beginHeld(run, false);
    const { executor } = this.#with;
    const room = roomOf(run.order);
    try {
      if (isWhole(run)) return await this.#beginHeld(run, true);
      const open = await this.#open(run);
      return { runId: run.id, finished: this.#untilEnd(run, executor.start(run, open, room)) };
    } catch (error) {
      executor.leave(room);
      // Hosts that were already opened, or are still being opened, are ended by maintenance.
      throw error;
    }
  }

  async #beginHeld(run: Run, hasRoom: boolean): Promise<Execution> {
    const held = await this.#beginWhole(run, queueKeyOf(run), NOTHING);
    if (!held) throw new AppError("internal", `The job run ${run.id} was begun twice.`);
    return { runId: run.id, finished: this.#with.coordinator.carry(held, { watcher: run.watcher, hasRoom }) };
  }

  async #beginWhole(run: Run, queueKey: string, ticket: KvTxn): Promise<VersionedExecution | undefined> {
    const { coordinator, places } = this.#with;
    if (run.limit === 0) return coordinator.begin(run, queueKey, ticket);
    const { tenant } = run.order.principal;
    const held = await places.take<VersionedExecution | "used">(run, async ({ if: conditions, then }) => {
      const within = { if: [...conditions, ...ticket.if], then: [...then, ...ticket.then] };
      // If the ticket is outdated, stop here. Otherwise the queue slot would be retried again and again with the same
      // ticket.
      return (
        (await coordinator.begin(run, queueKey, within)) ?? ((await this.#holds(tenant, ticket)) ? undefined : "used")
      );
    });
    return held === "used" ? undefined : held;
  }

  async #holds(tenant: string, ticket: KvTxn): Promise<boolean> {
    const { kv } = await this.#with.stores.tenant(tenant);
    return (await kv.txn({ if: ticket.if, then: [] })).ok;
  }

  async #open(run: Run): Promise<readonly VersionedRun[]> {
    const { executor, places, runtime } = this.#with;
    const openFirst = (within: KvTxn): Promise<VersionedRun | undefined> => executor.openFirst(run, within);
    const first = run.limit === 0 ? await openFirst(NOTHING) : await places.take(run, openFirst);
    if (!first) throw new AppError("internal", `The job run ${run.id} was begun twice.`);
    const others = run.order.hosts.slice(1);
    const next = hostTurns(run.order.principal.tenant, runtime.clock);
    const opened = await mapLimited(others, JOB_PARALLEL_HOSTS, async (host) => {
      await next();
      return executor.openOther(run, host, first);
    });
    return [first, ...opened];
  }

  /** Stores a cancel of the caller, so that it still applies after another controller takes the run over. */
  #keepCancel({ id, order: { principal }, watcher }: Run, { finished }: Execution): void {
    const { cancels, runtime } = this.#with;
    const signal = watcher?.signal;
    if (!signal) return;
    const keep = (): void => {
      cancels
        .request(principal.tenant, { runId: id, by: principal.user })
        .catch((error: unknown) =>
          runtime.log.warn({ err: error, run: id }, "a cancelled job run is not cancelled for other controllers"),
        );
    };
    if (signal.aborted) return keep();
    signal.addEventListener("abort", keep, { once: true });
    const over = (): void => signal.removeEventListener("abort", keep);
    finished.then(over, over);
  }

  /**
   * Releases the place and the rights of the execution at its end. If `finished` rejects, for example because this
   * controller stops, they stay, because the run is unfinished.
   */
  #untilEnd<T>(run: Run, finished: Promise<T>): Promise<T> {
    const { limit, order } = run;
    if (limit === 0 && order.hosts.length === 1) return finished;
    const ended = finished.then(async (told) => {
      if (limit > 0) await this.#with.places.giveBack(run);
      if (order.hosts.length > 1) await this.#endRights(run);
      return told;
    });
    // The executor logs a failure. Some callers do not wait for the result, so its error must not be unhandled.
    ended.catch(() => undefined);
    return ended;
  }

  async #endRights({ id, order }: Run): Promise<void> {
    const { rights, runtime } = this.#with;
    try {
      await rights.end(order.principal.tenant, id);
    } catch (error) {
      runtime.log.info({ err: error, run: id }, "the rights of a job run are removed later");
    }
  }
}

/** True if the entry of the only host is enough to continue the whole execution. */
function isOneHost(run: Run): boolean {
  return run.limit === 0 && run.order.hosts.length === 1 && !isWhole(run);
}

function queueKeyOf({ queue }: Run): string {
  return queue === "" ? "" : namedQueue(queue);
}
