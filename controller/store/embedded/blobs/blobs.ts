import { createHash } from "node:crypto";
import { join } from "node:path";
import { AppError } from "../../../../common/errors.ts";
import type { Files } from "../../../../common/files.ts";
import { BLOB_OWNER_MAX_BYTES, BLOB_ROW_MAX_BYTES } from "../../../../common/limits.ts";
import { makeFolder } from "../../../files.ts";
import type { BeforeMark, BlobInfo, BlobStore, ByteRange, StreamPart } from "../../blobs.ts";
import { decodeStored, encodePacked } from "../../format.ts";
import type { AlsoInCommit } from "../../also-in-commit.ts";
import { beginningOf } from "../../blobs/beginning.ts";
import { Contents, isDigest } from "./contents.ts";
import type { EmbeddedRuntime } from "../runtime.ts";
import type { Environment } from "../environment/environment.ts";
import { diskErrors } from "./files.ts";
import { bytesText, concat, following, prefixEnd, textBytes } from "../bytes/keys.ts";
import { Streams, type StreamSizes } from "./streams.ts";
import { ActionsByName } from "../actions-by-name.ts";

/** The first format of the environment in which streams have sizes. */
const FORMAT_STREAM_SIZES = 2;
const PRESENT = encodePacked(1);
/** Contents checked before other work gets its turn. */
const SWEEP_BATCH = 500;

export interface BlobStoreOptions {
  readonly env: Environment;
  readonly folder: string;
  readonly files: Files;
  readonly runtime: EmbeddedRuntime;
}

/**
 * The seam for bytes. A content of at most `BLOB_ROW_MAX_BYTES` is a row (`smallContents`), a larger one is a file. LMDB
 * records which contents exist (`blobs`: digest to the time of its last put) and their owners' marks (`marks`: digest
 * and owner). These rows are written with a small content, and before a file gets its name, so that a sweep misses none.
 * Versions before format 5 stored small contents in files as well.
 */
export class EmbeddedBlobStore implements BlobStore {
  readonly #env: Environment;
  readonly #runtime: EmbeddedRuntime;
  readonly #contents: Contents;
  readonly #streams: Streams;
  /** Putting, marking and sweeping one content exclude each other. */
  readonly #turns = new ActionsByName();

  private constructor({ env, folder, files, runtime }: BlobStoreOptions) {
    this.#env = env;
    this.#runtime = runtime;
    this.#contents = new Contents({ folder: join(folder, "contents"), files, random: runtime.random });
    this.#streams = new Streams({ folder: join(folder, "streams"), files, sizes: sizesIn(env) });
  }

  static async open(options: BlobStoreOptions): Promise<EmbeddedBlobStore> {
    const store = new EmbeddedBlobStore(options);
    await store.#contents.open();
    await makeFolder(options.files, join(options.folder, "streams"));
    if (options.env.format < FORMAT_STREAM_SIZES) await store.#streams.adopt();
    return store;
  }

  async put(
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    owner: string,
    beforeMark?: BeforeMark,
  ): Promise<BlobInfo> {
    checkOwner(owner);
    this.#env.read();
    const begun = await beginningOf(bytes, BLOB_ROW_MAX_BYTES);
    if (begun.isWhole) return this.#putSmall(begun.bytes, owner, beforeMark);
    const kept = this.#contents.put(begun.all, async (info, finish) => {
      await beforeMark?.(info);
      await this.#turns.take(info.digest, async () => {
        await this.#note(info.digest, owner);
        await finish();
      });
    });
    try {
      return await diskErrors(kept);
    } finally {
      await begun.end();
    }
  }

  async stat(digest: string): Promise<BlobInfo | undefined> {
    const small = this.#small(digest);
    return small === undefined ? this.#contents.stat(digest) : { digest, size: small.length };
  }

  read(digest: string, range: ByteRange = {}): AsyncIterable<Uint8Array> {
    this.#env.read();
    return this.#read(digest, range);
  }

  async mark(digest: string, owner: string): Promise<void> {
    checkOwner(owner);
    await this.#turns.take(digest, async () => {
      const isSmall = this.#env.read().smallContents.doesExist(textBytes(digest));
      if (!isSmall && !(await this.#contents.has(digest)))
        throw new AppError("not_found", `There is no content ${digest}.`);
      await this.#env.write(() => this.#env.tables.marks.put(markKey(digest, owner), PRESENT));
    });
  }

  async unmark(digest: string, owner: string): Promise<void> {
    checkOwner(owner);
    await this.#env.write(() => this.#env.tables.marks.remove(markKey(digest, owner)));
  }

  async sweep(graceMs: number): Promise<number> {
    let removed = 0;
    let after: Uint8Array = Uint8Array.of(0);
    for (;;) {
      const batch = [...this.#env.read().blobs.getKeys({ start: after, limit: SWEEP_BATCH })];
      for (const key of batch) if (await this.#sweepOne(bytesText(key), graceMs)) removed += 1;
      if (batch.length < SWEEP_BATCH) return removed;
      after = following(batch.at(-1)!);
    }
  }

  async append(stream: string, offset: number, bytes: Uint8Array): Promise<{ readonly size: number }> {
    this.#env.read();
    return this.#streams.append(stream, offset, bytes);
  }

  async readStream(stream: string, offset: number, maxBytes: number): Promise<StreamPart> {
    this.#env.read();
    return this.#streams.read(stream, offset, maxBytes);
  }

  async removeStream(stream: string): Promise<void> {
    this.#env.read();
    await this.#streams.remove(stream);
  }

  async close(): Promise<void> {
    await this.#turns.idle();
    await this.#streams.close();
  }

  async #putSmall(content: Uint8Array, owner: string, beforeMark?: BeforeMark): Promise<BlobInfo> {
    const digest = createHash("sha256").update(content).digest("hex");
    const info = { digest, size: content.length };
    await beforeMark?.(info);
    await this.#turns.take(digest, () => this.#note(digest, owner, content));
    return info;
  }

  /**
   * Stores and marks a small content as part of another write: call the returned function inside that. A sweep at the same
   * time spares it.
   */
  within({ digest, bytes, owner }: NonNullable<AlsoInCommit["content"]>): () => void {
    checkOwner(owner);
    if (!isDigest(digest) || bytes.length > BLOB_ROW_MAX_BYTES)
      throw new AppError("invalid", `A content in a commit has its digest and at most ${BLOB_ROW_MAX_BYTES} bytes.`);
    return () => this.#noteNow(digest, owner, bytes);
  }

  #note(digest: string, owner: string, small?: Uint8Array): Promise<void> {
    return this.#env.write(() => this.#noteNow(digest, owner, small));
  }

  /** Call it inside a write transaction. `small`: the content, if it is stored in a row. A damaged row is replaced. */
  #noteNow(digest: string, owner: string, small?: Uint8Array): void {
    const { blobs, marks, smallContents } = this.#env.tables;
    const key = textBytes(digest);
    blobs.put(key, encodePacked(this.#runtime.clock.nowMs()));
    marks.put(markKey(digest, owner), PRESENT);
    if (small !== undefined && smallContents.row(key)?.isSound !== true) smallContents.put(key, encodePacked(small));
  }

  /** The content if it is stored in a row. `AppError("unavailable")` if it is damaged. */
  #small(digest: string): Uint8Array | undefined {
    const { smallContents } = this.#env.read();
    const row = isDigest(digest) ? smallContents.getSound(textBytes(digest)) : undefined;
    return row && decodeStored<Uint8Array>(row);
  }

  async *#read(digest: string, range: ByteRange): AsyncIterable<Uint8Array> {
    const small = this.#small(digest);
    if (small === undefined) yield* this.#contents.read(digest, range);
    else {
      const part = small.subarray(Math.max(0, range.start ?? 0), Math.max(0, range.end ?? small.length));
      if (part.length > 0) yield part;
    }
  }

  /** Removes the file first: a row without a file is swept again, but a file without a row would stay forever. */
  async #sweepOne(digest: string, graceMs: number): Promise<boolean> {
    return this.#turns.take(digest, async () => {
      const row = this.#env.read().blobs.get(textBytes(digest));
      const young = row !== undefined && decodeStored<number>(row) + graceMs > this.#runtime.clock.nowMs();
      if (young || this.#marked(digest)) return false;
      await this.#contents.remove(digest);
      return this.#env.write(() => {
        // The commit of another write may have marked it meanwhile, and then it has stored its row.
        if (this.#marked(digest)) return false;
        this.#env.tables.blobs.remove(textBytes(digest));
        this.#env.tables.smallContents.remove(textBytes(digest));
        return true;
      });
    });
  }

  #marked(digest: string): boolean {
    const prefix = textBytes(digest);
    return [...this.#env.read().marks.getKeys({ start: prefix, end: prefixEnd(prefix)!, limit: 1 })].length > 0;
  }
}

function sizesIn(env: Environment): StreamSizes {
  return {
    get(digest) {
      const row = env.read().streams.get(textBytes(digest));
      return row === undefined ? undefined : decodeStored<number>(row);
    },
    set: (digest, size) =>
      env.write(() => {
        if (size === undefined) env.tables.streams.remove(textBytes(digest));
        else env.tables.streams.put(textBytes(digest), encodePacked(size));
      }),
  };
}

function markKey(digest: string, owner: string): Uint8Array {
  return concat(textBytes(digest), textBytes(owner));
}

function checkOwner(owner: string): void {
  const size = Buffer.byteLength(owner);
  if (size === 0 || size > BLOB_OWNER_MAX_BYTES)
    throw new AppError("invalid", `The owner of a content is a text of 1 to ${BLOB_OWNER_MAX_BYTES} bytes.`);
}
