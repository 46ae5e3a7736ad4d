import { errorText } from "../../../../common/errors.ts";
import { JOB_RETENTION_LOOK_MS, JOB_RETENTION_ROWS_PER_SWEEP, JOB_RUN_TTL_DAYS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import { decodeStored } from "../../../store/format.ts";
import type { KvPage } from "../../../store/kv.ts";
import { formatJobName } from "../definitions/names.ts";
import { RunRemoval, type JobOfTenant, type RunRemovalDependencies } from "./removal.ts";
import { DEFINITIONS, type StoredJob } from "../store.ts";

export interface RunAgesDependencies extends RunRemovalDependencies {
  readonly runtime: Pick<Runtime, "log" | "clock">;
  readonly ospaceOf: (tenant: string) => Promise<string>;
  /** `JOB_RETENTION_ROWS_PER_SWEEP` when absent. */
  readonly rowsPerSweep?: number;
}

/** Position in the definitions of a tenant at which the next step continues, and the time before which it waits. */
interface Place {
  /** Key after which to continue; absent: begins with the first definition. */
  readonly after?: string;
  readonly fromMs: number;
}

interface Step {
  readonly entries: KvPage["entries"];
  /** The key before the first of `entries`. */
  readonly after: string;
  readonly nowMs: number;
}

const MS_PER_DAY = 86_400_000;

/**
 * Removes runs that are older than the `keepdays` of their job, even if the job no longer runs. Checks all definitions
 * in turn, one page per step, and starts again `JOB_RETENTION_LOOK_MS` after the last one. Several controllers may do
 * so at once; safe to repeat. Unfinished runs stay.
 */
export class RunAges {
  readonly #with: RunAgesDependencies;
  readonly #removal: RunRemoval;
  readonly #places = new Map<string, Place>();

  constructor(dependencies: RunAgesDependencies) {
    this.#with = dependencies;
    this.#removal = new RunRemoval(dependencies);
  }

  /** Makes one bounded step. Later calls make the rest. */
  async sweep(tenant: string): Promise<void> {
    const nowMs = this.#with.runtime.clock.nowMs();
    const { after, fromMs } = this.#places.get(tenant) ?? { fromMs: nowMs };
    if (fromMs > nowMs) return;
    const { kv } = await this.#with.stores.tenant(tenant);
    const page = await kv.list(DEFINITIONS, after === undefined ? {} : { after });
    const stoppedAt = await this.#removeOld(tenant, { entries: page.entries, after: after ?? DEFINITIONS, nowMs });
    const next = stoppedAt ?? page.next;
    this.#places.set(
      tenant,
      next === undefined ? { fromMs: nowMs + JOB_RETENTION_LOOK_MS } : { after: next, fromMs: nowMs },
    );
  }

  /**
   * Removes old runs of these jobs, up to the limit of one step. Answers the key after which the next step continues;
   * `undefined`: nothing is left for these jobs.
   */
  async #removeOld(tenant: string, { entries, after, nowMs }: Step): Promise<string | undefined> {
    const { ospaceOf, rowsPerSweep = JOB_RETENTION_ROWS_PER_SWEEP } = this.#with;
    const ospace = await ospaceOf(tenant);
    let room = rowsPerSweep;
    let done = after;
    for (const { key, value } of entries) {
      const { keepdays = 0, ...job } = decodeStored<StoredJob>(value);
      if (keepdays > 0 && keepdays < JOB_RUN_TTL_DAYS) {
        const beforeMs = nowMs - keepdays * MS_PER_DAY;
        const removed = await this.#prune({ tenant, ospace, name: formatJobName(job) }, { beforeMs, most: room });
        if (removed === undefined) return done;
        room -= removed;
      }
      done = key;
    }
    return undefined;
  }

  /**
   * Removes old runs of one job. Answers the number of removed rows; `undefined`: there are more. After a failure it
   * answers 0, and the next check of all jobs tries again.
   */
  async #prune(
    job: JobOfTenant,
    { beforeMs, most }: { readonly beforeMs: number; readonly most: number },
  ): Promise<number | undefined> {
    try {
      const old = await this.#removal.ended(job, this.#removal.rows(job, beforeMs), most);
      await this.#removal.remove(job, old.rows);
      return old.isMore ? undefined : old.rows.length;
    } catch (error) {
      const { tenant, name } = job;
      this.#with.runtime.log.warn(
        { tenant, job: name, reason: errorText(error) },
        "old runs of a job are removed later",
      );
      return 0;
    }
  }
}
