import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { putOnce } from "../../store/once.ts";

/** How a job lies in the KvStore: `jobs/definition/<name>@<dir>`. */
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
  readonly tag: readonly string[];
  readonly createdMs: number;
  readonly changedMs: number;
  readonly creator: string;
}

const DEFINITIONS = "jobs/definition/";

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

  /** False when the definition was changed since `ifRevision` was read; 0: it is new. */
  async putDefinition(
    tenant: string,
    fullName: string,
    change: { readonly job: StoredJob; readonly ifRevision: number },
  ): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    const { job, ifRevision } = change;
    return (await putOnce(kv, { key: DEFINITIONS + fullName, value: encodeJson(job), ifRevision })).ok;
  }

  /** False when it was changed or removed meanwhile. */
  async removeDefinition(tenant: string, fullName: string, ifRevision: number): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    return (await kv.delete(DEFINITIONS + fullName, { ifRevision })).ok;
  }
}
