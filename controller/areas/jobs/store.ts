import { AppError, isAppError } from "../../../common/errors.ts";
import { ulidTimeMs } from "../../../common/ids.ts";
import { BLOB_CHUNK_MAX_BYTES, JOB_RUN_TTL_DAYS } from "../../../common/limits.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvEntry, KvOperation } from "../../store/kv.ts";
import type { FinalState } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";

/**
 * How jobs lie in the stores. KvStore: `jobs/definition/<name>@<dir>`; `jobs/open/<run>/<host>` until the end of a run
 * is in its row; `jobs/output/<day>/<run>/<host>` for every run that has an output stream, by the day it may go.
 * BlobStore: stream `jobs/<run>/<host>` of the controller that began the run, `jobs/<run>/<host>/<n>` of those that
 * took it over.
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

/**
 * A run on one host that is not wholly over: what any controller needs to go on with it, or to put its end on record.
 */
export interface OpenRun extends RunName {
  readonly startedMs: number;
  /** By the wall clock of the controller that began it. */
  readonly deadlineMs: number;
  readonly order: RunOrder;
  /** The controller that works on it. */
  readonly owner: string;
  /** How many controllers took it over; each writes output of its own, from the first byte. */
  readonly attempt: number;
  /** How it ended: decided once, then written into the row by whoever sees it. */
  readonly end?: RunEnd;
}

export interface RunName {
  readonly runId: string;
  readonly host: string;
}

/** What is the same for all hosts of an execution. */
export interface RunOrder {
  /** Who asked for it, with the rights of then. */
  readonly principal: Principal;
  readonly sid: string;
  /** `<name>@<dir>` */
  readonly name: string;
  readonly dir: string;
  readonly commands: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly hosts: readonly string[];
  readonly groupmode: string;
}

export interface RunEnd {
  readonly state: FinalState;
  readonly code?: number;
  readonly message: string;
  readonly out: string;
  readonly err: string;
  readonly outputSize: number;
  /** By the clock of the host, when it said so. */
  readonly endedMs: number;
  /** By the clock of who decided it. */
  readonly decidedMs: number;
}

export interface VersionedRun {
  readonly open: OpenRun;
  readonly revision: number;
}

interface StoredOutput extends RunName {
  readonly attempt?: number;
}

const MS_PER_DAY = 86_400_000;
const DEFINITIONS = "jobs/definition/";
const OPEN = "jobs/open/";
const OUTPUT = "jobs/output/";

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
    const found: StoredJob[] = [];
    for await (const entry of this.#entries(tenant, DEFINITIONS)) found.push(decodeStored<StoredJob>(entry.value));
    return found;
  }

  /** False when the definition was changed since `ifRevision` was read; 0: it is new. */
  async putDefinition(
    tenant: string,
    fullName: string,
    change: { readonly job: StoredJob; readonly ifRevision: number },
  ): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    return (await kv.put(DEFINITIONS + fullName, encodeJson(change.job), { ifRevision: change.ifRevision })).ok;
  }

  /** False when it was changed or removed meanwhile. */
  async removeDefinition(tenant: string, fullName: string, ifRevision: number): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    return (await kv.delete(DEFINITIONS + fullName, { ifRevision })).ok;
  }

  /** Its revision. A run's id is new, so nobody else has it open. */
  async open(tenant: string, open: OpenRun): Promise<VersionedRun> {
    const written = await this.#write(tenant, open, 0);
    if (written !== undefined) return written;
    throw new AppError("internal", `The run ${open.runId} was begun twice.`);
  }

  /** `undefined` when somebody changed or closed it after `run` was read. */
  async take(tenant: string, run: VersionedRun, owner: string): Promise<VersionedRun | undefined> {
    return this.#write(tenant, { ...run.open, owner, attempt: run.open.attempt + 1 }, run.revision);
  }

  /** `undefined` when somebody changed or closed it after `run` was read: then that stands. */
  async decide(tenant: string, run: VersionedRun, end: RunEnd): Promise<VersionedRun | undefined> {
    return this.#write(tenant, { ...run.open, end }, run.revision);
  }

  async find(tenant: string, name: RunName): Promise<VersionedRun | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(openKey(name));
    return entry && versioned(entry);
  }

  /** A run that was closed is never opened again. */
  async close(tenant: string, name: RunName): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    await kv.delete(openKey(name));
  }

  async openRuns(tenant: string): Promise<readonly VersionedRun[]> {
    const found: VersionedRun[] = [];
    for await (const entry of this.#entries(tenant, OPEN)) found.push(versioned(entry));
    return found;
  }

  async appendOutput(tenant: string, run: OpenRun, piece: { offset: number; bytes: Uint8Array }): Promise<void> {
    const { blobs } = await this.#stores.tenant(tenant);
    for (let at = 0; at < piece.bytes.length; at += BLOB_CHUNK_MAX_BYTES) {
      await blobs.append(
        streamOf(run, run.attempt),
        piece.offset + at,
        piece.bytes.subarray(at, at + BLOB_CHUNK_MAX_BYTES),
      );
    }
  }

  /** Of the controller that works on it, or that ended it. */
  async readOutput(tenant: string, run: RunName, part: { offset: number; maxBytes: number }) {
    const { kv, blobs } = await this.#stores.tenant(tenant);
    const entry = ulidTimeMs(run.runId) === undefined ? undefined : await kv.get(outputKey(run));
    const attempt = entry ? (decodeStored<StoredOutput>(entry.value).attempt ?? 0) : 0;
    return blobs.readStream(streamOf(run, attempt), part.offset, part.maxBytes);
  }

  /** Whether there is or was such a run on this host, as long as its output is kept. */
  async knows(tenant: string, run: RunName): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    return ulidTimeMs(run.runId) !== undefined && (await kv.get(outputKey(run))) !== undefined;
  }

  /** Removes outputs whose day is past; answers how many. */
  async sweepOutputs(tenant: string, nowMs: number): Promise<number> {
    const { kv, blobs } = await this.#stores.tenant(tenant);
    let removed = 0;
    for await (const entry of this.#entries(tenant, OUTPUT)) {
      if (entry.key >= `${OUTPUT}${day(nowMs)}`) break;
      const output = decodeStored<StoredOutput>(entry.value);
      for (let attempt = output.attempt ?? 0; attempt >= 0; attempt--)
        await blobs.removeStream(streamOf(output, attempt));
      await kv.delete(entry.key);
      removed++;
    }
    return removed;
  }

  /** The run and whose output is to be read, together. */
  async #write(tenant: string, open: OpenRun, ifRevision: number): Promise<VersionedRun | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    const value = encodeJson(open);
    const output: StoredOutput = { runId: open.runId, host: open.host, attempt: open.attempt };
    const then: readonly KvOperation[] = [
      { kind: "put", key: openKey(open), value },
      { kind: "put", key: outputKey(open), value: encodeJson(output) },
    ];
    try {
      const { ok, revision } = await kv.txn({ if: [{ key: openKey(open), revision: ifRevision }], then });
      return ok ? { open, revision } : undefined;
    } catch (error) {
      if (!isAppError(error, "unknown_outcome")) throw error;
      const now = await kv.get(openKey(open));
      return now && Buffer.compare(now.value, value) === 0
        ? { open, revision: now.revision }
        : this.#missed(error, now, ifRevision);
    }
  }

  /** What is there instead of a write of unknown outcome: another's, or still what was there before. */
  #missed(error: unknown, now: KvEntry | undefined, ifRevision: number): undefined {
    if ((now?.revision ?? 0) === ifRevision) throw error;
    return undefined;
  }

  async *#entries(tenant: string, prefix: string): AsyncGenerator<KvEntry> {
    const { kv } = await this.#stores.tenant(tenant);
    yield* entriesUnder(kv, prefix);
  }
}

function versioned(entry: KvEntry): VersionedRun {
  return { open: decodeStored<OpenRun>(entry.value), revision: entry.revision };
}

function openKey(run: RunName): string {
  return OPEN + nameOf(run);
}

/** Kept a day longer than the row. */
function outputKey(run: RunName): string {
  const keepUntilMs = (ulidTimeMs(run.runId) ?? 0) + (JOB_RUN_TTL_DAYS + 1) * MS_PER_DAY;
  return `${OUTPUT}${day(keepUntilMs)}/${nameOf(run)}`;
}

function nameOf({ runId, host }: RunName): string {
  return `${runId}/${encodeURIComponent(host)}`;
}

function streamOf(run: RunName, attempt: number): string {
  return attempt === 0 ? `jobs/${nameOf(run)}` : `jobs/${nameOf(run)}/${attempt}`;
}

function day(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}

export function keyOf({ runId, host }: RunName): string {
  return `${runId}/${host}`;
}
