import { errorText } from "../../../../common/errors.ts";
import {
  JOB_RETENTION_JOBS_MAX,
  JOB_RETENTION_JOBS_PER_SWEEP,
  JOB_RETENTION_PART,
  JOB_RETENTION_ROWS_PER_SWEEP,
} from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Principal } from "../../permissions/index.ts";
import { formatJobName } from "../definitions/names.ts";
import { RunRemoval, type JobOfTenant, type RunRemovalDependencies, type RunRow } from "./removal.ts";
import type { StoredJob } from "../store.ts";

export interface RunRetentionDependencies extends RunRemovalDependencies {
  readonly runtime: Pick<Runtime, "log">;
  /** `JOB_RETENTION_ROWS_PER_SWEEP` when absent. */
  readonly rowsPerSweep?: number;
}

interface Kept extends JobOfTenant {
  readonly keep: number;
  /** Number of runs that this controller began since its last check. */
  fresh: number;
}

/**
 * Keeps the newest `keep` runs of a job that has this setting, with their outputs. Removes older runs before they
 * expire. Each controller checks the jobs that it runs: at its first run of a job, then after every
 * `JOB_RETENTION_PART` times `keep` runs that it begins. Several controllers may do so at once. Unfinished runs stay.
 */
export class RunRetention {
  readonly #removal: RunRemoval;
  readonly #log: Runtime["log"];
  readonly #rowsPerSweep: number;
  readonly #jobs = new Map<string, Kept>();

  constructor({ runtime, rowsPerSweep = JOB_RETENTION_ROWS_PER_SWEEP, ...where }: RunRetentionDependencies) {
    this.#rowsPerSweep = rowsPerSweep;
    this.#log = runtime.log;
    this.#removal = new RunRemoval(where);
  }

  /** Call it when a run of the job begins. */
  ran({ tenant, ospace }: Pick<Principal, "tenant" | "ospace">, job: StoredJob): void {
    const { keep = 0 } = job;
    const name = formatJobName(job);
    const key = `${tenant}\n${name}`;
    const fresh = (this.#jobs.get(key)?.fresh ?? Number.POSITIVE_INFINITY) + 1;
    this.#jobs.delete(key);
    if (keep <= 0) return;
    this.#jobs.set(key, { tenant, ospace, name, keep, fresh });
    const [oldest] = this.#jobs.keys();
    if (this.#jobs.size > JOB_RETENTION_JOBS_MAX && oldest !== undefined) this.#jobs.delete(oldest);
  }

  /** Removes a bounded number of old runs of some due jobs. Later calls remove the rest. */
  async sweep(tenant: string): Promise<void> {
    const due = [...this.#jobs.values()].filter((job) => job.tenant === tenant && isDue(job));
    for (const job of due.slice(0, JOB_RETENTION_JOBS_PER_SWEEP)) {
      const { fresh } = job;
      job.fresh = 0;
      const isDone = await this.#prune(job).catch((error: unknown) => {
        this.#log.warn({ tenant, job: job.name, reason: errorText(error) }, "old runs of a job are removed later");
        return false;
      });
      if (!isDone) job.fresh = fresh;
    }
  }

  /** Removes old runs of one job. False: there are more runs to remove. */
  async #prune(job: Kept): Promise<boolean> {
    const oldest = await this.#oldestKept(job);
    if (oldest === undefined) return true;
    const old = await this.#removal.ended(job, this.#before(job, oldest), this.#rowsPerSweep);
    await this.#removal.remove(job, old.rows);
    return !old.isMore;
  }

  /**
   * The id of the oldest run to keep; `undefined`: the job does not have too many runs. Ids are in the order of time.
   */
  async #oldestKept(job: Kept): Promise<string | undefined> {
    let newest = new Set<string>();
    let oldest = "";
    for await (const { runId } of this.#removal.rows(job)) {
      if (runId < oldest) continue;
      newest.add(runId);
      if (newest.size <= 2 * job.keep) continue;
      newest = new Set([...newest].sort().slice(-job.keep));
      [oldest = ""] = newest;
    }
    return newest.size > job.keep ? [...newest].sort().at(-job.keep) : oldest || undefined;
  }

  async *#before(job: Kept, oldest: string): AsyncGenerator<RunRow> {
    for await (const row of this.#removal.rows(job)) if (row.runId < oldest) yield row;
  }
}

function isDue({ keep, fresh }: Kept): boolean {
  return fresh >= Math.max(1, keep * JOB_RETENTION_PART);
}
