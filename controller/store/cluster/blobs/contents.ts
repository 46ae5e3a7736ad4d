import { createHash } from "node:crypto";
import type { types } from "cassandra-driver";
import { AppError, errorText } from "../../../../common/errors.ts";
import { BLOB_CHUNK_MAX_BYTES, BLOB_MAX_BYTES, BLOB_OWNER_MAX_BYTES } from "../../../../common/limits.ts";
import type { BeforeMark, BlobInfo, ByteRange } from "../../blobs.ts";
import { chunksAhead, sha256OnThread } from "../../blobs/chunks.ts";
import { requestText } from "../cursor.ts";
import { plainBytes } from "../entities/entities.ts";
import type { Tables } from "../tables.ts";
import { TokenScan } from "../upkeep/token-scan.ts";

const DIGEST_PATTERN = /^[0-9a-f]{64}$/;
/** After this time, a sweep treats an unfinished upload as abandoned. */
const UPLOAD_ABANDONED_MS = 24 * 3_600_000;
const PENDING = "pending";
/** Time for which a removed mark is remembered; clocks of controllers differ by less. */
const MARK_REMOVED_SECONDS = 24 * 3_600;
const SWEEP_PAGE = 500;

interface Upload {
  readonly name: string;
  readonly size: number;
  readonly madeMs: number;
  readonly condemned: boolean;
  /** Time of the row's latest write, by its writer's clock. The next write must have a later time. */
  readonly timeUs: number;
}

/**
 * Contents by digest. The bytes are in `chunks` under the name of their upload. For each digest, `contents` lists its
 * uploads (one, except after races) and the owners' marks.
 *
 * Sweep and put work without a lock. Put writes its mark, then looks for an upload that is not condemned; without one
 * it keeps its own. Sweep condemns the uploads, then looks for marks. In any order, one of them sees the other.
 */
export class Contents {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async put(
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    owner: string,
    beforeMark?: BeforeMark,
  ): Promise<BlobInfo> {
    checkOwner(owner);
    const upload = Buffer.from(this.#tables.cassandra.runtime.random.bytes(16)).toString("hex");
    await this.#setUpload(PENDING, { name: upload, size: 0, timeUs: 0 });
    try {
      const info = await this.#upload(upload, bytes);
      await beforeMark?.(info);
      await this.#setMark(info.digest, owner, true);
      const present = await this.#upright(info.digest);
      await this.#setUpload(blobName(info.digest), present ?? { name: upload, size: info.size, timeUs: 0 });
      if (present !== undefined) await this.#removeChunks(upload);
      await this.#removeUpload(PENDING, upload);
      return info;
    } catch (error) {
      await this.#discard(upload);
      throw error;
    }
  }

  async stat(digest: string): Promise<BlobInfo | undefined> {
    const upload = DIGEST_PATTERN.test(digest) ? await this.#upright(digest) : undefined;
    return upload === undefined ? undefined : { digest, size: upload.size };
  }

  async *read(digest: string, range: ByteRange = {}): AsyncGenerator<Uint8Array> {
    const upload = DIGEST_PATTERN.test(digest) ? await this.#upright(digest) : undefined;
    if (upload === undefined) throw new AppError("not_found", `There is no content ${digest}.`);
    const [start, end] = [Math.max(0, range.start ?? 0), Math.min(range.end ?? upload.size, upload.size)];
    yield* chunksAhead((part) => this.#chunk(upload, part, digest), { start, end });
  }

  async mark(digest: string, owner: string): Promise<void> {
    checkOwner(owner);
    if ((await this.stat(digest)) === undefined) throw new AppError("not_found", `There is no content ${digest}.`);
    await this.#setMark(digest, owner, true);
    if ((await this.stat(digest)) === undefined) throw new AppError("not_found", `There is no content ${digest}.`);
  }

  async unmark(digest: string, owner: string): Promise<void> {
    await this.#setMark(digest, owner, false);
  }

  async sweep(graceMs: number): Promise<number> {
    const { cassandra, keyspace } = this.#tables;
    const before = cassandra.runtime.clock.nowMs() - graceMs;
    let swept = 0;
    const scan = new TokenScan(this.#tables, {
      table: "contents",
      columns: "content",
      partitionKey: "content",
      isDistinct: true,
    });
    const request = requestText(keyspace, "sweep");
    let cursor: string | undefined;
    do {
      const page = await scan.page(request, { limit: SWEEP_PAGE, ...(cursor !== undefined && { cursor }) });
      for (const row of page.rows) {
        const digest = digestOf(String(row.content));
        if (digest !== undefined && (await this.#sweepOne(digest, before))) swept++;
      }
      ({ cursor } = page);
    } while (cursor !== undefined);
    await this.#sweepAbandoned(Math.min(before, cassandra.runtime.clock.nowMs() - UPLOAD_ABANDONED_MS));
    return swept;
  }

  async #upload(upload: string, bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<BlobInfo> {
    const hash = createHash("sha256");
    let size = 0;
    let writing: Promise<void> | undefined;
    try {
      for await (const chunk of inChunks(bytes)) {
        hash.update(chunk);
        await writing;
        // Written while the next chunk arrives.
        writing = this.#writeChunk(upload, size / BLOB_CHUNK_MAX_BYTES, chunk);
        writing.catch(() => undefined);
        size += chunk.length;
      }
      await writing;
    } finally {
      // The caller removes the chunks of a failed upload. None may be written after that.
      await writing?.catch(() => undefined);
    }
    return { digest: hash.digest("hex"), size };
  }

  async #sweepOne(digest: string, before: number): Promise<boolean> {
    const { uploads, marks } = await this.#rows(digest);
    if (marks > 0 || uploads.length === 0 || uploads.some((upload) => upload.madeMs > before)) return false;
    for (const upload of uploads) await this.#condemn(digest, upload, true);
    const names = new Set(uploads.map((upload) => upload.name));
    const now = await this.#rows(digest);
    const condemned = now.uploads.filter((upload) => names.has(upload.name));
    if (now.marks > 0) {
      for (const upload of condemned) await this.#condemn(digest, upload, false);
      return false;
    }
    for (const upload of condemned) {
      await this.#removeChunks(upload.name, upload.timeUs);
      await this.#removeUpload(blobName(digest), upload.name, upload.timeUs);
    }
    return true;
  }

  async #sweepAbandoned(before: number): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const query = `SELECT name, made_ms, WRITETIME(size) AS size_us FROM ${keyspace}.contents WHERE content = ? AND kind = 'upload'`;
    const rows = await cassandra.read({ query, params: [PENDING] }, cassandra.deadline());
    for (const row of rows)
      if (Number(row.made_ms) <= before) await this.#discard(String(row.name), Number(row.size_us));
  }

  /** An upload that readers may use; one that a sweep has condemned counts as absent. */
  async #upright(digest: string): Promise<Upload | undefined> {
    return (await this.#rows(digest)).uploads.find((upload) => !upload.condemned);
  }

  async #rows(digest: string): Promise<{ readonly uploads: readonly Upload[]; readonly marks: number }> {
    const { cassandra, keyspace } = this.#tables;
    const times = "WRITETIME(size) AS size_us, WRITETIME(condemned) AS condemned_us";
    const statement = {
      query: `SELECT kind, name, size, made_ms, condemned, ${times} FROM ${keyspace}.contents WHERE content = ?`,
      params: [blobName(digest)],
    };
    const rows = await cassandra.read(statement, cassandra.deadline());
    return {
      uploads: rows.filter((row) => row.kind === "upload" && row.size !== null).map(toUpload),
      marks: rows.filter((row) => row.kind === "mark" && row.condemned !== true).length,
    };
  }

  async #chunk({ name, size }: Upload, part: number, digest: string): Promise<Uint8Array> {
    const { cassandra, keyspace } = this.#tables;
    const query = `SELECT bytes, digest FROM ${keyspace}.chunks WHERE content = ? AND part = ? AND position = 0`;
    const [row] = await cassandra.read({ query, params: [uploadName(name), part] }, cassandra.deadline());
    if (row === undefined) throw new AppError("not_found", `Content ${digest} is being removed.`);
    const bytes = plainBytes(row.bytes);
    if (Buffer.compare(await sha256OnThread(bytes), row.digest) !== 0)
      throw new AppError("internal", `Content ${digest} is damaged in its chunk ${part}.`);
    if (bytes.length !== Math.min(BLOB_CHUNK_MAX_BYTES, size - part * BLOB_CHUNK_MAX_BYTES))
      throw new AppError("internal", `Content ${digest} is shorter than it should be.`);
    return bytes;
  }

  async #writeChunk(upload: string, part: number, bytes: Uint8Array): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const query = `UPDATE ${keyspace}.chunks USING TIMESTAMP ? SET length = ?, bytes = ?, digest = ? WHERE content = ? AND part = ? AND position = 0`;
    const digest = Buffer.from(await sha256OnThread(bytes));
    const params = [BigInt(cassandra.nextTimeUs()), bytes.length, bytes, digest, uploadName(upload), part];
    await cassandra.write([{ query, params }], cassandra.deadline());
  }

  /** Removes chunks up to the first missing one; chunks are written one after another, so it marks the end. */
  async #removeChunks(upload: string, writtenUs = 0): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    for (let part = 0; ; part++) {
      const params = [uploadName(upload), part];
      const look = `SELECT length FROM ${keyspace}.chunks WHERE content = ? AND part = ? AND position = 0`;
      if ((await cassandra.read({ query: look, params }, cassandra.deadline())).length === 0) return;
      const query = `DELETE FROM ${keyspace}.chunks USING TIMESTAMP ? WHERE content = ? AND part = ?`;
      await cassandra.write([{ query, params: [this.#above(writtenUs), ...params] }], cassandra.deadline());
    }
  }

  /** Best effort: a sweep later removes what is left of a failed upload. */
  async #discard(upload: string, writtenUs = 0): Promise<void> {
    try {
      await this.#removeChunks(upload, writtenUs);
      await this.#removeUpload(PENDING, upload, writtenUs);
    } catch (error) {
      this.#tables.cassandra.runtime.log.debug(
        { reason: errorText(error) },
        "parts of a failed upload stay for the sweep",
      );
    }
  }

  async #setUpload(content: string, upload: Pick<Upload, "name" | "size" | "timeUs">): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const query = `UPDATE ${keyspace}.contents USING TIMESTAMP ? SET size = ?, made_ms = ? WHERE content = ? AND kind = 'upload' AND name = ?`;
    const params = [
      this.#above(upload.timeUs),
      BigInt(upload.size),
      BigInt(cassandra.runtime.clock.nowMs()),
      content,
      upload.name,
    ];
    await cassandra.write([{ query, params }], cassandra.deadline());
  }

  /**
   * Writes with a time later than the last write of this mark, by any clock. Therefore a removed mark leaves a row for
   * a while: Cassandra does not return the write time of a deleted row.
   */
  async #setMark(digest: string, owner: string, marked: boolean): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const place = [blobName(digest), owner];
    const deadline = cassandra.deadline();
    const row = "WHERE content = ? AND kind = 'mark' AND name = ?";
    const look = `SELECT WRITETIME(size) AS set_us, WRITETIME(condemned) AS removed_us FROM ${keyspace}.contents ${row}`;
    const [before] = await cassandra.read({ query: look, params: place }, deadline);
    if (before === undefined && !marked) return;
    const time = this.#above(Math.max(Number(before?.set_us ?? 0), Number(before?.removed_us ?? 0)));
    const set = `UPDATE ${keyspace}.contents USING TIMESTAMP ? SET size = 0, made_ms = ?, condemned = false ${row}`;
    const remove = `UPDATE ${keyspace}.contents USING TIMESTAMP ? AND TTL ${MARK_REMOVED_SECONDS} SET size = null, made_ms = null, condemned = true ${row}`;
    const params = marked ? [time, BigInt(cassandra.runtime.clock.nowMs()), ...place] : [time, ...place];
    await cassandra.write([{ query: marked ? set : remove, params }], deadline);
  }

  async #condemn(digest: string, upload: Upload, condemned: boolean): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const query = `UPDATE ${keyspace}.contents USING TIMESTAMP ? SET condemned = ? WHERE content = ? AND kind = 'upload' AND name = ?`;
    const params = [this.#above(upload.timeUs), condemned, blobName(digest), upload.name];
    await cassandra.write([{ query, params }], cassandra.deadline());
  }

  async #removeUpload(content: string, name: string, writtenUs = 0): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const query = `DELETE FROM ${keyspace}.contents USING TIMESTAMP ? WHERE content = ? AND kind = 'upload' AND name = ?`;
    await cassandra.write([{ query, params: [this.#above(writtenUs), content, name] }], cassandra.deadline());
  }

  /** The current time, but at least one microsecond after `timeUs`. */
  #above(timeUs: number): bigint {
    return BigInt(Math.max(this.#tables.cassandra.nextTimeUs(), timeUs + 1));
  }
}

/**
 * The content that a row of `contents` names; `undefined` for other rows, and for uploads that a sweep has condemned.
 */
export function contentOf(row: types.Row): BlobInfo | undefined {
  const digest = digestOf(String(row.content));
  if (digest === undefined || row.kind !== "upload" || row.size === null || row.condemned === true) return undefined;
  return { digest, size: Number(row.size) };
}

function toUpload(row: types.Row): Upload {
  return {
    name: String(row.name),
    size: Number(row.size),
    madeMs: Number(row.made_ms),
    condemned: row.condemned === true,
    timeUs: Math.max(Number(row.size_us), Number(row.condemned_us ?? 0)),
  };
}

/** The same bytes in pieces of the full chunk size; the last one may be shorter. */
async function* inChunks(bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Buffer> {
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  let total = 0;
  for await (const piece of bytes) {
    total += piece.length;
    if (total > BLOB_MAX_BYTES) throw new AppError("too_large", `A content has at most ${BLOB_MAX_BYTES} bytes.`);
    held.push(piece);
    heldBytes += piece.length;
    if (heldBytes < BLOB_CHUNK_MAX_BYTES) continue;
    const whole = Buffer.concat(held);
    const rest = whole.length % BLOB_CHUNK_MAX_BYTES;
    for (let at = 0; at < whole.length - rest; at += BLOB_CHUNK_MAX_BYTES)
      yield whole.subarray(at, at + BLOB_CHUNK_MAX_BYTES);
    held = [whole.subarray(whole.length - rest)];
    heldBytes = rest;
  }
  if (heldBytes > 0) yield Buffer.concat(held);
}

function checkOwner(owner: string): void {
  const size = Buffer.byteLength(owner);
  if (size === 0 || size > BLOB_OWNER_MAX_BYTES)
    throw new AppError("invalid", `The owner of a content is a text of 1 to ${BLOB_OWNER_MAX_BYTES} bytes.`);
}

function blobName(digest: string): string {
  return `b/${digest}`;
}

function uploadName(upload: string): string {
  return `u/${upload}`;
}

function digestOf(content: string): string | undefined {
  return content.startsWith("b/") ? content.slice(2) : undefined;
}
