import { AppError, isAppError } from "../../../common/errors.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvStore, KvWriteResult } from "../../store/kv.ts";

/**
 * How far one stream of one agent is safe, who may go on with it, and what was perhaps begun beyond. What was begun is repeated with
 * the very same rules and times, so that it writes the very same rows, whoever repeats it.
 */
export interface Mark {
  readonly host: string;
  /** New with each session of the stream; only who wrote the latest one writes on. */
  readonly claim: string;
  /** Every entry up to this sequence is stored. */
  readonly acknowledged: number;
  /** Absent: nobody began anything beyond `acknowledged`. */
  readonly begun?: BegunBatch;
  /** Above every time that was given to a write of this stream, in microseconds. */
  readonly nextWriteUs: number;
}

/** A batch that may be stored in part. */
export interface BegunBatch {
  readonly first: number;
  readonly last: number;
  /** By rule key. */
  readonly rules: Readonly<Record<string, PinnedRule>>;
  /** Of the writes of keyed objects: the time that entry `first` has. */
  readonly writeUs: number;
}

/** The text the rule had, or why it could not be used. */
export type PinnedRule = { readonly digest: string } | { readonly error: string };

export interface VersionedMark {
  readonly mark: Mark;
  /** 0: there is none yet. */
  readonly revision: number;
}

/** Marks lie under `ingest/<stream id>`. */
export class MarkStore {
  readonly #kv: KvStore;

  constructor(kv: KvStore) {
    this.#kv = kv;
  }

  /** A stream belongs to the host that began it; another one naming it is `AppError("denied")`. */
  async load(streamId: string, host: string): Promise<VersionedMark> {
    const entry = await this.#kv.get(markKey(streamId));
    if (!entry) return { mark: { host, claim: "", acknowledged: 0, nextWriteUs: 0 }, revision: 0 };
    const mark = { ...NO_WRITES, ...decodeStored<Mark>(entry.value) };
    if (mark.host !== host) throw new AppError("denied", `The stream ${streamId} belongs to another host.`);
    return { mark, revision: entry.revision };
  }

  /** Its new revision; `undefined` when somebody else wrote the mark after `revision`. */
  async save(streamId: string, mark: Mark, revision: number): Promise<number | undefined> {
    const value = encodeJson(mark);
    const written = await repeated(() => this.#kv.put(markKey(streamId), value, { ifRevision: revision }));
    if (written.ok) return written.revision;
    // The first of two attempts may have succeeded: nobody else writes this claim.
    const mine = written.current !== undefined && Buffer.compare(written.current.value, value) === 0;
    return mine ? written.current.revision : undefined;
  }
}

/** Of marks written before claims were known. */
const NO_WRITES = { claim: "", nextWriteUs: 0 } as const;

async function repeated(write: () => Promise<KvWriteResult>): Promise<KvWriteResult> {
  try {
    return await write();
  } catch (error) {
    if (isAppError(error, "unknown_outcome")) return write();
    throw error;
  }
}

function markKey(streamId: string): string {
  if (!/^[A-Za-z0-9_-]{8,64}$/.test(streamId))
    throw new AppError("invalid", "A stream id has 8 to 64 letters, digits, - and _.");
  return `ingest/${streamId}`;
}
