import { AppError } from "../../../../common/errors.ts";
import { ulidTimeMs } from "../../../../common/ids.ts";
import { BLOB_CHUNK_MAX_BYTES, JOB_RUN_TTL_DAYS } from "../../../../common/limits.ts";
import type { BlobStore } from "../../../store/blobs.ts";
import type { Stores } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvOperation } from "../../../store/kv.ts";

export interface RunName {
  readonly runId: string;
  readonly host: string;
}

/** The output that one controller stored for a run. Each controller that takes the run over begins a new attempt. */
interface Attempt extends RunName {
  readonly attempt: number;
}

const MS_PER_DAY = 86_400_000;
const OUTPUT = "jobs/output/";

/**
 * Stores outputs of runs. KvStore: `jobs/output/<day>/<run>/<host>` for every run; it names the valid attempt, and the
 * output is removed when `<day>` is over. BlobStore: stream `jobs/<run>/<host>` of the controller that began the run,
 * `jobs/<run>/<host>/<n>` of the n-th controller that took it over.
 */
export class JobOutputs {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  async append(tenant: string, run: Attempt, piece: { offset: number; bytes: Uint8Array }): Promise<void> {
    const { blobs } = await this.#stores.tenant(tenant);
    for (let at = 0; at < piece.bytes.length; at += BLOB_CHUNK_MAX_BYTES)
      await blobs.append(streamOf(run), piece.offset + at, piece.bytes.subarray(at, at + BLOB_CHUNK_MAX_BYTES));
  }

  /** Reads the output of the valid attempt: that of the controller that carries out the run or has ended it. */
  async read(tenant: string, run: RunName, part: { offset: number; maxBytes: number }) {
    const { kv, blobs } = await this.#stores.tenant(tenant);
    const entry = ulidTimeMs(run.runId) === undefined ? undefined : await kv.get(outputKey(run));
    const attempt = entry ? decodeStored<Attempt>(entry.value).attempt : 0;
    return blobs.readStream(streamOf({ ...run, attempt }), part.offset, part.maxBytes);
  }

  /** Copies the first `size` bytes of the output of an earlier attempt to this attempt. Safe to repeat. */
  async copy(tenant: string, run: Attempt, { attempt, size }: { attempt: number; size: number }): Promise<void> {
    const { blobs } = await this.#stores.tenant(tenant);
    for (let offset = 0; offset < size; ) {
      const { bytes } = await blobs.readStream(
        streamOf({ ...run, attempt }),
        offset,
        Math.min(size - offset, BLOB_CHUNK_MAX_BYTES),
      );
      if (bytes.length === 0) throw new AppError("internal", `The output of ${nameOf(run)} ends before ${size} bytes.`);
      await blobs.append(streamOf(run), offset, bytes);
      offset += bytes.length;
    }
  }

  /** True if such a run exists or existed on this host. Known as long as the output of the run is kept. */
  async knows(tenant: string, run: RunName): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    return ulidTimeMs(run.runId) !== undefined && (await kv.get(outputKey(run))) !== undefined;
  }

  /** Removes outputs whose `<day>` is over. Answers their number. */
  async sweep(tenant: string, nowMs: number): Promise<number> {
    const { kv, blobs } = await this.#stores.tenant(tenant);
    let removed = 0;
    for await (const entry of entriesUnder(kv, OUTPUT)) {
      if (entry.key >= `${OUTPUT}${day(nowMs)}`) break;
      await removeAll(blobs, decodeStored<Attempt>(entry.value));
      await kv.delete(entry.key);
      removed++;
    }
    return removed;
  }

  /** Removes the output of an ended run. Safe to repeat. */
  async remove(tenant: string, run: RunName): Promise<void> {
    const { kv, blobs } = await this.#stores.tenant(tenant);
    const entry = await kv.get(outputKey(run));
    if (!entry) return;
    await removeAll(blobs, decodeStored<Attempt>(entry.value));
    await kv.delete(entry.key);
  }
}

/** Removes the streams of all attempts. */
async function removeAll(blobs: Pick<BlobStore, "removeStream">, last: Attempt): Promise<void> {
  for (let attempt = last.attempt; attempt >= 0; attempt--) await blobs.removeStream(streamOf({ ...last, attempt }));
}

/** The note that names the valid attempt. Write it together with the entry of the run. */
export function outputNote({ runId, host, attempt }: Attempt): KvOperation {
  return {
    kind: "put",
    key: outputKey({ runId, host }),
    value: encodeJson({ runId, host, attempt } satisfies Attempt),
  };
}

/** Key of the note. Outputs are kept one day longer than the row of the run. */
function outputKey(run: RunName): string {
  const keepUntilMs = (ulidTimeMs(run.runId) ?? 0) + (JOB_RUN_TTL_DAYS + 1) * MS_PER_DAY;
  return `${OUTPUT}${day(keepUntilMs)}/${nameOf(run)}`;
}

export function nameOf({ runId, host }: RunName): string {
  return `${runId}/${encodeURIComponent(host)}`;
}

/** Identifies a run on a host within this process. */
export function keyOf({ runId, host }: RunName): string {
  return `${runId}/${host}`;
}

function streamOf(run: Attempt): string {
  return run.attempt === 0 ? `jobs/${nameOf(run)}` : `jobs/${nameOf(run)}/${run.attempt}`;
}

function day(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}
