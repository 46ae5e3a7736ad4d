import { errorText, isAppError } from "../../../../common/errors.ts";
import { ulidTimeMs } from "../../../../common/ids.ts";
import {
  JOB_FINISH_ATTEMPTS,
  JOB_FINISH_PAUSE_MS,
  JOB_FOLLOW_POLL_MS,
  JOB_LOST_AFTER_MS,
  JOB_MESSAGE_MAX_CHARACTERS,
} from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import { wait } from "../../../../common/time.ts";
import type { Row } from "../../../../common/value.ts";
import type { Runtime } from "../../../runtime.ts";
import type { CommandOutcome, FinalState } from "../../hosts/index.ts";
import type { Unrestricted } from "../../objects/index.ts";
import { systemPrincipal, type Principal } from "../../permissions/index.ts";
import { COMMAND_RUN_PATH, JOB_RUN_PATH } from "../classes.ts";
import { commandRows } from "../history/command-rows.ts";
import type { HostTurns } from "../queues/host-turns.ts";
import type { OpenRun, RunEnd, RunJournal, RunOrder, RunTries, VersionedRun } from "./open-runs.ts";
import type { RunOutput } from "../output/output.ts";
import { RunRows } from "../history/rows.ts";
import { stageOf } from "../definitions/stages.ts";

export interface EndingDependencies {
  readonly journal: RunJournal;
  readonly objects: Unrestricted<"insert" | "get">;
  readonly runtime: Runtime;
}

/** The data of a run on a host, or of a script, that its row needs. */
export type PlacedRun = Pick<OpenRun, "runId" | "host" | "order" | "startedMs" | "deadlineMs" | "tries">;

/** The decided end of a run. `mine` is true if this call decided it. */
export interface StandingEnd {
  readonly state: FinalState;
  readonly code?: number;
  readonly signal?: string;
  readonly message: string;
  readonly tries?: number;
  readonly mine: boolean;
}

/** A host whose command has ended. `turn` is present if many hosts of the run may end at the same time. */
interface Finished {
  readonly outcome: CommandOutcome;
  readonly output: RunOutput;
  readonly tries: number;
  readonly turn?: HostTurns;
}

type Ending = Omit<CommandOutcome, "host" | "startedMs"> & Pick<RunEnd, "tries">;

/**
 * Writes the rows of runs. The time of each write is stored with the run. So a late or repeated write, or one that
 * follows a newer write of another controller, changes nothing. The KvStore decides the end once, before any row shows
 * it.
 */
export class RunEndings {
  readonly #journal: RunJournal;
  readonly #objects: EndingDependencies["objects"];
  readonly #runtime: Runtime;
  readonly #rows: RunRows;

  constructor({ journal, objects, runtime }: EndingDependencies) {
    this.#journal = journal;
    this.#objects = objects;
    this.#runtime = runtime;
    this.#rows = new RunRows(objects);
  }

  /** Sets the state in the row to `running`, unless the row already has an end. */
  async begin(open: PlacedRun): Promise<void> {
    await this.#objects.unrestricted.insert(platformOf(open), pathOf(open), [startRow(open)], { atMs: open.startedMs });
  }

  /** Like `begin`, for a scheduled run: its row is written together with those of other runs that begin now. */
  beginScheduled(open: PlacedRun): Promise<void> {
    return this.#rows.write(open.order.principal, JOB_RUN_PATH, [{ row: startRow(open), atMs: open.startedMs }]);
  }

  /**
   * Ends a run after all of its output is stored. Repeats while the store is unavailable for a short time. If that
   * fails, too, answers its own end, and maintenance of a controller later ends the run by its entry.
   */
  async finish(held: VersionedRun, { outcome, output, tries, turn }: Finished): Promise<StandingEnd> {
    const lost = await output.finish();
    const message =
      lost === undefined
        ? outcome.message
        : `${outcome.message} (its output could not be stored: ${errorText(lost)})`.trim();
    const end = this.endOf(output, { ...outcome, message, tries });
    try {
      return await this.#persist(() => this.end(held, end, turn));
    } catch (error) {
      const { runId, host } = held.open;
      this.#runtime.log.error(
        { err: error, run: runId, host, state: outcome.state },
        "the end of a job run could not be recorded",
      );
      return { ...end, mine: true };
    }
  }

  /**
   * Stores the failed tries before the next try. `undefined`: they could not be stored, or another controller has
   * continued.
   */
  async nextTry(held: VersionedRun, tries: RunTries): Promise<VersionedRun | undefined> {
    try {
      return await this.#persist(() => this.#journal.step(held, { tries }));
    } catch (error) {
      const { runId: run, host } = held.open;
      this.#runtime.log.warn({ err: error, run, host }, "a host that failed is not tried again");
      return undefined;
    }
  }

  endOf(output: RunOutput, { state, message, endedMs, tries, pid, ...exit }: Ending): RunEnd {
    const { out, err, commands, bytes: outputSize } = output;
    return {
      state,
      message,
      out,
      err,
      ...(commands.length > 0 && { commands }),
      outputSize,
      endedMs,
      decidedMs: this.#runtime.clock.nowMs(),
      ...exitOf(exit),
      ...(pid !== undefined && { pid }),
      ...(tries !== undefined && { tries }),
    };
  }

  /** Decides this end of the run, unless another controller decided first. Records the decided end and answers it. */
  async end(run: VersionedRun, end: RunEnd, turn?: HostTurns): Promise<StandingEnd> {
    const decided = await this.#journal.decide(run, {
      ...end,
      message: beginningOf(end.message, JOB_MESSAGE_MAX_CHARACTERS),
    });
    if (decided) {
      await this.settle(decided.open, turn);
      return standing(end, true);
    }
    return this.#follow(run.open);
  }

  /** Writes a row for an execution that was sent to no host. */
  async note(order: NotedOrder, { runId, status, message }: RunNote): Promise<void> {
    const atMs = this.#runtime.clock.nowMs();
    const row = { ...rowOf(order), runid: runId, host: NO_HOST, status, message, stime: atMs, etime: atMs };
    await this.#objects.unrestricted.insert(platformOf({ order }), pathOf({ order }), [row], { atMs });
  }

  /**
   * Writes a decided end into the row and removes the entry. `turn` delays each step while other hosts end, too. Any
   * controller may call it; safe to repeat.
   */
  async settle(open: OpenRun, turn?: HostTurns): Promise<void> {
    if (!open.end) return;
    await turn?.();
    await this.record(open, open.end);
    await turn?.();
    await this.#journal.end(open);
  }

  /**
   * Writes a decided end into the row of the run, and the end of each command into a row of its own. Safe to repeat.
   */
  async record(open: PlacedRun, end: RunEnd): Promise<void> {
    const atMs = Math.max(end.decidedMs, open.startedMs + 1);
    const { principal } = open.order;
    const row = { ...startRow(open), ...endRow(end), ...failuresOf(open) };
    await Promise.all([
      this.#rows.write(principal, JOB_RUN_PATH, [{ row, atMs }]),
      this.#rows.write(
        principal,
        COMMAND_RUN_PATH,
        commandRows(open, end).map((command) => ({ row: command, atMs })),
      ),
    ]);
  }

  async #persist<T>(write: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await write();
      } catch (error) {
        if (!isAppError(error, "unavailable", "unknown_outcome") || attempt === JOB_FINISH_ATTEMPTS) throw error;
        await wait(this.#runtime.clock, JOB_FINISH_PAUSE_MS * 2 ** attempt, this.#journal.inFlight.stopping);
      }
    }
  }

  /**
   * Another controller took the run over or ended it. Waits for the end that it decides, and answers it; `expired` if
   * there is none at `2 * JOB_LOST_AFTER_MS` after the deadline.
   */
  async #follow(open: OpenRun): Promise<StandingEnd> {
    const { clock } = this.#runtime;
    const untilMs = open.deadlineMs + 2 * JOB_LOST_AFTER_MS;
    for (;;) {
      const now = await this.#journal.find(open.order.principal.tenant, open.id);
      if (!now) return this.recorded(open);
      if (now.open.end) {
        await this.settle(now.open);
        return standing(now.open.end, now.open.owner === open.owner && now.open.attempt === open.attempt);
      }
      if (clock.nowMs() >= untilMs)
        return {
          state: "expired",
          message: "Another controller took it over and has not said how it ended.",
          mine: false,
        };
      await wait(clock, JOB_FOLLOW_POLL_MS);
    }
  }

  /** The end of a run, read from its row. */
  async recorded(open: PlacedRun): Promise<StandingEnd> {
    // To learn the id of the row, insert with a time before all other writes of the run: such an insert changes
    // nothing.
    const atMs = (ulidTimeMs(open.runId) ?? open.startedMs) - 1;
    const [id = ""] = await this.#objects.unrestricted.insert(platformOf(open), pathOf(open), [startRow(open)], {
      atMs,
    });
    const [row] = await this.#objects.unrestricted.get(platformOf(open), [{ id, class: pathOf(open) }]);
    const { status, code, signal, message, tries } = row?.values ?? {};
    return {
      state: status as FinalState,
      ...(typeof code === "number" && { code }),
      ...(typeof signal === "string" && { signal }),
      ...(typeof tries === "number" && { tries }),
      message: String(message ?? ""),
      mine: false,
    };
  }
}

function standing({ state, message, tries, ...exit }: RunEnd, mine: boolean): StandingEnd {
  return { state, message, mine, ...exitOf(exit), ...(tries !== undefined && { tries }) };
}

/** Exit code and signal of a process; each only if known. */
export function exitOf({ code, signal }: Pick<RunEnd, "code" | "signal">): Pick<RunEnd, "code" | "signal"> {
  return { ...(code !== undefined && { code }), ...(signal !== undefined && { signal }) };
}

/** Value of `host` in the row of an execution that was sent to no host. */
export const NO_HOST = "-";

/** The parts of an order that rows contain. */
type NotedOrder = Pick<RunOrder, "name" | "dir" | "sid" | "dueMs" | "origin" | "params"> & {
  readonly principal: Pick<Principal, "tenant" | "ospace" | "user" | "traceparent">;
};

interface RunNote {
  readonly runId: string;
  readonly status: string;
  readonly message: string;
}

/** Rows are written by the platform, because a user who may run a job need not have the right to write objects. */
function platformOf({ order }: { readonly order: NotedOrder }): Principal {
  const { tenant, ospace, traceparent } = order.principal;
  return systemPrincipal(tenant, ospace, traceparent);
}

export function pathOf({ order }: { readonly order: NotedOrder }): string {
  return `${order.principal.ospace}${JOB_RUN_PATH}`;
}

/** The row of a run at its beginning. */
export function startRow({ runId, host, order, startedMs, deadlineMs }: PlacedRun): Row {
  return {
    ...rowOf(order),
    runid: runId,
    host,
    type: stageOf(host) ?? "job",
    status: "running",
    cmds: [...order.commands],
    stime: startedMs,
    deadline: deadlineMs,
  };
}

function rowOf({ name, dir, sid, dueMs, origin, params, principal }: NotedOrder): Row {
  return {
    name,
    dir,
    sid,
    source: principal.user,
    type: "job",
    ...(dueMs !== undefined && { due: dueMs }),
    ...(origin !== undefined && { origin }),
    ...(params !== undefined && { params: [...params] }),
  };
}

function failuresOf({ tries }: PlacedRun): Row {
  return tries ? { failures: [...tries.failures] } : {};
}

function endRow({ state, message, out, err, outputSize, endedMs, tries, pid, ...exit }: RunEnd): Row {
  return {
    status: state,
    message,
    out,
    err,
    outputsize: outputSize,
    etime: endedMs,
    ...(pid !== undefined && { pid }),
    ...(tries !== undefined && { tries }),
    ...exitOf(exit),
  };
}
