import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { putOnce } from "../../store/once.ts";

/** A stored job. KvStore: `jobs/definition/<name>@<dir>`. */
export interface StoredJob {
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
  readonly schedule: string;
  /** Seconds; 0 or less: the default. */
  readonly timeout: number;
  readonly algorithm: string;
  readonly limit: number;
  readonly enable: number;
  readonly queue: string;
  /** How often a failed host is tried again, and the seconds before (`retrydelay`); absent: never. */
  readonly retry?: number;
  readonly retrydelay?: number;
  /** Maximum number of its runs to keep; 0 or absent: all, for `keepdays`. */
  readonly keep?: number;
  /** Days for which its runs are kept; 0 or absent: `JOB_RUN_TTL_DAYS`. */
  readonly keepdays?: number;
  readonly tag: readonly string[];
  readonly createdMs: number;
  readonly changedMs: number;
  readonly creator: string;
  /** The user who saved what is executed; the schedule runs with that user's rights at that time. */
  readonly savedBy?: string;
  /** Start of the schedule: when it was set or enabled. Only later times count. */
  readonly scheduledMs?: number;
}

export const DEFINITIONS = "jobs/definition/";

export function definitionKey(fullName: string): string {
  return DEFINITIONS + fullName;
}

export const SCHEDULES = "jobs/schedule/";

/** Key of the state of its schedule. */
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

  /** False if the definition has changed since `ifRevision` was read; 0: it is new. */
  async putDefinition(
    tenant: string,
    fullName: string,
    change: { readonly job: StoredJob; readonly ifRevision: number },
  ): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    const { job, ifRevision } = change;
    return (await putOnce(kv, { key: DEFINITIONS + fullName, value: encodeJson(job), ifRevision })).ok;
  }

  /** False if it was changed or removed meanwhile. */
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
