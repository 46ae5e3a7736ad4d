import { AppError } from "../../../../common/errors.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import type { Query } from "../../query/index.ts";
import { JOB_RUN_PATH } from "../classes.ts";
import type { JobRuns, OpenState } from "./runs.ts";
import type { JobService } from "../service.ts";

export interface CancellingDependencies {
  readonly runs: Pick<JobRuns, "openState" | "askToEnd">;
  readonly jobs: Pick<JobService, "visible">;
  readonly query: Pick<Query, "rows">;
}

/** Cancels runs. Allowed for the user who requested the run, and for users who see it and may run jobs. */
export class RunCancelling {
  readonly #with: CancellingDependencies;

  constructor(dependencies: CancellingDependencies) {
    this.#with = dependencies;
  }

  /**
   * Stores the request to cancel the run, or only its part on `host`. The controller that carries out the run then
   * tells the hosts. False: the run or part has already ended. Safe to repeat. `AppError("not_found")` also if the
   * principal does not see the run, or does not see a host on which it continues.
   */
  async cancel(principal: Principal, runId: string, host?: string): Promise<boolean> {
    requirePermission(principal, "jobs:run");
    const state = await this.#with.runs.openState(principal.tenant, runId, host);
    if (state?.user !== principal.user) await this.#refuseUnseen(principal, { runId, host, state });
    if (!state) return false;
    if (host !== undefined && !state.hosts.includes(host)) throw unknownRun(runId, host);
    if (host !== undefined && !state.open.includes(host)) return false;
    await this.#with.runs.askToEnd(principal.tenant, runId, {
      by: principal.user,
      ...(host !== undefined && { host }),
    });
    return true;
  }

  async #refuseUnseen(principal: Principal, { runId, host, state }: Wanted): Promise<void> {
    requirePermission(principal, "jobs:read");
    if (state) await this.#with.jobs.visible(principal, state.job);
    const seen = await this.#seen(principal, runId);
    // A run that waits has no rows, so none must be visible.
    const needed =
      host === undefined ? (state?.begun ?? []) : [host].filter((each) => !state || state.begun.includes(each));
    const isSeen = needed.every((each) => seen.has(each)) && (state !== undefined || seen.size > 0);
    if (!isSeen) throw unknownRun(runId, host);
  }

  async #seen(principal: Principal, runId: string): Promise<ReadonlySet<unknown>> {
    const text = `SELECT host FROM ${principal.ospace}${JOB_RUN_PATH} WHERE runid = ? LIMIT -1`;
    const rows = await this.#with.query.rows(principal, text, [runId]);
    return new Set(rows.map(({ host }) => host));
  }
}

interface Wanted {
  readonly runId: string;
  readonly host: string | undefined;
  readonly state: OpenState | undefined;
}

function unknownRun(runId: string, host?: string): AppError {
  return new AppError("not_found", `There is no run ${runId}${host === undefined ? "" : ` on ${host}`}.`);
}
