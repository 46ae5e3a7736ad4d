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

/** Where the next step continues in the definitions of a tenant. */
interface Place {
  /** Absent: begins at the first. */
  readonly after?: string;
  readonly fromMs: number;
}

interface Step {
  readonly entries: KvPage["entries"];
  /** The key before the entries. */
  readonly after: string;
  readonly nowMs: number;
}

const MS_PER_DAY = 86_400_000;

/**
 * Removes runs of jobs with `keepdays` that began longer ago than that, also if the job no longer runs. It checks all
 * definitions in turn, one page per step, and starts again `JOB_RETENTION_LOOK_MS` after the last one. Safe on several
 * controllers and to repeat; unfinished runs stay.
 */
export class RunAges {
  readonly #with: RunAgesDependencies;
  readonly #removal: RunRemoval;
  readonly #places = new Map<string, Place>();

  constructor(dependencies: RunAgesDependencies) {
    this.#with = dependencies;
    this.#removal = new RunRemoval(dependencies);
  }

  /** One bounded step; the rest follows next time. */
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

  /** The key after which more has to be removed than one step does; `undefined`: everything is done. */
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

  /** Number of removed rows; `undefined`: there are more. After a failure the next check of all jobs tries again. */
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
