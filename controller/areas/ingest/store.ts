import { AppError } from "../../../common/errors.ts";
import { INGEST_CLAIM_ATTEMPTS_MAX, INGEST_STREAMS_PER_HOST_MAX } from "../../../common/limits.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { entriesUnder } from "../../store/entries.ts";
import type { KvStore } from "../../store/kv.ts";
import { putOnce } from "../../store/once.ts";

/**
 * How far one stream of one agent is safe, which session may continue it, and which batch was perhaps begun beyond.
 * That batch is repeated with the same rules and times, so that any holder writes the same rows.
 */
export interface Mark {
  readonly host: string;
  /** New with each session of the stream; only the session that wrote the latest one may write. */
  readonly claim: string;
  /** Every entry up to this sequence is stored. */
  readonly acknowledged: number;
  /** Absent: no batch was begun beyond `acknowledged`. */
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
  /** For the writes of keyed objects: the time of entry `first`. */
  readonly writeUs: number;
}

/** The text the rule had, or why it could not be used. */
export type PinnedRule = { readonly digest: string } | { readonly error: string };

export interface VersionedMark {
  readonly mark: Mark;
  /** 0: there is none yet. */
  readonly revision: number;
}

/** Marks lie under `ingest/<stream id>`; which streams a host has, the oldest first, under `ingest-streams/<host>`. */
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

  /**
   * Call before a session saves its first mark of a stream. Forgets the oldest streams of the host beyond
   * `INGEST_STREAMS_PER_HOST_MAX`: their holders fail with their next write, and what they acknowledged is not known
   * any more. Idempotent.
   */
  async register(streamId: string, host: string): Promise<void> {
    for (let attempt = 0; attempt < INGEST_CLAIM_ATTEMPTS_MAX; attempt++) {
      const entry = await this.#kv.get(streamsKey(host));
      const known = entry ? decodeStored<readonly string[]>(entry.value) : [];
      const isListed = known.includes(streamId);
      if (isListed && entry?.expiresAtMs === undefined) return;
      const kept = isListed ? known.filter((other) => other !== streamId) : await this.#forgetOldest(known);
      if (
        kept &&
        (await this.#put(streamsKey(host), encodeJson([...kept, streamId]), entry?.revision ?? 0)) !== undefined
      )
        return;
    }
    throw new AppError("unavailable", `The stream ${streamId} could not be noted: others of ${host} keep beginning.`);
  }

  /** The streams of a host that is there no more are forgotten at that time, but for those that go on by then. */
  async retire(host: string, expiresAtMs: number): Promise<void> {
    const list = await this.#kv.get(streamsKey(host));
    if (!list) return;
    for (const streamId of decodeStored<readonly string[]>(list.value))
      await this.#expire(markKey(streamId), expiresAtMs);
    await this.#expire(list.key, expiresAtMs);
  }

  /**
   * Marks from before streams were listed, of agents that have not come back since, are forgotten at that time. Looks
   * through all marks once in the life of a tenant.
   */
  async retireUnlisted(expiresAtMs: number): Promise<void> {
    if (await this.#kv.get(ALL_LISTED)) return;
    for await (const { key, value } of entriesUnder(this.#kv, MARKS)) {
      const list = await this.#kv.get(streamsKey(decodeStored<Mark>(value).host));
      const listed = list ? decodeStored<readonly string[]>(list.value) : [];
      if (!listed.includes(key.slice(MARKS.length))) await this.#expire(key, expiresAtMs);
    }
    await this.#kv.put(ALL_LISTED, encodeJson(true));
  }

  /** A session may write it at the same moment; the next session takes the end away again. */
  async #expire(key: string, expiresAtMs: number): Promise<void> {
    for (let attempt = 0; attempt < INGEST_CLAIM_ATTEMPTS_MAX; attempt++) {
      const entry = await this.#kv.get(key);
      if (!entry || entry.expiresAtMs !== undefined) return;
      if ((await this.#kv.put(key, entry.value, { ifRevision: entry.revision, expiresAtMs })).ok) return;
    }
  }

  /** Leaves room for one more; `undefined` when one that was to be forgotten went on meanwhile. */
  async #forgetOldest(known: readonly string[]): Promise<readonly string[] | undefined> {
    let kept = known;
    while (kept.length >= INGEST_STREAMS_PER_HOST_MAX) {
      const marks = await Promise.all(kept.map((streamId) => this.#kv.get(markKey(streamId))));
      const idle = marks.findIndex((entry) => !entry || decodeStored<Mark>(entry.value).begun === undefined);
      const at = Math.max(0, idle);
      const mark = marks[at];
      if (mark && !(await this.#kv.delete(mark.key, { ifRevision: mark.revision })).ok) return undefined;
      kept = kept.toSpliced(at, 1);
    }
    return kept;
  }

  /** Its new revision; `undefined` when another session, with a claim of its own, wrote the mark after `revision`. */
  async save(streamId: string, mark: Mark, revision: number): Promise<number | undefined> {
    return this.#put(markKey(streamId), encodeJson(mark), revision);
  }

  async #put(key: string, value: Uint8Array, ifRevision: number): Promise<number | undefined> {
    const written = await putOnce(this.#kv, { key, value, ifRevision });
    return written.ok ? written.revision : undefined;
  }
}

const MARKS = "ingest/";
/** Stands when every mark is listed or has an end. */
const ALL_LISTED = "ingest-streams-listed";

/** For marks written before claims existed. */
const NO_WRITES = { claim: "", nextWriteUs: 0 } as const;

function streamsKey(host: string): string {
  return `ingest-streams/${encodeURIComponent(host)}`;
}

function markKey(streamId: string): string {
  if (!/^[A-Za-z0-9_-]{8,64}$/.test(streamId))
    throw new AppError("invalid", "A stream id has 8 to 64 letters, digits, - and _.");
  return MARKS + streamId;
}
