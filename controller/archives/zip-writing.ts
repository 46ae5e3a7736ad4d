import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { crc32, createDeflateRaw } from "node:zlib";
import { AppError } from "../../common/errors.ts";
import { ARCHIVE_PIECE_BYTES } from "../../common/limits.ts";
import {
  centralRecord,
  descriptor,
  endRecords,
  localHeader,
  ZIP_MAX_32,
  type PartContent,
  type PartName,
} from "./zip-records.ts";

/** A file or folder of an archive that is written. */
export interface ZipPart {
  /** Relative path, without a slash at the end. */
  readonly path: string;
  readonly modified: Date;
  /** True: the time is written only as local time without a zone, so that equal contents give equal archives. */
  readonly isPlainTime?: boolean;
  /** Absent: a folder. */
  readonly content?: ZipPartContent;
}

export interface ZipPartContent {
  /** Called when all parts before this one have been written. */
  readonly open: () => AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>;
  /** True: the content is stored as it is, because packing would not make it smaller. */
  readonly isStored?: boolean;
  /** Bytes of the content, required if they may be 4 GiB or more. The archive breaks off at any other number. */
  readonly size?: number;
}

/** Packing makes a content at most a little longer, so one near the bound of 32 bits counts as large. */
const LARGE_FROM_BYTES = ZIP_MAX_32 - 2 ** 24;

/**
 * A zip archive that is written while it is read: one content is open at a time. Names are UTF-8. If a content or the
 * list of parts fails, the stream fails, so no archive looks complete without being so. If the stream is destroyed, it
 * closes when the content and the list of parts are closed.
 */
export function zipStream(parts: AsyncIterable<ZipPart> | Iterable<ZipPart>): Readable {
  const pieces = inPieces(archiveOf(parts));
  return Readable.from(pieces, { objectMode: false, highWaterMark: ARCHIVE_PIECE_BYTES });
}

async function* archiveOf(parts: AsyncIterable<ZipPart> | Iterable<ZipPart>): AsyncGenerator<Uint8Array> {
  const list: Buffer[] = [];
  let offset = 0;
  for await (const part of parts) {
    const name = nameOf(part);
    const content = new MeasuredContent(part);
    const header = localHeader(name);
    yield header;
    yield* content.packed();
    const end = descriptor(name, content.found);
    yield end;
    list.push(centralRecord(name, content.found, offset));
    offset += header.length + content.found.packedSize + end.length;
  }
  yield* list;
  const size = list.reduce((sum, { length }) => sum + length, 0);
  yield endRecords({ count: list.length, offset, size });
}

function nameOf({ path, modified, isPlainTime = false, content }: ZipPart): PartName {
  const isFolder = content === undefined;
  return {
    path: isFolder ? `${path}/` : path,
    modified,
    isPlainTime,
    isFolder,
    isPacked: content !== undefined && content.isStored !== true,
    isLarge: (content?.size ?? 0) >= LARGE_FROM_BYTES,
  };
}

/** The content of a part, whose bytes are counted while they pass. */
class MeasuredContent {
  readonly #part: ZipPart;
  #crc = 0;
  #size = 0;
  #packedSize = 0;

  constructor(part: ZipPart) {
    this.#part = part;
  }

  /** Complete when `packed` has ended. */
  get found(): PartContent {
    return { crc: this.#crc, size: this.#size, packedSize: this.#packedSize };
  }

  async *packed(): AsyncGenerator<Uint8Array> {
    const { content } = this.#part;
    if (!content) return;
    const bytes = this.#measured(content);
    for await (const piece of content.isStored ? bytes : deflated(bytes)) {
      this.#packedSize += piece.length;
      yield piece;
    }
  }

  async *#measured({ open, size }: ZipPartContent): AsyncGenerator<Uint8Array> {
    // Without a stated size, the records before the content have promised sizes of 32 bits.
    const [leastBytes, mostBytes] = size === undefined ? [0, LARGE_FROM_BYTES] : [size, size];
    for await (const piece of open()) {
      const bytes = typeof piece === "string" ? Buffer.from(piece) : piece;
      this.#crc = crc32(bytes, this.#crc);
      this.#size += bytes.length;
      if (this.#size > mostBytes) throw this.#otherSize(`more than ${mostBytes}`);
      yield bytes;
    }
    if (this.#size < leastBytes) throw this.#otherSize(`${this.#size} instead of ${leastBytes}`);
  }

  #otherSize(bytes: string): AppError {
    return new AppError("internal", `The archive breaks off: ${this.#part.path} has ${bytes} bytes.`);
  }
}

/** Closes the content before it ends, also if its reader stops early. */
async function* deflated(content: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  const packing = createDeflateRaw();
  // Reading `packing` reports a failure of the content, too.
  const fed = pipeline(content, packing).catch(() => undefined);
  try {
    yield* packing as AsyncIterable<Uint8Array>;
  } finally {
    packing.destroy();
    await fed;
  }
}

/** Joins short records, so that an archive of many small files is not sent in tiny pieces. */
async function* inPieces(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of bytes) {
    pieces.push(piece);
    length += piece.length;
    if (length < ARCHIVE_PIECE_BYTES) continue;
    yield Buffer.concat(pieces);
    [pieces, length] = [[], 0];
  }
  yield Buffer.concat(pieces);
}
