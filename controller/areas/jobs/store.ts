import { BLOB_CHUNK_MAX_BYTES } from "../../../common/limits.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvEntry } from "../../store/kv.ts";

/**
 * How jobs lie in the stores. KvStore: `jobs/definition/<name>@<dir>`; `jobs/open/<run>/<host>` while a run has no final state yet;
 * `jobs/output/<day>/<run>/<host>` for every run that has an output stream, by the day it may go. BlobStore: stream `jobs/<run>/<host>`.
 */
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

export interface OpenRun {
  readonly runId: string;
  readonly host: string;
  readonly ospace: string;
  /** Of the run's row. */
  readonly objectId: string;
  /** By the wall clock. */
  readonly deadlineMs: number;
}

const DEFINITIONS = "jobs/definition/";
const OPEN = "jobs/open/";
const OUTPUT = "jobs/output/";

export class JobStore {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  async definition(tenant: string, fullName: string): Promise<{ readonly revision: number; readonly job: StoredJob } | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(DEFINITIONS + fullName);
    return entry && { revision: entry.revision, job: decodeStored<StoredJob>(entry.value) };
  }

  async definitions(tenant: string): Promise<readonly StoredJob[]> {
    const found: StoredJob[] = [];
    for await (const entry of this.#entries(tenant, DEFINITIONS)) found.push(decodeStored<StoredJob>(entry.value));
    return found;
  }

  /** False when the definition was changed since `ifRevision` was read; 0: it is new. */
  async putDefinition(tenant: string, fullName: string, change: { readonly job: StoredJob; readonly ifRevision: number }): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    return (await kv.put(DEFINITIONS + fullName, encodeJson(change.job), { ifRevision: change.ifRevision })).ok;
  }

  /** False when it was changed or removed meanwhile. */
  async removeDefinition(tenant: string, fullName: string, ifRevision: number): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    return (await kv.delete(DEFINITIONS + fullName, { ifRevision })).ok;
  }

  /** `keepUntilMs`: when the output may go. */
  async open(tenant: string, run: OpenRun, keepUntilMs: number): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    const name = `${run.runId}/${encodeURIComponent(run.host)}`;
    await kv.txn({
      if: [],
      then: [
        { kind: "put", key: OPEN + name, value: encodeJson(run) },
        { kind: "put", key: `${OUTPUT}${day(keepUntilMs)}/${name}`, value: encodeJson({ runId: run.runId, host: run.host }) },
      ],
    });
  }

  async close(tenant: string, run: Pick<OpenRun, "runId" | "host">): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    await kv.delete(`${OPEN}${run.runId}/${encodeURIComponent(run.host)}`);
  }

  async openRuns(tenant: string): Promise<readonly OpenRun[]> {
    const found: OpenRun[] = [];
    for await (const entry of this.#entries(tenant, OPEN)) found.push(decodeStored<OpenRun>(entry.value));
    return found;
  }

  async appendOutput(tenant: string, run: Pick<OpenRun, "runId" | "host">, piece: { offset: number; bytes: Uint8Array }): Promise<void> {
    const { blobs } = await this.#stores.tenant(tenant);
    for (let at = 0; at < piece.bytes.length; at += BLOB_CHUNK_MAX_BYTES) {
      await blobs.append(streamOf(run), piece.offset + at, piece.bytes.subarray(at, at + BLOB_CHUNK_MAX_BYTES));
    }
  }

  async readOutput(tenant: string, run: Pick<OpenRun, "runId" | "host">, part: { offset: number; maxBytes: number }) {
    const { blobs } = await this.#stores.tenant(tenant);
    return blobs.readStream(streamOf(run), part.offset, part.maxBytes);
  }

  /** Removes outputs whose day is past; answers how many. */
  async sweepOutputs(tenant: string, nowMs: number): Promise<number> {
    const { kv, blobs } = await this.#stores.tenant(tenant);
    let removed = 0;
    for await (const entry of this.#entries(tenant, OUTPUT)) {
      if (entry.key >= `${OUTPUT}${day(nowMs)}`) break;
      await blobs.removeStream(streamOf(decodeStored<Pick<OpenRun, "runId" | "host">>(entry.value)));
      await kv.delete(entry.key);
      removed++;
    }
    return removed;
  }

  async *#entries(tenant: string, prefix: string): AsyncGenerator<KvEntry> {
    const { kv } = await this.#stores.tenant(tenant);
    let after: string | undefined;
    do {
      const page = await kv.list(prefix, after === undefined ? {} : { after });
      yield* page.entries;
      after = page.next;
    } while (after !== undefined);
  }
}

function streamOf({ runId, host }: Pick<OpenRun, "runId" | "host">): string {
  return `jobs/${runId}/${encodeURIComponent(host)}`;
}

function day(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}
