import { AppError } from "../../../../common/errors.ts";
import { listed } from "../../../../common/text/listed.ts";
import type { Row } from "../../../../common/value.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import type { Query } from "../../query/index.ts";
import { JOB_RUN_PATH } from "../classes.ts";
import { NO_HOST } from "./endings.ts";
import { givenNames } from "../definitions/parameters.ts";
import type { JobRuns } from "./runs.ts";
import { stageOf } from "../definitions/stages.ts";
import { systemJobOf } from "../definitions/system-jobs.ts";
import type { Execution, ExecutionRequest } from "../types.ts";

export interface RetryingDependencies {
  readonly runs: Pick<JobRuns, "execute" | "goesOn">;
  readonly query: Pick<Query, "rows">;
}

/** Parameters that the caller need not give again: the row has the command, and the new run has its own time limit. */
const BESIDE: readonly string[] = ["cmd", "timeout"];

/** Tries failed hosts of a run again, in a new run that names the first one as its `origin`. */
export class RunRetrying {
  readonly #with: RetryingDependencies;

  constructor(dependencies: RetryingDependencies) {
    this.#with = dependencies;
  }

  /**
   * Runs the job, as it is defined now, on the hosts where the run did not end as `ok`, as far as the principal sees
   * their rows. `AppError("not_found")` if the principal sees no such run, `AppError("denied")` if states of runs are
   * hidden from it, `AppError("conflict")` while the run continues. `AppError("invalid")` if no host failed, or if
   * parameters are missing: these are not stored, so the caller must give them again.
   */
  async retry(principal: Principal, runId: string, request: ExecutionRequest): Promise<Execution> {
    requirePermission(principal, "jobs:run");
    requirePermission(principal, "jobs:read");
    const rows = await this.#rows(principal, runId);
    const [first] = rows;
    if (!first) throw new AppError("not_found", `There is no run ${runId}.`);
    if (rows.some(({ status, name }) => typeof status !== "string" || typeof name !== "string"))
      throw new AppError("denied", "The states of runs are hidden from this user.");
    if (await this.#with.runs.goesOn(principal.tenant, runId))
      throw new AppError("conflict", `The run ${runId} goes on; its hosts can be tried again when it has ended.`);
    const hosts = rows.filter(({ host, status }) => isHost(host) && status !== "ok").map(({ host }) => String(host));
    if (hosts.length === 0) throw new AppError("invalid", `No host of the run ${runId} failed.`);
    const param = { ...paramOf(first, request.param), "HOST!": hosts };
    return this.#with.runs.execute(principal, String(first["name"]), {
      ...request,
      param: JSON.stringify(param),
      origin: runId,
    });
  }

  async #rows(principal: Principal, runId: string): Promise<readonly Row[]> {
    const columns = "host, name, status, cmds, params";
    const text = `SELECT ${columns} FROM ${principal.ospace}${JOB_RUN_PATH} WHERE runid = ? ORDER BY host LIMIT -1`;
    return this.#with.query.rows(principal, text, [runId]);
  }
}

function isHost(host: unknown): boolean {
  return typeof host === "string" && host !== NO_HOST && stageOf(host) === undefined;
}

function paramOf({ name, cmds, params }: Row, text: string | undefined): object {
  const { members, names } = givenNames(text);
  if ("HOST!" in members) throw new AppError("invalid", "The hosts are those of the run: param has no HOST! here.");
  const missing = namesIn(params).filter((each) => !BESIDE.includes(each) && !names.includes(each));
  if (missing.length > 0)
    throw new AppError("invalid", `Parameters of a run are not kept after it: param needs ${listed(missing)} again.`);
  const [cmd] = namesIn(cmds);
  const isMissing = systemJobOf(String(name)) !== undefined && members["cmd"] === undefined;
  return isMissing && cmd !== undefined ? { ...members, cmd } : members;
}

function namesIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
