import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { OdpError } from "../../../common/client/index.ts";
import { FILE_SYNC_PIECE_BYTES, FILE_SYNC_WHOLE_MAX_BYTES } from "../../../common/limits.ts";
import type { Read, Source } from "./side.ts";

/** A file changed while it was read, so what was read is neither its old nor its new content. */
export class ChangedWhileRead extends OdpError {
  constructor(path: string) {
    super("conflict", `${path} was changed while it was read.`, { isUndone: true });
  }
}

export interface SourceOptions {
  readonly path: string;
  /** As the scan found it. */
  readonly size: number;
  readonly open: () => Promise<FileHandle>;
  readonly isSettled: (stats: BigIntStats) => boolean;
}

/** Changes with each change of a file that its disk can tell. */
export function versionOf({ size, mtimeNs, ctimeNs, ino }: BigIntStats): string {
  return [size, mtimeNs, ctimeNs, ino].join(".");
}

/**
 * A local file as a source: a small one as a whole, a large one in pieces. `ChangedWhileRead` if it changes before all of
 * it is read.
 */
export async function sourceOf(options: SourceOptions): Promise<Source> {
  const reading = new Reading(options);
  const results = { read: () => reading.read(), digestOfAll: () => reading.digestOfAll() };
  if (options.size > FILE_SYNC_WHOLE_MAX_BYTES) return { pieces: () => reading.pieces(), ...results };
  const pieces: Uint8Array[] = [];
  for await (const piece of reading.pieces()) pieces.push(piece);
  const whole = Uint8Array.from(Buffer.concat(pieces));
  return { whole, pieces: () => onePiece(whole), ...results };
}

async function* onePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}

class Reading {
  readonly #options: SourceOptions;
  readonly #hash = createHash("sha256");
  #stats: BigIntStats | undefined;
  #isWhole = false;

  constructor(options: SourceOptions) {
    this.#options = options;
  }

  read(): Read {
    if (this.#stats === undefined) throw this.#changed();
    return {
      digest: this.#hash.copy().digest("hex"),
      version: versionOf(this.#stats),
      isSettled: this.#options.isSettled(this.#stats),
    };
  }

  digestOfAll(): string | undefined {
    return this.#isWhole ? this.#hash.copy().digest("hex") : undefined;
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    const handle = await this.#options.open();
    try {
      const stats = (this.#stats = await handle.stat({ bigint: true }));
      if (!stats.isFile() || this.#isOutgrown(stats)) throw this.#changed();
      yield* this.#piecesOf(handle, stats);
    } finally {
      await handle.close();
    }
  }

  async *#piecesOf(handle: FileHandle, stats: BigIntStats): AsyncGenerator<Uint8Array> {
    const size = Number(stats.size);
    if (size === 0) {
      await this.#requireEmpty(handle, stats);
      this.#isWhole = true;
    }
    for (let at = 0; at < size; ) {
      const piece = Buffer.allocUnsafe(Math.min(FILE_SYNC_PIECE_BYTES, size - at));
      const { bytesRead } = await handle.read(piece, 0, piece.length, at);
      if (bytesRead === 0) throw this.#changed();
      const bytes = piece.subarray(0, bytesRead);
      this.#hash.update(bytes);
      at += bytesRead;
      // The last piece is held back until it is certain that all pieces are of one version.
      if (at >= size) {
        await this.#requireSame(handle, stats);
        this.#isWhole = true;
      }
      yield bytes;
    }
  }

  /** Some files of the system, as in /proc, state no size and have content. */
  async #requireEmpty(handle: FileHandle, stats: BigIntStats): Promise<void> {
    await this.#requireSame(handle, stats);
    const { bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, 0);
    if (bytesRead > 0) throw this.#changed();
  }

  async #requireSame(handle: FileHandle, before: BigIntStats): Promise<void> {
    if (versionOf(await handle.stat({ bigint: true })) !== versionOf(before)) throw this.#changed();
  }

  /** True if a file that is held as a whole has become larger than that. */
  #isOutgrown({ size }: BigIntStats): boolean {
    return this.#options.size <= FILE_SYNC_WHOLE_MAX_BYTES && size > BigInt(FILE_SYNC_WHOLE_MAX_BYTES);
  }

  #changed(): ChangedWhileRead {
    return new ChangedWhileRead(this.#options.path);
  }
}
