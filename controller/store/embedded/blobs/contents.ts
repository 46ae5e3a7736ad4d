import { createHash } from "node:crypto";
import { join } from "node:path";
import { AppError } from "../../../../common/errors.ts";
import type { Files, OpenFile } from "../../../../common/files.ts";
import { BLOB_CHUNK_MAX_BYTES, BLOB_MAX_BYTES } from "../../../../common/limits.ts";
import type { Random } from "../../../../common/time.ts";
import { isMissing, makeFolder, readWholly, removeFile, syncFolder, writeWholly } from "../../../files.ts";
import type { BlobInfo, ByteRange } from "../../blobs.ts";
import { chunksAhead, sha256OnThread, type Digest } from "../../blobs/chunks.ts";
import { moveInto, PARTIAL } from "./files.ts";

/**
 * A content is one file, named by its digest. After the data come the digests of its chunks, so that any part can be
 * checked, and a footer.
 */
const DIGEST_BYTES = 32;
const FORMAT = 1;
/** Format byte, seven unused bytes, size. */
const FOOTER_BYTES = 16;

interface Opened {
  readonly handle: OpenFile;
  readonly size: number;
}

export interface ContentsOptions {
  readonly folder: string;
  readonly files: Files;
  readonly random: Random;
  /** Digest of a chunk. A simulated disk that counts turns of the event loop passes one without threads. */
  readonly sha256?: Digest;
}

export class Contents {
  readonly #folder: string;
  readonly #files: Files;
  readonly #random: Random;
  readonly #sha256: Digest;

  constructor({ folder, files, random, sha256 = sha256OnThread }: ContentsOptions) {
    this.#folder = folder;
    this.#files = files;
    this.#random = random;
    this.#sha256 = sha256;
  }

  /** Removes incomplete files that a crash left. */
  async open(): Promise<void> {
    await makeFolder(this.#files, this.#folder);
    for (const name of await this.#files.readdir(this.#folder)) {
      if (name.endsWith(PARTIAL)) await this.#files.rm(join(this.#folder, name), { force: true });
    }
  }

  /** Calls `keep` with the received content. `keep` calls `finish` to make it durable under its digest. */
  async put(
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    keep: (info: BlobInfo, finish: () => Promise<void>) => Promise<void>,
  ): Promise<BlobInfo> {
    const raw = join(this.#folder, Buffer.from(this.#random.bytes(12)).toString("hex") + PARTIAL);
    try {
      const { info, chunks } = await this.#takeIn(raw, bytes);
      await keep(info, async () => {
        if (await this.has(info.digest)) return;
        await this.#finish(raw, info, chunks);
      });
      return info;
    } finally {
      await removeFile(this.#files, raw);
    }
  }

  async stat(digest: string): Promise<BlobInfo | undefined> {
    const opened = await this.#open(digest);
    await opened?.handle.close();
    return opened === undefined ? undefined : { digest, size: opened.size };
  }

  /**
   * True if the content is durable. Syncs the folders, because its writer may have been killed before the name was
   * durable.
   */
  async has(digest: string): Promise<boolean> {
    if ((await this.stat(digest)) === undefined) return false;
    await syncFolder(this.#files, this.#folder);
    await syncFolder(this.#files, this.#shelf(digest));
    return true;
  }

  async *read(digest: string, range: ByteRange): AsyncIterable<Uint8Array> {
    const opened = await this.#open(digest);
    if (opened === undefined) throw new AppError("not_found", `There is no content ${digest}.`);
    try {
      const start = Math.max(0, range.start ?? 0);
      const end = Math.min(opened.size, range.end ?? opened.size);
      yield* chunksAhead((index) => readChunk(opened, { index, digest, sha256: this.#sha256 }), { start, end });
    } finally {
      await opened.handle.close();
    }
  }

  async remove(digest: string): Promise<void> {
    if (await removeFile(this.#files, this.#path(digest))) await syncFolder(this.#files, this.#shelf(digest));
  }

  async #takeIn(
    raw: string,
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<{ info: BlobInfo; chunks: readonly Uint8Array[] }> {
    const handle = await this.#files.open(raw, "wx", 0o600);
    try {
      const whole = createHash("sha256");
      const chunks: Uint8Array[] = [];
      let size = 0;
      for await (const chunk of chunked(bytes)) {
        size += chunk.length;
        if (size > BLOB_MAX_BYTES) throw new AppError("too_large", `A content has at most ${BLOB_MAX_BYTES} bytes.`);
        const written = writeWholly(handle, chunk, size - chunk.length);
        const hashed = this.#sha256(chunk);
        whole.update(chunk);
        const [chunkDigest] = await Promise.all([hashed, written]);
        chunks.push(chunkDigest);
      }
      return { info: { digest: whole.digest("hex"), size }, chunks };
    } finally {
      await handle.close();
    }
  }

  /** Writes the chunks' digests and the footer after the data, so that the data need not be copied. */
  async #finish(raw: string, info: BlobInfo, chunks: readonly Uint8Array[]): Promise<void> {
    const handle = await this.#files.open(raw, "r+");
    try {
      const tail = Buffer.alloc(chunks.length * DIGEST_BYTES + FOOTER_BYTES);
      chunks.forEach((chunk, index) => tail.set(chunk, index * DIGEST_BYTES));
      tail.writeUInt8(FORMAT, chunks.length * DIGEST_BYTES);
      tail.writeBigUInt64BE(BigInt(info.size), chunks.length * DIGEST_BYTES + 8);
      await writeWholly(handle, tail, info.size);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await this.#files.mkdir(this.#shelf(info.digest), { recursive: true, mode: 0o700 });
    await syncFolder(this.#files, this.#folder);
    await moveInto(this.#files, raw, this.#path(info.digest));
  }

  async #open(digest: string): Promise<Opened | undefined> {
    if (!isDigest(digest)) return undefined;
    const handle = await this.#files.open(this.#path(digest), "r").catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    if (handle === undefined) return undefined;
    try {
      return await readFooter(handle, digest);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  #shelf(digest: string): string {
    return join(this.#folder, digest.slice(0, 2));
  }

  #path(digest: string): string {
    return join(this.#shelf(digest), digest);
  }
}

export function isDigest(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

async function readFooter(handle: OpenFile, digest: string): Promise<Opened> {
  const { size: fileSize } = await handle.stat();
  const footer = Buffer.from(await readWholly(handle, Math.max(0, fileSize - FOOTER_BYTES), FOOTER_BYTES));
  if (footer.length < FOOTER_BYTES || footer[0] !== FORMAT)
    throw new AppError("unavailable", `The content ${digest} lies in a form that this version does not know.`);
  const size = Number(footer.readBigUInt64BE(8));
  return { handle, size };
}

interface ChunkRequest extends Required<Pick<ContentsOptions, "sha256">> {
  readonly index: number;
  /** Digest of the content, for the error. */
  readonly digest: string;
}

async function readChunk({ handle, size }: Opened, { index, digest, sha256 }: ChunkRequest): Promise<Uint8Array> {
  const start = index * BLOB_CHUNK_MAX_BYTES;
  const chunk = await readWholly(handle, start, Math.min(BLOB_CHUNK_MAX_BYTES, size - start));
  const expected = await readWholly(handle, size + index * DIGEST_BYTES, DIGEST_BYTES);
  if (Buffer.compare(await sha256(chunk), expected) !== 0) {
    throw new AppError("unavailable", `The content ${digest} is damaged on the disk.`);
  }
  return chunk;
}

/** The same bytes in full-size chunks; the last one may be shorter. */
async function* chunked(bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncIterable<Uint8Array> {
  let chunk = new Uint8Array(BLOB_CHUNK_MAX_BYTES);
  let filled = 0;
  for await (const piece of bytes) {
    for (let at = 0; at < piece.length; ) {
      const part = piece.subarray(at, at + chunk.length - filled);
      chunk.set(part, filled);
      at += part.length;
      filled += part.length;
      if (filled < chunk.length) continue;
      yield chunk;
      chunk = new Uint8Array(BLOB_CHUNK_MAX_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield chunk.subarray(0, filled);
}
