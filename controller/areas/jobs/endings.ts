import { JOB_FOLLOW_POLL_MS, JOB_LOST_AFTER_MS, JOB_MESSAGE_MAX_CHARACTERS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { FinalState } from "../hosts/index.ts";
import type { Objects } from "../objects/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import { JOB_RUN_PATH } from "./classes.ts";
import type { JobStore, OpenRun, RunEnd, VersionedRun } from "./store.ts";

export interface EndingDependencies {
  readonly store: JobStore;
  readonly objects: Pick<Objects, "insert" | "get">;
  readonly runtime: Runtime;
}

/** How a run ended, as it stands; `mine` when this call decided it. */
export interface StandingEnd {
  readonly state: FinalState;
  readonly code?: number;
  readonly message: string;
  readonly mine: boolean;
}

/**
 * The rows of runs. Each write of a row bears a time that was settled with the run, so that whoever writes it late,
 * twice or after another changes nothing. The end is decided in the KvStore, once, before any row says it.
 */
export class RunEndings {
  readonly #store: JobStore;
  readonly #objects: EndingDependencies["objects"];
  readonly #runtime: Runtime;

  constructor({ store, objects, runtime }: EndingDependencies) {
    this.#store = store;
    this.#objects = objects;
    this.#runtime = runtime;
  }

  /** The row says `running`, unless it says an end already. */
  async begin(open: OpenRun): Promise<void> {
    await this.#objects.insert(platformOf(open), pathOf(open), [startRow(open)], { atMs: open.startedMs });
  }

  /** Decides that the run ended so, if nobody was faster, and puts on record what stands. */
  async end(run: VersionedRun, end: RunEnd): Promise<StandingEnd> {
    const { tenant } = run.open.order.principal;
    const decided = await this.#store.decide(tenant, run, {
      ...end,
      message: end.message.slice(0, JOB_MESSAGE_MAX_CHARACTERS),
    });
    if (decided) {
      await this.settle(decided.open);
      return standing(end, true);
    }
    return this.#follow(run.open);
  }

  /** Writes a decided end into the row and closes the run. Whoever sees it may; safe to repeat. */
  async settle(open: OpenRun): Promise<void> {
    if (!open.end) return;
    const atMs = Math.max(open.end.decidedMs, open.startedMs + 1);
    await this.#objects.insert(platformOf(open), pathOf(open), [{ ...startRow(open), ...endRow(open.end) }], { atMs });
    await this.#store.close(open.order.principal.tenant, open);
  }

  /** Another controller took the run over, or ended it: what it says is what the caller is told. */
  async #follow(open: OpenRun): Promise<StandingEnd> {
    const { clock } = this.#runtime;
    const untilMs = open.deadlineMs + 2 * JOB_LOST_AFTER_MS;
    for (;;) {
      const now = await this.#store.find(open.order.principal.tenant, open);
      if (!now) return this.#recorded(open);
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

  async #recorded(open: OpenRun): Promise<StandingEnd> {
    // The row of the start is a no-op where there is one of the end; it names the object.
    const [id = ""] = await this.#objects.insert(platformOf(open), pathOf(open), [startRow(open)], {
      atMs: open.startedMs,
    });
    const [row] = await this.#objects.get(platformOf(open), [{ id, class: pathOf(open) }]);
    const { status, code, message } = row?.values ?? {};
    return {
      state: status as FinalState,
      ...(typeof code === "number" ? { code } : {}),
      message: String(message ?? ""),
      mine: false,
    };
  }
}

function standing({ state, code, message }: RunEnd, mine: boolean): StandingEnd {
  return { state, message, mine, ...(code === undefined ? {} : { code }) };
}

/** Rows belong to the platform: who may run a job need not be able to write objects. */
function platformOf({ order }: Pick<OpenRun, "order">): Principal {
  const { tenant, ospace, traceparent } = order.principal;
  return systemPrincipal(tenant, ospace, traceparent);
}

export function pathOf({ order }: OpenRun): string {
  return `${order.principal.ospace}${JOB_RUN_PATH}`;
}

/** The row as it is when the run begins. */
export function startRow({ runId, host, order, startedMs, deadlineMs }: OpenRun): Row {
  return {
    runid: runId,
    host,
    sid: order.sid,
    name: order.name,
    dir: order.dir,
    source: order.principal.user,
    type: "job",
    status: "running",
    cmds: [...order.commands],
    stime: startedMs,
    deadline: deadlineMs,
  };
}

function endRow({ state, code, message, out, err, outputSize, endedMs }: RunEnd): Row {
  return {
    status: state,
    message,
    out,
    err,
    outputsize: outputSize,
    etime: endedMs,
    ...(code === undefined ? {} : { code }),
  };
}
