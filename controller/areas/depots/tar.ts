import { AppError } from "../../../common/errors.ts";
import { TAR_HEADER_MAX_BYTES } from "../../../common/limits.ts";
import type { Encoding } from "../../../common/text/encodings.ts";
import { archiveName } from "../../archives/entry-names.ts";

/**
 * One entry of a tar archive (POSIX ustar and pax, GNU long names), read from a stream. Source of the format:
 * POSIX.1-2017, pax, and the GNU tar manual, "Basic Tar Format".
 */
export interface TarEntry {
  /** The name as written in the archive: not a path to trust. */
  readonly name: string;
  readonly type: "file" | "folder" | "link" | "special";
  readonly mode: number;
  readonly size: number;
  /** Read it before requesting the next entry; unread content is skipped. */
  readonly content: AsyncIterable<Uint8Array>;
}

const BLOCK = 512;
const TYPES: Readonly<Record<string, TarEntry["type"]>> = {
  "0": "file",
  "\0": "file",
  "7": "file",
  "5": "folder",
  "1": "link",
  "2": "link",
};

/** Names in pax headers are UTF-8 unless the header says `BINARY`. Other names are in `encoding`, by default UTF-8. */
export async function* tarEntries(bytes: AsyncIterable<Uint8Array>, encoding?: Encoding): AsyncGenerator<TarEntry> {
  const reader = new BlockReader(bytes);
  let longName: Buffer | undefined;
  let pax: Pax = new Map();
  for (;;) {
    const block = await reader.header();
    if (block === undefined) return;
    const header = parseHeader(block);
    if (header.flag === "x") pax = parsePax(await reader.bytes(header.size));
    else if (header.flag === "L") longName = untilNul(await reader.bytes(header.size));
    else if (header.flag === "g" || header.flag === "K") await reader.bytes(header.size);
    else {
      const size = pax.has("size") ? paxSize(paxText(pax, "size")) : header.size;
      const type = isSparse(pax) ? "special" : (TYPES[header.flag] ?? "special");
      const dataSize = type === "file" ? size : 0;
      const body = reader.body(dataSize);
      yield {
        name: pax.has("path") ? paxPath(pax, encoding) : archiveName(longName ?? header.name, encoding),
        type,
        mode: header.mode,
        size: dataSize,
        content: body,
      };
      await reader.skipRest();
      longName = undefined;
      pax = new Map();
    }
  }
}

/** Values by key, in UTF-8. Exception: names in an archive whose `hdrcharset` is `BINARY`. */
type Pax = ReadonlyMap<string, Buffer>;

interface Header {
  readonly name: Buffer;
  readonly mode: number;
  readonly size: number;
  readonly flag: string;
}

function parseHeader(block: Buffer): Header {
  const stated = octal(block.subarray(148, 156));
  let sum = 8 * 32;
  for (let at = 0; at < BLOCK; at++) if (at < 148 || at >= 156) sum += block[at] ?? 0;
  if (sum !== stated) throw broken("a header's checksum is wrong");
  const name = untilNul(block.subarray(0, 100));
  const isUstar = block.toString("latin1", 257, 263) === "ustar\0";
  const prefix = isUstar ? untilNul(block.subarray(345, 500)) : Buffer.alloc(0);
  return {
    name: prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from("/"), name]),
    mode: octal(block.subarray(100, 108)),
    size: numeric(block.subarray(124, 136)),
    flag: String.fromCharCode(block[156] ?? 0),
  };
}

/** Octal text, or big-endian binary when the first bit is set. */
function numeric(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) === 0) return octal(field);
  let value = (field[0] ?? 0) & 0x7f;
  for (const byte of field.subarray(1)) value = value * 256 + byte;
  if (!Number.isSafeInteger(value)) throw broken("a size is out of range");
  return value;
}

function octal(field: Buffer): number {
  const text = untilNul(field).toString("latin1").trim();
  if (text === "") return 0;
  if (!/^[0-7]+$/.test(text)) throw broken("a number is not octal");
  return Number.parseInt(text, 8);
}

/** Records of the form `<length> <key>=<value>\n`, the length in bytes and counting itself. */
function parsePax(bytes: Buffer): Pax {
  const records = new Map<string, Buffer>();
  let at = 0;
  while (at < bytes.length) {
    const space = bytes.indexOf(0x20, at);
    const length = space < 0 ? Number.NaN : Number(bytes.toString("latin1", at, space));
    if (!Number.isInteger(length) || length <= space - at || at + length > bytes.length)
      throw broken("a pax record is cut off");
    const record = bytes.subarray(space + 1, at + length - 1);
    const equals = record.indexOf("=");
    if (equals < 0) throw broken("a pax record has no value");
    records.set(record.toString("latin1", 0, equals), record.subarray(equals + 1));
    at += length;
  }
  return records;
}

/** Content of a sparse file has no holes, and possibly begins with their map (GNU tar manual, "Storing Sparse Files"). */
function isSparse(pax: Pax): boolean {
  for (const key of pax.keys()) if (key.startsWith("GNU.sparse.")) return true;
  return false;
}

function paxSize(text: string | undefined): number {
  const size = Number(text);
  if (!/^\d+$/.test(text ?? "") || !Number.isSafeInteger(size)) throw broken("a pax size is no number");
  return size;
}

/** An archiver that cannot convert a name to UTF-8 writes its bytes unchanged (POSIX pax, hdrcharset). */
function paxPath(pax: Pax, encoding: Encoding | undefined): string {
  const isBinary = pax.get("hdrcharset")?.toString() === "BINARY";
  return archiveName(pax.get("path") ?? Buffer.alloc(0), isBinary ? encoding : undefined);
}

function paxText(pax: Pax, key: string): string {
  return archiveName(pax.get(key) ?? Buffer.alloc(0));
}

function untilNul(bytes: Buffer): Buffer {
  const end = bytes.indexOf(0);
  return end < 0 ? bytes : bytes.subarray(0, end);
}

function broken(reason: string): AppError {
  return new AppError("invalid", `The tar archive is damaged: ${reason}.`);
}

/** Splits a stream into headers and bodies; bodies are padded to whole blocks. */
class BlockReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #piece: Uint8Array = new Uint8Array(0);
  #bodyLeft = 0;
  #padding = 0;

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#source = bytes[Symbol.asyncIterator]();
  }

  /** The next non-empty block; `undefined` at the end of the archive. */
  async header(): Promise<Buffer | undefined> {
    const block = await this.#exactly(BLOCK, "allow end");
    if (block === undefined) return undefined;
    if (!block.every((byte) => byte === 0)) return block;
    while ((await this.#piecesUpTo(BLOCK)) !== undefined);
    return undefined;
  }

  async bytes(size: number): Promise<Buffer> {
    if (size > TAR_HEADER_MAX_BYTES) throw broken("a long header is longer than allowed");
    const bytes = await this.#exactly(size, "must be there");
    await this.#exactly(paddingOf(size), "must be there");
    return bytes ?? Buffer.alloc(0);
  }

  body(size: number): AsyncIterable<Uint8Array> {
    this.#bodyLeft = size;
    this.#padding = paddingOf(size);
    return this.#readBody();
  }

  async skipRest(): Promise<void> {
    for await (const piece of this.#readBody()) void piece;
    await this.#exactly(this.#padding, "must be there");
    this.#padding = 0;
  }

  async *#readBody(): AsyncGenerator<Uint8Array> {
    while (this.#bodyLeft > 0) {
      const piece = await this.#piecesUpTo(this.#bodyLeft);
      if (piece === undefined) throw broken("it is cut off");
      this.#bodyLeft -= piece.length;
      yield piece;
    }
  }

  async #exactly(size: number, end: "allow end" | "must be there"): Promise<Buffer | undefined> {
    const pieces: Uint8Array[] = [];
    let have = 0;
    while (have < size) {
      const piece = await this.#piecesUpTo(size - have);
      if (piece === undefined) {
        if (end === "allow end" && have === 0) return undefined;
        throw broken("it is cut off");
      }
      pieces.push(piece);
      have += piece.length;
    }
    return Buffer.concat(pieces);
  }

  async #piecesUpTo(size: number): Promise<Uint8Array | undefined> {
    while (this.#piece.length === 0) {
      const next = await this.#source.next();
      if (next.done) return undefined;
      this.#piece = next.value;
    }
    const piece = this.#piece.subarray(0, size);
    this.#piece = this.#piece.subarray(size);
    return piece;
  }
}

function paddingOf(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}
