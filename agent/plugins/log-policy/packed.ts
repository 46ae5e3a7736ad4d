import { join } from "node:path";
import { createGunzip } from "node:zlib";
import { LOG_HEAD_BYTES, LOG_PACKED_MAX_BYTES, LOG_TAIL_BYTES } from "../../../common/limits.ts";
import { openTrusted } from "../../disk/trusted-path.ts";
import { extendsHead, headOf, tailOf, type Print } from "./rotation/content.ts";
import { isLink, look, type FileLook } from "./folder.ts";
import { originsOf } from "./rotation/names.ts";
import { readAt } from "./reading.ts";
import type { Unpacking, UnpackingJob } from "./unpacking.ts";

const GZIP = /\.gz$/;
/** Compression programs keep the time of a file in whole seconds. */
const TIME_GRAIN_MS = 1_000;

/** A packed file with the rest of a life. */
export interface PackedRest {
  readonly path: string;
  /** Length of the whole life. */
  readonly bytes: number;
  /** The bytes after a position; empty pieces before it. Throws if the file was removed meanwhile. */
  readonly chunks: (offset: number) => AsyncIterable<UnpackedPiece>;
}

/** A piece of the content. `unpacked`: number of bytes that were unpacked for it. */
export interface UnpackedPiece {
  readonly bytes: Buffer;
  readonly unpacked: number;
}

/**
 * `growing`: the packed file is still being written. `more`: the next look continues to read it. Undefined: there is no
 * packed file of this life, or it cannot be read.
 */
export type Packed<T> = T | "growing" | "more" | undefined;

/** `moved`: the packed file was renamed or removed while it was read. The next scan decides. */
type Examined<T> = Packed<T> | "moved";

export interface Search {
  readonly root: string;
  /** Paths of all packed files below the root. */
  readonly packed: readonly string[];
  /** Ends the search. The answer must not be used then. */
  readonly signal: AbortSignal;
  /** Maximum unpacked bytes of one file. */
  readonly maxBytes?: number;
  readonly unpacking: Unpacking;
}

interface Lost extends Print {
  readonly home: string;
  readonly id: string;
  readonly mtimeMs: number;
}

/**
 * The log among `homes` of which the packed file is a generation; undefined when there is none. Only gzip files
 * have one.
 */
export function packedOrigin(path: string, homes: ReadonlySet<string>): string | undefined {
  if (!GZIP.test(path)) return undefined;
  return originsOf(path.replace(GZIP, "")).find((origin) => homes.has(origin));
}

/** The name of a file before it was packed. */
export function unpackedName(path: string): string {
  return path.replace(GZIP, "");
}

/**
 * Finds the rest of a life whose file is gone, in the file into which a rotation packed it, such as `access.log.1.gz`.
 * That file is identified by its first bytes and by the bytes before the read position. It is none of `others`.
 */
export async function packedRest(
  search: Search,
  lost: Lost,
  others: readonly Print[] = [],
): Promise<Packed<PackedRest>> {
  if (lost.head === "") return undefined;
  const homes = new Set([lost.home]);
  let found: Packed<PackedRest>;
  for (const path of search.packed.filter((one) => packedOrigin(one, homes) !== undefined)) {
    const at = await look(search.root, path);
    // The file was listed a moment ago, so it is being renamed. This does not hold for a link, whose target may be
    // missing.
    if (!at && !(await isLink(search.root, path))) found ??= "growing";
    if (!at || !mayHold(at, lost) || at.mtimeMs < lost.mtimeMs - TIME_GRAIN_MS) continue;
    // If nothing was read of a life, only its heading identifies it, which other lives may have too.
    const content = await contentOf(at, search, lost.offset === 0 ? [lost, ...others] : [lost]);
    if (content === "more") return content;
    if (typeof content === "string") found ??= "growing";
    else if (content && content.same.length > 0 && content.same.every(({ offset }) => offset === lost.offset))
      return { path, bytes: content.bytes, chunks: (offset) => restOf(at, search, offset) };
  }
  return found;
}

const OF_PACKED = "gz:";

/**
 * The id of a life that was found packed. Only this packed file counts as its file, even if other files have the same
 * beginning.
 */
export function packedId({ id }: FileLook): string {
  return OF_PACKED + id;
}

export function isPackedLife({ id }: { readonly id: string }): boolean {
  return id.startsWith(OF_PACKED);
}

function mayHold(at: FileLook, { id }: Lost): boolean {
  return !isPackedLife({ id }) || id === packedId(at);
}

/** Result of one pass over a packed file. */
export interface PackedContent {
  readonly bytes: number;
  /** As in `Print`. */
  readonly head: string;
  readonly last: Buffer;
  /**
   * The lives that the file contains or continues: it has their first bytes, and the bytes before their read positions.
   */
  readonly same: readonly Print[];
}

/** True if the length field at the end of a gzip file says this number of bytes, modulo 4 GiB. */
export async function isAsLong({ path, id }: FileLook, { root }: Search, bytes: number): Promise<boolean> {
  try {
    await using handle = await openTrusted(join(root, path));
    const { dev, ino, size } = await handle.stat();
    const end = await readAt(handle, Math.max(0, size - LENGTH_BYTES), LENGTH_BYTES);
    return `${dev}:${ino}` === id && end.length === LENGTH_BYTES && end.readUInt32LE() === bytes % 2 ** 32;
  } catch {
    return false;
  }
}

const LENGTH_BYTES = 4;

/**
 * Reads a packed file once and compares it with `lives`, as they are when the reading begins. Without `isWhole`, it stops
 * and answers undefined as soon as the file begins like none of them.
 */
export async function contentOf(
  at: FileLook,
  search: Search,
  lives: readonly Print[],
  { isWhole = false } = {},
): Promise<Examined<PackedContent>> {
  const key = JSON.stringify([at.id, at.size, at.mtimeMs, isWhole || lives.map(({ head, offset }) => [head, offset])]);
  const content = await search.unpacking.run(key, () => examine(at, search, { lives, isWhole }), at);
  // A file that changes again and again would be read from its beginning for ever.
  if (content === "more" && search.unpacking.isRestarted(at)) return "growing";
  // Only the comparison with one state of a lost life stays valid.
  if (content !== "more" && (isWhole || typeof content === "string")) search.unpacking.forget(key);
  return content;
}

interface Comparison {
  readonly lives: readonly Print[];
  readonly isWhole: boolean;
}

async function* examine(
  at: FileLook,
  search: Search,
  { lives, isWhole }: Comparison,
): UnpackingJob<Examined<PackedContent>> {
  let head = Buffer.alloc(0);
  let last = Buffer.alloc(0);
  let bytes = 0;
  const windows = lives.map((life) => new Window(life));
  try {
    for await (const chunk of unpacked(at, search)) {
      if (head.length < LOG_HEAD_BYTES) head = Buffer.concat([head, chunk]).subarray(0, LOG_HEAD_BYTES);
      if (!isWhole && !windows.some(({ print }) => beginsLike(head, print))) return undefined;
      for (const window of windows) window.see(chunk, bytes);
      last = Buffer.from(Buffer.concat([last, chunk.subarray(-LOG_TAIL_BYTES)]).subarray(-LOG_TAIL_BYTES));
      bytes += chunk.length;
      yield chunk.length;
    }
  } catch (error) {
    return fault(error);
  }
  const same = windows
    .filter(({ print, isSame }) => isSame && bytes >= print.offset && beginsLike(head, print))
    .map(({ life }) => life);
  return { bytes, head: headOf(head), last, same };
}

function beginsLike(head: Buffer, life: Print): boolean {
  const found = headOf(head);
  return extendsHead(found, life.head) || (head.length < LOG_HEAD_BYTES && extendsHead(life.head, found));
}

/** Collects the bytes of a packed file that are at the tail of a life, before its read position. */
class Window {
  readonly life: Print;
  /** The life may be read on before the packed file is read to its end. */
  readonly print: Print;
  readonly #pieces: Buffer[] = [];

  constructor(life: Print) {
    this.life = life;
    this.print = { ...life };
  }

  see(chunk: Buffer, at: number): void {
    const { offset, tail } = this.print;
    const [from, to] = [Math.max(0, offset - tail.bytes - at), Math.min(chunk.length, offset - at)];
    if (from < to) this.#pieces.push(Buffer.from(chunk.subarray(from, to)));
  }

  get isSame(): boolean {
    const { tail } = this.print;
    const found = Buffer.concat(this.#pieces);
    return found.length === tail.bytes && tailOf(found, tail.bytes).hash === tail.hash;
  }
}

async function* restOf(at: FileLook, search: Search, offset: number): AsyncGenerator<UnpackedPiece> {
  let bytes = 0;
  for await (const chunk of unpacked(at, search)) {
    yield { bytes: chunk.subarray(Math.max(0, offset - bytes)), unpacked: chunk.length };
    bytes += chunk.length;
  }
}

/**
 * The unpacked bytes of a file. Throws if the file is damaged, incomplete or longer than `maxBytes`, or if another file
 * has its name.
 */
async function* unpacked(
  { path, id }: FileLook,
  { root, signal, maxBytes = LOG_PACKED_MAX_BYTES }: Search,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  await using handle = await openTrusted(join(root, path));
  const { dev, ino } = await handle.stat();
  if (`${dev}:${ino}` !== id) throw Object.assign(new Error(`${path} is another file by now.`), { code: MOVED });
  const source = handle.createReadStream({ autoClose: false });
  const stream = createGunzip();
  source.once("error", (error) => stream.destroy(error));
  for await (const chunk of source.pipe(stream) as AsyncIterable<Buffer>) {
    signal.throwIfAborted();
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`${path} has more than ${maxBytes} bytes.`);
    yield chunk;
  }
}

const MOVED = "ESTALE";

/**
 * The meaning of an error while a packed file is read. A file without its end is still being written. Undefined for
 * other errors: the file has no usable content.
 */
function fault(error: unknown): "growing" | "moved" | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === MOVED || code === "ENOENT") return "moved";
  return code === "Z_BUF_ERROR" ? "growing" : undefined;
}
