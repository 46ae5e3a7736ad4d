import { errorText } from "../../../common/errors.ts";
import { JOB_RETENTION_LOOK_MS, JOB_RETENTION_ROWS_PER_SWEEP, JOB_RUN_TTL_DAYS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import { decodeStored } from "../../store/format.ts";
import type { KvPage } from "../../store/kv.ts";
import { formatJobName } from "./names.ts";
import { RunRemoval, type JobOfTenant, type RunRemovalDependencies } from "./run-removal.ts";
import { DEFINITIONS, type StoredJob } from "./store.ts";

export interface RunAgesDependencies extends RunRemovalDependencies {
  readonly runtime: Pick<Runtime, "log" | "clock">;
  readonly ospaceOf: (tenant: string) => Promise<string>;
  /** `JOB_RETENTION_ROWS_PER_SWEEP` when absent. */
  readonly rowsPerSweep?: number;
}

/** Where the next step goes on in the definitions of a tenant. */
interface Place {
  /** Absent: at the first. */
  readonly after?: string;
  readonly fromMs: number;
}

interface Step {
  readonly entries: KvPage["entries"];
  /** The key before them. */
  readonly after: string;
  readonly nowMs: number;
}

const MS_PER_DAY = 86_400_000;

/**
 * Of a job with `keepdays` runs go that began longer ago, also of one that runs no more. All definitions are looked at in
 * turn, a page in each step, and again `JOB_RETENTION_LOOK_MS` after the last of them. Safe on several controllers, and
 * to repeat; what goes on stays.
 */
export class RunAges {
  readonly #with: RunAgesDependencies;
  readonly #removal: RunRemoval;
  readonly #places = new Map<string, Place>();

  constructor(dependencies: RunAgesDependencies) {
    this.#with = dependencies;
    this.#removal = new RunRemoval(dependencies);
  }

  /** A bounded step; what is left is done the next time. */
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

  /** The key behind which there is more to remove than one step does; `undefined`: it did all. */
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

  /** How many rows it removed; `undefined`: there are more. A failure is left to the next time that all are looked at. */
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
