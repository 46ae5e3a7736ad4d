import { mapLimited } from "../../../../common/concurrency.ts";
import { JOB_RETENTION_PARALLEL } from "../../../../common/limits.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Unrestricted } from "../../objects/index.ts";
import { systemPrincipal, type Principal } from "../../permissions/index.ts";
import { COMMAND_RUN_PATH, JOB_RUN_PATH } from "../classes.ts";
import { hasOpen } from "../runs/executions.ts";
import { JobOutputs, type RunName } from "../output/outputs.ts";

export interface RunRemovalDependencies {
  readonly stores: Stores;
  readonly objects: Unrestricted<"read" | "remove">;
}

/** The job whose runs are removed. */
export interface JobOfTenant {
  readonly tenant: string;
  readonly ospace: string;
  /** `<name>@<dir>` */
  readonly name: string;
}

export interface RunRow extends RunName {
  readonly id: string;
  readonly startedMs: number;
}

export interface OldRuns {
  readonly rows: readonly RunRow[];
  /** True if more ended rows exist than `rows` contains. */
  readonly isMore: boolean;
}

/** Finds rows of a job's runs, and removes them with all related data. */
export class RunRemoval {
  readonly #stores: Stores;
  readonly #objects: RunRemovalDependencies["objects"];
  readonly #outputs: JobOutputs;

  constructor({ stores, objects }: RunRemovalDependencies) {
    this.#stores = stores;
    this.#objects = objects;
    this.#outputs = new JobOutputs(stores);
  }

  /** Rows of the job's runs, unordered. With `beforeMs`, only of runs that began before that time. */
  async *rows(job: JobOfTenant, beforeMs = Infinity): AsyncGenerator<RunRow> {
    const pages = this.#objects.unrestricted.read(platformOf(job), {
      class: job.ospace + JOB_RUN_PATH,
      subtree: false,
      where: [
        { kind: "equals", column: "name", values: [job.name] },
        ...(beforeMs === Infinity ? [] : [{ kind: "range" as const, column: "stime", to: beforeMs - 1 }]),
      ],
      columns: ["runid", "host", "name", "stime"],
    });
    for await (const page of pages)
      for (const { id, values } of page) {
        const { runid, host, name, stime } = values;
        const startedMs = Number(stime);
        if (name === job.name && typeof runid === "string" && typeof host === "string" && !(startedMs >= beforeMs))
          yield { id, runId: runid, host, startedMs };
      }
  }

  /** At most `most` of the rows: those whose run has ended. */
  async ended({ tenant }: JobOfTenant, rows: AsyncIterable<RunRow>, most: number): Promise<OldRuns> {
    const found: RunRow[] = [];
    const goesOn = new Map<string, boolean>();
    for await (const row of rows) {
      const open = goesOn.get(row.runId) ?? (await hasOpen(this.#stores, tenant, row.runId));
      goesOn.set(row.runId, open);
      if (open) continue;
      if (found.length === most) return { rows: found, isMore: true };
      found.push(row);
    }
    return { rows: found, isMore: false };
  }

  /** Removes the rows with their commands and outputs. Safe to repeat. */
  async remove(job: JobOfTenant, rows: readonly RunRow[]): Promise<void> {
    const hosts = new Map<string, Set<string>>();
    for (const { runId, host } of rows) hosts.set(runId, (hosts.get(runId) ?? new Set()).add(host));
    await mapLimited([...hosts], JOB_RETENTION_PARALLEL, (run) => this.#removeCommands(job, run));
    await mapLimited(rows, JOB_RETENTION_PARALLEL, (row) => this.#remove(job, row));
  }

  /** Removes the rows of a run's commands on some of its hosts. */
  async #removeCommands(job: JobOfTenant, [runId, hosts]: readonly [string, ReadonlySet<string>]): Promise<void> {
    const path = job.ospace + COMMAND_RUN_PATH;
    const pages = this.#objects.unrestricted.read(platformOf(job), {
      class: path,
      subtree: false,
      where: [{ kind: "equals", column: "runid", values: [runId] }],
      columns: ["runid", "host"],
    });
    for await (const page of pages) {
      const own = page.filter(({ values }) => values["runid"] === runId && hosts.has(String(values["host"])));
      if (own.length === 0) continue;
      await this.#objects.unrestricted.remove(
        platformOf(job),
        own.map(({ id }) => ({ id, class: path })),
      );
    }
  }

  /** Removes the output, and the row last: while the row exists, the rest of the run can be found again. */
  async #remove(job: JobOfTenant, { id, runId, host }: RunRow): Promise<void> {
    await this.#outputs.remove(job.tenant, { runId, host });
    await this.#objects.unrestricted.remove(platformOf(job), [{ id, class: job.ospace + JOB_RUN_PATH }]);
  }
}

function platformOf({ tenant, ospace }: JobOfTenant): Principal {
  return systemPrincipal(tenant, ospace, "");
}
