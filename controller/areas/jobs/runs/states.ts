import type { JobRunState } from "../../../../common/api/jobs.ts";
import { AppError } from "../../../../common/errors.ts";
import type { Row } from "../../../../common/value.ts";
import type { Stores } from "../../../store/engine.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import type { Query } from "../../query/index.ts";
import { JOB_RUN_PATH } from "../classes.ts";
import type { JobService } from "../service.ts";
import { NO_HOST } from "./endings.ts";
import { unfinished, type Unfinished } from "./executions.ts";

export interface RunStatesDependencies {
  readonly stores: Stores;
  readonly jobs: Pick<JobService, "exists">;
  readonly query: Pick<Query, "rows">;
}

/** Tells how executions stand, by their entries in the store, which all controllers share. */
export class RunStates {
  readonly #with: RunStatesDependencies;

  constructor(dependencies: RunStatesDependencies) {
    this.#with = dependencies;
  }

  /**
   * State of an execution as a whole. `ended` is final: no host and no script follows, and all rows have their ends.
   * Hosts count as far as the principal sees their rows. `AppError("not_found")` if the principal sees no row of the
   * run and, while the run is not over, neither asked for it nor sees its job. `AppError("denied")` if the states of
   * some of its hosts are hidden from the principal, `AppError("not_found")` if those of all are.
   */
  async of(principal: Principal, runId: string): Promise<JobRunState> {
    requirePermission(principal, "jobs:read");
    // Read before the rows: the end of a row is written before the entry is removed.
    const open = await unfinished(this.#with.stores, principal.tenant, runId);
    const rows = await this.#rows(principal, runId);
    const isOwn = open !== undefined && (await this.#mayKnow(principal, open));
    if (rows.length === 0 && !isOwn) throw new AppError("not_found", `There is no run ${runId}.`);
    return stateOf({ runId, open, rows, waiting: isOwn ? open.waiting : 0 });
  }

  async #mayKnow(principal: Principal, { user, job }: Unfinished): Promise<boolean> {
    return user === principal.user || this.#with.jobs.exists(principal, job);
  }

  async #rows(principal: Principal, runId: string): Promise<readonly Row[]> {
    const text = `SELECT host, name, type, status, stime, etime FROM ${principal.ospace}${JOB_RUN_PATH} WHERE runid = ? LIMIT -1`;
    const rows = await this.#with.query.rows(principal, text, [runId]);
    if (rows.some(({ status, name }) => typeof status !== "string" || typeof name !== "string"))
      throw new AppError("denied", "The states of runs are hidden from this user.");
    return rows;
  }
}

interface Found {
  readonly runId: string;
  readonly open: Unfinished | undefined;
  readonly rows: readonly Row[];
  /** Hosts that the run has not reached, as far as the principal may know. */
  readonly waiting: number;
}

function stateOf({ runId, open, rows, waiting }: Found): JobRunState {
  const state = open === undefined ? "ended" : open.startedMs === undefined ? "waiting" : "running";
  const begun = rows.filter(({ host }) => host !== NO_HOST);
  const started = open?.startedMs ?? timesOf(begun, "stime").reduce((a, b) => Math.min(a, b), Infinity);
  const ended = timesOf(rows, "etime").reduce((a, b) => Math.max(a, b), -Infinity);
  return {
    runid: runId,
    job: open?.job ?? String(rows[0]?.["name"]),
    state,
    ...(state !== "waiting" && Number.isFinite(started) && { started }),
    ...(state === "ended" && Number.isFinite(ended) && { ended }),
    hosts: { ...(waiting > 0 && { waiting }), ...countsOf(begun.filter(isOfHost)) },
    scripts: countsOf(begun.filter((row) => !isOfHost(row))),
  };
}

function isOfHost({ type }: Row): boolean {
  return type === "job";
}

function countsOf(rows: readonly Row[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { status } of rows) counts[String(status)] = (counts[String(status)] ?? 0) + 1;
  return counts;
}

function timesOf(rows: readonly Row[], column: string): readonly number[] {
  return rows.map((row) => row[column]).filter((value) => typeof value === "number");
}
