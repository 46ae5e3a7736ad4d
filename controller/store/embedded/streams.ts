import { createHash } from "node:crypto";
import { mkdir, open, stat, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../../common/errors.ts";
import { BLOB_STREAM_APPEND_MAX_BYTES, BLOB_STREAM_READ_MAX_BYTES } from "../../../common/limits.ts";
import type { StreamPart } from "../blobs.ts";
import { diskErrors, isMissing, removeFile, syncFolder } from "./files.ts";
import { Turns } from "./turns.ts";

/** Append streams as files, one each, named by the digest of the stream's name. */
export class Streams {
  readonly #folder: string;
  /** The check of the offset and the write must be one. */
  readonly #turns = new Turns();

  constructor(folder: string) {
    this.#folder = folder;
  }

  append(stream: string, offset: number, bytes: Uint8Array): Promise<{ readonly size: number }> {
    checkOffset(offset);
    if (bytes.length > BLOB_STREAM_APPEND_MAX_BYTES) {
      throw new AppError("too_large", `At most ${BLOB_STREAM_APPEND_MAX_BYTES} bytes are appended at once, not ${bytes.length}.`);
    }
    return this.#turns.take(stream, () => diskErrors(this.#append(stream, offset, bytes)));
  }

  async read(stream: string, offset: number, maxBytes: number): Promise<StreamPart> {
    checkOffset(offset);
    const handle = await this.#open(stream, "r");
    if (handle === undefined) return { bytes: new Uint8Array(0), size: 0 };
    try {
      const { size } = await handle.stat();
      const length = Math.max(0, Math.min(maxBytes, BLOB_STREAM_READ_MAX_BYTES, size - offset));
      return { bytes: await readFully(handle, offset, length), size };
    } finally {
      await handle.close();
    }
  }

  remove(stream: string): Promise<void> {
    return this.#turns.take(stream, async () => {
      if (await removeFile(this.#path(stream))) await syncFolder(this.#shelf(stream));
    });
  }

  /** Resolves when nothing is being written any more. */
  async close(): Promise<void> {
    await this.#turns.idle();
  }

  async #append(stream: string, offset: number, bytes: Uint8Array): Promise<{ readonly size: number }> {
    const isNew = await this.#prepare(stream);
    const handle = await open(this.#path(stream), "r+");
    try {
      const { size } = await handle.stat();
      if (offset > size) throw new AppError("conflict", `The stream has ${size} bytes, so nothing can begin at ${offset}.`, { details: { size } });
      const known = await readFully(handle, offset, Math.min(bytes.length, size - offset));
      if (Buffer.compare(known, bytes.subarray(0, known.length)) !== 0) throw new AppError("conflict", `The stream has other bytes at ${offset}.`, { details: { size } });
      const fresh = bytes.subarray(known.length);
      if (fresh.length > 0) await writeFully(handle, fresh, size);
      // Also for a repeat: the first time may have ended before its bytes were on the disk.
      await handle.sync();
      if (isNew) await syncFolder(this.#shelf(stream));
      return { size: size + fresh.length };
    } finally {
      await handle.close();
    }
  }

  /** True when the file was made just now. */
  async #prepare(stream: string): Promise<boolean> {
    if ((await stat(this.#path(stream)).catch(() => undefined)) !== undefined) return false;
    await mkdir(this.#shelf(stream), { recursive: true, mode: 0o700 });
    await syncFolder(this.#folder);
    await (await open(this.#path(stream), "a", 0o600)).close();
    return true;
  }

  async #open(stream: string, flags: string): Promise<FileHandle | undefined> {
    return open(this.#path(stream), flags).catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
  }

  #shelf(stream: string): string {
    return join(this.#folder, digestOf(stream).slice(0, 2));
  }

  #path(stream: string): string {
    return join(this.#shelf(stream), digestOf(stream));
  }
}

function digestOf(stream: string): string {
  return createHash("sha256").update(stream).digest("hex");
}

function checkOffset(offset: number): void {
  if (!Number.isSafeInteger(offset) || offset < 0) throw new AppError("invalid", "An offset is a whole number from 0.");
}

async function readFully(handle: FileHandle, offset: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, offset + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

async function writeFully(handle: FileHandle, bytes: Uint8Array, offset: number): Promise<void> {
  let written = 0;
  while (written < bytes.length) {
    const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, offset + written);
    written += bytesWritten;
  }
}
