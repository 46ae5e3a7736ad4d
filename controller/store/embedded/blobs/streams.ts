import { createHash } from "node:crypto";
import { join } from "node:path";
import { AppError } from "../../../../common/errors.ts";
import type { Files, OpenFile } from "../../../../common/files.ts";
import {
  BLOB_STREAM_APPEND_MAX_BYTES,
  BLOB_STREAM_APPENDS_AT_ONCE_MAX,
  BLOB_STREAM_READ_MAX_BYTES,
} from "../../../../common/limits.ts";
import { isMissing, readWholly, removeFile, syncFolder, writeWholly } from "../../../files.ts";
import type { StreamPart } from "../../blobs.ts";
import { Places } from "../../calls/places.ts";
import { diskErrors } from "./files.ts";
import { ActionsByName } from "../actions-by-name.ts";

/** Size of each stream by the digest of its name. A new size is durable when `set` resolves. */
export interface StreamSizes {
  get(digest: string): number | undefined;
  set(digest: string, size: number | undefined): Promise<void>;
}

export interface StreamsOptions {
  readonly folder: string;
  readonly files: Files;
  readonly sizes: StreamSizes;
}

/**
 * Append streams, one file each, named by the digest of the stream's name. The recorded size defines the end of a
 * stream. It is written after the bytes: bytes of the file beyond it were never acknowledged, and after a power cut may
 * be anything.
 */
export class Streams {
  readonly #folder: string;
  readonly #files: Files;
  readonly #sizes: StreamSizes;
  /** The check of the offset and the write must be atomic. */
  readonly #turns = new ActionsByName();
  readonly #places = new Places(BLOB_STREAM_APPENDS_AT_ONCE_MAX);

  constructor({ folder, files, sizes }: StreamsOptions) {
    this.#folder = folder;
    this.#files = files;
    this.#sizes = sizes;
  }

  /** Records sizes for streams of a format that had none. Safe to repeat. */
  async adopt(): Promise<void> {
    for (const shelf of await this.#files.readdir(this.#folder)) {
      for (const digest of await this.#files.readdir(join(this.#folder, shelf))) {
        if (this.#sizes.get(digest) !== undefined) continue;
        await this.#sizes.set(digest, (await this.#files.stat(join(this.#folder, shelf, digest))).size);
      }
    }
  }

  append(stream: string, offset: number, bytes: Uint8Array): Promise<{ readonly size: number }> {
    checkOffset(offset);
    if (bytes.length > BLOB_STREAM_APPEND_MAX_BYTES) {
      throw new AppError(
        "too_large",
        `At most ${BLOB_STREAM_APPEND_MAX_BYTES} bytes are appended at once, not ${bytes.length}.`,
      );
    }
    return this.#turns.take(stream, () => this.#inPlace(() => this.#append(digestOf(stream), offset, bytes)));
  }

  async read(stream: string, offset: number, maxBytes: number): Promise<StreamPart> {
    checkOffset(offset);
    const digest = digestOf(stream);
    // Read before the file is opened: a removal in between leaves an open file, never a size without bytes.
    const size = this.#sizes.get(digest) ?? 0;
    const file = size === 0 ? undefined : await this.#open(digest);
    if (file === undefined) return { bytes: new Uint8Array(0), size: 0 };
    try {
      const length = Math.max(0, Math.min(maxBytes, BLOB_STREAM_READ_MAX_BYTES, size - offset));
      return { bytes: await readStored(file, offset, length), size };
    } finally {
      await file.close();
    }
  }

  /** Removes the file first: a size without a file counts as size 0. */
  remove(stream: string): Promise<void> {
    const digest = digestOf(stream);
    return this.#turns.take(stream, async () => {
      if (await removeFile(this.#files, this.#path(digest))) await syncFolder(this.#files, this.#shelf(digest));
      if (this.#sizes.get(digest) !== undefined) await this.#sizes.set(digest, undefined);
    });
  }

  /** Resolves when no write is running any more. */
  async close(): Promise<void> {
    await this.#turns.idle();
  }

  async #inPlace<T>(append: () => Promise<T>): Promise<T> {
    if (!this.#places.tryTake()) await new Promise<void>((taken) => this.#places.queue(taken));
    try {
      return await diskErrors(append());
    } finally {
      this.#places.leave();
    }
  }

  async #append(digest: string, offset: number, bytes: Uint8Array): Promise<{ readonly size: number }> {
    const known = this.#sizes.get(digest) === undefined ? undefined : await this.#open(digest);
    const size = known === undefined ? 0 : (this.#sizes.get(digest) ?? 0);
    if (offset > size) {
      await known?.close();
      throw new AppError("conflict", `The stream has ${size} bytes, so nothing can begin at ${offset}.`, {
        details: { size },
      });
    }
    const file = known ?? (await this.#begin(digest));
    try {
      const fresh = await freshBytes(file, { offset, bytes, size });
      if (fresh.length === 0) return { size };
      await writeWholly(file, fresh, size);
      await file.datasync();
      await this.#sizes.set(digest, size + fresh.length);
      return { size: size + fresh.length };
    } finally {
      await file.close();
    }
  }

  /** Creates a file with a durable name, and removes the size of an earlier, removed stream. */
  async #begin(digest: string): Promise<OpenFile> {
    if (this.#sizes.get(digest) !== undefined) await this.#sizes.set(digest, undefined);
    await this.#files.mkdir(this.#shelf(digest), { recursive: true, mode: 0o700 });
    await syncFolder(this.#files, this.#folder);
    const file = await this.#files.open(this.#path(digest), "w+", 0o600);
    await syncFolder(this.#files, this.#shelf(digest));
    return file;
  }

  async #open(digest: string): Promise<OpenFile | undefined> {
    return this.#files.open(this.#path(digest), "r+").catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
  }

  #shelf(digest: string): string {
    return join(this.#folder, digest.slice(0, 2));
  }

  #path(digest: string): string {
    return join(this.#shelf(digest), digest);
  }
}

interface Appended {
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly size: number;
}

/** The bytes that the stream does not have yet. */
async function freshBytes(file: OpenFile, { offset, bytes, size }: Appended): Promise<Uint8Array> {
  const known = await readStored(file, offset, Math.min(bytes.length, size - offset));
  if (Buffer.compare(known, bytes.subarray(0, known.length)) !== 0)
    throw new AppError("conflict", `The stream has other bytes at ${offset}.`, { details: { size } });
  return bytes.subarray(known.length);
}

async function readStored(file: OpenFile, offset: number, length: number): Promise<Uint8Array> {
  const bytes = await readWholly(file, offset, length);
  if (bytes.length < length) throw new AppError("unavailable", "A stream is damaged on the disk.");
  return bytes;
}

function digestOf(stream: string): string {
  return createHash("sha256").update(stream).digest("hex");
}

function checkOffset(offset: number): void {
  if (!Number.isSafeInteger(offset) || offset < 0) throw new AppError("invalid", "An offset is a whole number from 0.");
}
