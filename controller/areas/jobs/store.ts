import type { Stamped } from "../../../common/revisions.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { putOnce } from "../../store/once.ts";

/** A stored job. KvStore: `jobs/definition/<name>@<dir>`. */
export interface StoredJob extends Stamped {
  readonly name: string;
  readonly dir: string;
  readonly description: string;
  readonly group: string;
  readonly groupmode: string;
  readonly host: readonly string[];
  readonly begin: string;
  readonly end: string;
  readonly exec: readonly string[];
  readonly arg: readonly string[];
  readonly argenc: string;
  /** Empty or absent: the user of the agent or the login. */
  readonly user?: string;
  readonly schedule: string;
  /** Time limit of a run in seconds; 0 or less: the default. */
  readonly timeout: number;
  readonly algorithm: string;
  readonly limit: number;
  readonly enable: number;
  readonly queue: string;
  /** Number of further tries of a failed host; absent: none. `retrydelay` is the pause before each, in seconds. */
  readonly retry?: number;
  readonly retrydelay?: number;
  /** Maximum number of runs of the job to keep; 0 or absent: all, for `keepdays`. */
  readonly keep?: number;
  /** Days for which runs of the job are kept; 0 or absent: `JOB_RUN_TTL_DAYS`. */
  readonly keepdays?: number;
  readonly tag: readonly string[];
  readonly createdMs: number;
  readonly changedMs: number;
  readonly creator: string;
  /**
   * The user who last saved a member that affects what is executed. The schedule runs with the rights that this user
   * has at the time of each run.
   */
  readonly savedBy?: string;
  /** Time at which the schedule was set or enabled. Only later times of the schedule count. */
  readonly scheduledMs?: number;
}

export const DEFINITIONS = "jobs/definition/";

export function definitionKey(fullName: string): string {
  return DEFINITIONS + fullName;
}

export const SCHEDULES = "jobs/schedule/";

/** Key of the state of a job's schedule. */
export function scheduleKey(fullName: string): string {
  return SCHEDULES + fullName;
}

export class JobStore {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  async definition(
    tenant: string,
    fullName: string,
  ): Promise<{ readonly revision: number; readonly job: StoredJob } | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(DEFINITIONS + fullName);
    return entry && { revision: entry.revision, job: decodeStored<StoredJob>(entry.value) };
  }

  async definitions(tenant: string): Promise<readonly StoredJob[]> {
    const { kv } = await this.#stores.tenant(tenant);
    const found: StoredJob[] = [];
    for await (const entry of entriesUnder(kv, DEFINITIONS)) found.push(decodeStored<StoredJob>(entry.value));
    return found;
  }

  /** Stores the definition if it is still at `ifRevision`; 0: if it is new. False if another write came first. */
  async putDefinition(
    tenant: string,
    fullName: string,
    change: { readonly job: StoredJob; readonly ifRevision: number },
  ): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    const { job, ifRevision } = change;
    return (await putOnce(kv, { key: DEFINITIONS + fullName, value: encodeJson(job), ifRevision })).ok;
  }

  /**
   * Removes the definition if it is still at `ifRevision`, with the state of its schedule. False if another write came
   * first.
   */
  async removeDefinition(tenant: string, fullName: string, ifRevision: number): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    const then = [definitionKey(fullName), scheduleKey(fullName)].map((key) => ({ kind: "delete", key }) as const);
    return (await kv.txn({ if: [{ key: definitionKey(fullName), revision: ifRevision }], then })).ok;
  }
}

/** The user with whose rights a schedule runs. */
export function authorOf({ savedBy, creator }: StoredJob): string {
  return savedBy ?? creator;
}
