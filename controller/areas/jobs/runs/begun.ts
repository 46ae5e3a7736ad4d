import type { Stores } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import { idFromColumns, type Objects } from "../../objects/index.ts";
import { allows, requireOneOf, type Principal } from "../../permissions/index.ts";
import { JOB_RUN_PATH } from "../classes.ts";
import { startRow } from "./endings.ts";
import { EXECUTIONS, type OpenExecution } from "./executions.ts";
import { OPEN_RUNS, type OpenRun } from "./open-runs.ts";
import type { JobService } from "../service.ts";

export interface BegunRunsDependencies {
  readonly stores: Stores;
  readonly objects: Pick<Objects, "catalog" | "visible">;
  readonly jobs: Pick<JobService, "exists">;
}

/** Unfinished runs, for reports of work that continues with the rights it started with. */
export class BegunRuns {
  readonly #with: BegunRunsDependencies;

  constructor(dependencies: BegunRunsDependencies) {
    this.#with = dependencies;
  }

  /** Implements `BegunWork.goesOn`. */
  async goesOn(principal: Principal, isTheirs: (username: string) => Promise<boolean>): Promise<readonly string[]> {
    requireOneOf(principal, ["users:write", "perms:write"]);
    if (!allows(principal, "jobs:read")) return [];
    const { kv } = await this.#with.stores.tenant(principal.tenant);
    const onHosts = await this.#onHosts(principal, kv, isTheirs);
    const seen = [...onHosts].filter(([, { isSeen }]) => isSeen).map(([runId, { job }]) => named(runId, job));
    for await (const { value } of entriesUnder(kv, EXECUTIONS)) {
      const { id, order, isGivenUp } = decodeStored<OpenExecution>(value);
      if (isGivenUp || onHosts.has(id) || !(await isTheirs(order.principal.user))) continue;
      // The run waits or is between two hosts, so it has no running row. A principal who sees the job may see the run.
      if (await this.#with.jobs.exists(principal, order.name)) seen.push(named(id, order.name));
    }
    return seen;
  }

  /**
   * Unfinished runs that have open hosts, by id. A principal sees a run if it sees the row of any host where the run
   * continues.
   */
  async #onHosts(principal: Principal, kv: KvStore, isTheirs: (username: string) => Promise<boolean>) {
    const found = new Map<string, { readonly job: string; readonly isSeen: boolean }>();
    const sees = await this.#filter(principal);
    for await (const { value } of entriesUnder(kv, OPEN_RUNS)) {
      const open = decodeStored<OpenRun>(value);
      if (open.end || !(await isTheirs(open.order.principal.user))) continue;
      const isSeen = found.get(open.runId)?.isSeen === true || sees(open);
      found.set(open.runId, { job: open.order.name, isSeen });
    }
    return found;
  }

  async #filter(principal: Principal): Promise<(open: OpenRun) => boolean> {
    const { objects } = this.#with;
    const path = principal.ospace + JOB_RUN_PATH;
    const view = (await objects.catalog(principal)).get(path);
    const filter = await objects.visible.records(principal, path);
    return (open) => {
      const row = startRow(open);
      const id = view && idFromColumns(view, row);
      return id !== undefined && filter.sees({ id }, row);
    };
  }
}

function named(runId: string, job: string): string {
  return `${runId} (${job})`;
}
