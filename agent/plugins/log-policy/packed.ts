import { join } from "node:path";
import { createGunzip } from "node:zlib";
import { LOG_HEAD_BYTES, LOG_PACKED_MAX_BYTES, LOG_TAIL_BYTES } from "../../../common/limits.ts";
import { openTrusted } from "../../disk/trusted-path.ts";
import { extendsHead, headOf, tailOf, type Print } from "./rotation/content.ts";
import { isLink, look, type FileLook } from "./folder.ts";
import { originsOf } from "./rotation/names.ts";
import { readAt } from "./reading.ts";

const GZIP = /\.gz$/;
/** Packers keep the time of a file in seconds. */
const TIME_GRAIN_MS = 1_000;

/** A packed file with the rest of a life. */
export interface PackedRest {
  readonly path: string;
  /** Length of the whole life. */
  readonly bytes: number;
  /** The bytes behind the place read; throws where the file was removed meanwhile. */
  readonly chunks: () => AsyncIterable<Buffer>;
}

/** `growing`: the packed file is still written. Undefined: there is none, it is another one, or cannot be read. */
export type Packed<T> = T | "growing" | undefined;

/** `moved`: the packed file got another name while it was looked into; the next look finds it. */
type Examined<T> = Packed<T> | "moved";

export interface Search {
  readonly root: string;
  /** Paths of all packed files below the root. */
  readonly packed: readonly string[];
  /** Ends the search: the answer means nothing then. */
  readonly signal: AbortSignal;
  /** Unpacked bytes of one file at most. */
  readonly maxBytes?: number;
}

interface Lost extends Print {
  readonly home: string;
  readonly id: string;
  readonly mtimeMs: number;
}

/** The log that the packed file is a generation of, among these names; undefined where it is of none of them. */
export function packedOrigin(path: string, rotations: ReadonlySet<string>): string | undefined {
  if (!GZIP.test(path)) return undefined;
  return originsOf(path.replace(GZIP, "")).find((origin) => rotations.has(origin));
}

/** The name that a packed file had before. */
export function unpackedName(path: string): string {
  return path.replace(GZIP, "");
}

/**
 * The rest of a life that is nowhere any more, from the file that a rotation packed it into: `access.log.1.gz`. It is
 * known by its first bytes, and by those before the place read.
 */
export async function packedRest(search: Search, lost: Lost): Promise<Packed<PackedRest>> {
  if (lost.head === "") return undefined;
  const rotations = new Set([lost.home]);
  let found: Packed<PackedRest>;
  for (const path of search.packed.filter((one) => packedOrigin(one, rotations) !== undefined)) {
    const at = await look(search.root, path);
    // It was there when the folder was listed: it is being renamed. A link is there and leads to no file.
    if (!at && !(await isLink(search.root, path))) found ??= "growing";
    if (!at || !mayHold(at, lost) || at.mtimeMs < lost.mtimeMs - TIME_GRAIN_MS) continue;
    const content = await contentOf(at, search, [lost]);
    if (typeof content === "string") found ??= "growing";
    else if (content?.same.includes(lost))
      return { path, bytes: content.bytes, chunks: () => restOf(at, search, lost) };
  }
  return found;
}

const OF_PACKED = "gz:";

/** The identity of a life that was found packed: it is in that file alone, also where others begin alike. */
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
  /** As of a `Print`. */
  readonly head: string;
  readonly last: Buffer;
  /** The lives that it is, or goes on with: it has their first bytes, and those before the place read of them. */
  readonly same: readonly Print[];
}

/** True where a packed file says at its end that it holds as many bytes, modulo 4 GiB. */
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

/** Ends early where the file begins like none of the lives and `lives` are all that matters: then it is undefined. */
export async function contentOf(
  at: FileLook,
  search: Search,
  lives: readonly Print[],
  { isWhole = false } = {},
): Promise<Examined<PackedContent>> {
  let head = Buffer.alloc(0);
  let last = Buffer.alloc(0);
  let bytes = 0;
  const windows = lives.map((life) => new Window(life));
  try {
    for await (const chunk of unpacked(at, search)) {
      if (head.length < LOG_HEAD_BYTES) head = Buffer.concat([head, chunk]).subarray(0, LOG_HEAD_BYTES);
      if (!isWhole && !lives.some((life) => beginsLike(head, life))) return undefined;
      for (const window of windows) window.see(chunk, bytes);
      last = Buffer.from(Buffer.concat([last, chunk.subarray(-LOG_TAIL_BYTES)]).subarray(-LOG_TAIL_BYTES));
      bytes += chunk.length;
    }
  } catch (error) {
    return fault(error);
  }
  const same = windows
    .filter(({ life, isSame }) => isSame && bytes >= life.offset && beginsLike(head, life))
    .map(({ life }) => life);
  return { bytes, head: headOf(head), last, same };
}

function beginsLike(head: Buffer, life: Print): boolean {
  const found = headOf(head);
  return extendsHead(found, life.head) || (head.length < LOG_HEAD_BYTES && extendsHead(life.head, found));
}

/** Collects the bytes of a file before the place up to which a life was read. */
class Window {
  readonly life: Print;
  readonly #pieces: Buffer[] = [];

  constructor(life: Print) {
    this.life = life;
  }

  see(chunk: Buffer, at: number): void {
    const { offset, tail } = this.life;
    const [from, to] = [Math.max(0, offset - tail.bytes - at), Math.min(chunk.length, offset - at)];
    if (from < to) this.#pieces.push(Buffer.from(chunk.subarray(from, to)));
  }

  get isSame(): boolean {
    const { tail } = this.life;
    const found = Buffer.concat(this.#pieces);
    return found.length === tail.bytes && tailOf(found, tail.bytes).hash === tail.hash;
  }
}

async function* restOf(at: FileLook, search: Search, { offset }: Print): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of unpacked(at, search)) {
    if (bytes + chunk.length > offset) yield chunk.subarray(Math.max(0, offset - bytes));
    bytes += chunk.length;
  }
}

/** Throws where it is damaged, has no end, is longer than the bound, or another file took its name. */
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

/** A file whose end is missing is still written. One that is damaged holds nothing. */
function fault(error: unknown): "growing" | "moved" | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === MOVED || code === "ENOENT") return "moved";
  return code === "Z_BUF_ERROR" ? "growing" : undefined;
}
