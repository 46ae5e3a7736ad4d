import { mapLimited } from "../../../common/concurrency.ts";
import { errorText } from "../../../common/errors.ts";
import {
  JOB_RETENTION_JOBS_MAX,
  JOB_RETENTION_JOBS_PER_SWEEP,
  JOB_RETENTION_PARALLEL,
  JOB_RETENTION_PART,
  JOB_RETENTION_ROWS_PER_SWEEP,
} from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Objects } from "../objects/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import { COMMAND_RUN_PATH, JOB_RUN_PATH } from "./classes.ts";
import { hasOpen } from "./executions.ts";
import { formatJobName } from "./names.ts";
import { JobOutputs, type RunName } from "./outputs.ts";
import type { StoredJob } from "./store.ts";

interface Kept {
  readonly tenant: string;
  readonly ospace: string;
  /** `<name>@<dir>` */
  readonly name: string;
  readonly keep: number;
  /** Runs that this controller began since it last looked. */
  fresh: number;
}

/**
 * Of a job with `keep` the newest so many runs stay, with their outputs; older ones go before their days are over. Each
 * controller looks after the jobs that it ran: when it runs one for the first time, and whenever a part of `keep` has
 * come anew. Safe on several controllers, and to repeat; what goes on stays.
 */
export class RunRetention {
  readonly #stores: Stores;
  readonly #objects: Pick<Objects, "read" | "remove">;
  readonly #log: Runtime["log"];
  readonly #outputs: JobOutputs;
  readonly #rowsPerSweep: number;
  readonly #jobs = new Map<string, Kept>();

  constructor({
    stores,
    objects,
    runtime,
    rowsPerSweep = JOB_RETENTION_ROWS_PER_SWEEP,
  }: {
    readonly stores: Stores;
    readonly objects: Pick<Objects, "read" | "remove">;
    readonly runtime: Pick<Runtime, "log">;
    /** `JOB_RETENTION_ROWS_PER_SWEEP` when absent. */
    readonly rowsPerSweep?: number;
  }) {
    this.#rowsPerSweep = rowsPerSweep;
    this.#stores = stores;
    this.#objects = objects;
    this.#log = runtime.log;
    this.#outputs = new JobOutputs(stores);
  }

  /** A run of the job begins. */
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

  /** A bounded step for some of the jobs that are due; what is left is done the next time. */
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

  /** False: there is more to remove. */
  async #prune(job: Kept): Promise<boolean> {
    const oldest = await this.#oldestKept(job);
    if (oldest === undefined) return true;
    const old = await this.#before(job, oldest);
    const hosts = new Map<string, Set<string>>();
    for (const { runId, host } of old.rows) hosts.set(runId, (hosts.get(runId) ?? new Set()).add(host));
    await mapLimited([...hosts], JOB_RETENTION_PARALLEL, (run) => this.#removeCommands(job, run));
    await mapLimited(old.rows, JOB_RETENTION_PARALLEL, (row) => this.#remove(job, row));
    return !old.isMore;
  }

  /** The id of a run, older than which none stays; `undefined`: there are not too many. Ids are in the order of time. */
  async #oldestKept(job: Kept): Promise<string | undefined> {
    let newest = new Set<string>();
    let oldest = "";
    for await (const { runId } of this.#rows(job)) {
      if (runId < oldest) continue;
      newest.add(runId);
      if (newest.size <= 2 * job.keep) continue;
      newest = new Set([...newest].sort().slice(-job.keep));
      [oldest = ""] = newest;
    }
    return newest.size > job.keep ? [...newest].sort().at(-job.keep) : oldest || undefined;
  }

  async #before(job: Kept, oldest: string) {
    const rows: (RunName & { readonly id: string })[] = [];
    const goesOn = new Map<string, boolean>();
    for await (const row of this.#rows(job)) {
      const { runId } = row;
      if (runId >= oldest) continue;
      const open = goesOn.get(runId) ?? (await hasOpen(this.#stores, job.tenant, runId));
      goesOn.set(runId, open);
      if (open) continue;
      if (rows.length === this.#rowsPerSweep) return { rows, isMore: true };
      rows.push(row);
    }
    return { rows, isMore: false };
  }

  /** Those of one run on some of its hosts. */
  async #removeCommands(job: Kept, [runId, hosts]: readonly [string, ReadonlySet<string>]): Promise<void> {
    const path = job.ospace + COMMAND_RUN_PATH;
    const pages = this.#objects.read(platformOf(job), {
      class: path,
      subtree: false,
      where: [{ kind: "equals", column: "runid", values: [runId] }],
      columns: ["runid", "host"],
    });
    for await (const page of pages) {
      const own = page.filter(({ values }) => values["runid"] === runId && hosts.has(String(values["host"])));
      if (own.length === 0) continue;
      await this.#objects.remove(
        platformOf(job),
        own.map(({ id }) => ({ id, class: path })),
      );
    }
  }

  /** The row last: while it is there, all of the run is found again. */
  async #remove(job: Kept, { id, ...run }: RunName & { readonly id: string }): Promise<void> {
    await this.#outputs.remove(job.tenant, run);
    await this.#objects.remove(platformOf(job), [{ id, class: job.ospace + JOB_RUN_PATH }]);
  }

  async *#rows(job: Kept): AsyncGenerator<RunName & { readonly id: string }> {
    const pages = this.#objects.read(platformOf(job), {
      class: job.ospace + JOB_RUN_PATH,
      subtree: false,
      where: [{ kind: "equals", column: "name", values: [job.name] }],
      columns: ["runid", "host", "name"],
    });
    for await (const page of pages)
      for (const { id, values } of page) {
        const { runid, host, name } = values;
        if (name === job.name && typeof runid === "string" && typeof host === "string")
          yield { id, runId: runid, host };
      }
  }
}

function isDue({ keep, fresh }: Kept): boolean {
  return fresh >= Math.max(1, keep * JOB_RETENTION_PART);
}

function platformOf({ tenant, ospace }: Kept): Principal {
  return systemPrincipal(tenant, ospace, "");
}
