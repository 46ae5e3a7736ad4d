import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { LOG_COMPARE_BYTES, LOG_HEAD_BYTES, LOG_TAIL_BYTES } from "../../../../common/limits.ts";
import { openTrusted } from "../../../disk/trusted-path.ts";
import { matchChain, type Checkpoint } from "./chain.ts";
import type { FileLook } from "../folder.ts";
import { readAt } from "../reading.ts";

/**
 * Tells the life of a file from a file that takes its name or its inode: by its first bytes, and by those before the
 * place up to which it was read. A copy of it, which a rotation may make before it cuts the file off, has them too.
 */
export interface Print {
  /** Its first bytes as they are, in base64, at most `LOG_HEAD_BYTES`, without room (NUL bytes) behind its text. */
  readonly head: string;
  readonly offset: number;
  readonly tail: Tail;
  /** Absent in marks of former versions: then a copy is known by head and tail alone. */
  readonly chain?: readonly Checkpoint[];
}

/** The last bytes before `offset`, at least from the last checkpoint of the chain on. */
export interface Tail {
  readonly hash: string;
  readonly bytes: number;
}

export const NO_TAIL: Tail = { hash: "", bytes: 0 };

export function tailOf(bytes: Uint8Array, length = LOG_TAIL_BYTES): Tail {
  const last = bytes.subarray(Math.max(0, bytes.length - length));
  return last.length === 0
    ? NO_TAIL
    : { hash: createHash("sha256").update(last).digest("hex").slice(0, 16), bytes: last.length };
}

export function headOf(bytes: Uint8Array): string {
  return withoutRoom(Buffer.from(bytes.subarray(0, LOG_HEAD_BYTES))).toString("base64");
}

/** Room is written later. */
function withoutRoom(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1);
}

export function cutHead(head: string, bytes: number): string {
  return Buffer.from(head, "base64").subarray(0, bytes).toString("base64");
}

/** Marks of former versions have room in them. A file that begins with a hole is known by it. */
function bytesOf(head: string): Buffer {
  const bytes = Buffer.from(head, "base64");
  const text = withoutRoom(bytes);
  return text.length === 0 ? bytes : text;
}

export function extendsHead(longer: string, head: string): boolean {
  const expected = bytesOf(head);
  return Buffer.from(longer, "base64").subarray(0, expected.length).equals(expected);
}

export async function hasHead(file: FileHandle, head: string): Promise<boolean> {
  const expected = bytesOf(head);
  return (await readAt(file, 0, expected.length)).equals(expected);
}

async function hasTail(file: FileHandle, { offset, tail }: Print): Promise<boolean> {
  const bytes = await readAt(file, offset - tail.bytes, tail.bytes);
  return tailOf(bytes, tail.bytes).hash === tail.hash;
}

/** `unknown`: the file was renamed meanwhile, and another one was looked at. */
type Compared = "other" | "unknown" | Same;

export interface Same {
  /** Present size of the file. */
  readonly size: number;
  /** Last bytes of a copy that ends before the place read. */
  readonly short?: Tail;
}

/** `Same` where the file has the content of the print and can be read on; a `short` one only begins like it. */
export async function compareWith(root: string, at: FileLook, print: Print): Promise<Compared> {
  const compared = await withFile(root, at, async (file): Promise<Compared> => {
    const { size } = await file.stat();
    const head = bytesOf(print.head);
    const first = await readAt(file, 0, Math.min(head.length, size));
    if (first.length === 0 ? head.length > 0 : !first.equals(head.subarray(0, first.length))) return "other";
    if (size >= print.offset) return first.length === head.length && (await hasTail(file, print)) ? { size } : "other";
    const last = await readAt(file, Math.max(0, size - LOG_TAIL_BYTES), Math.min(size, LOG_TAIL_BYTES));
    return { size, short: tailOf(last) };
  });
  return compared ?? "unknown";
}

/** Content that a file has in common with the life of another. */
export interface CopyProof {
  readonly same: Same;
  /** Bytes of what was read that are surely the same. */
  readonly provenBytes: number;
}

/**
 * As `compareWith`, for a file that may be a copy: everything is compared that the print tells of. Undefined when it is
 * none.
 */
export async function proveCopy(root: string, at: FileLook, print: Print): Promise<CopyProof | undefined> {
  const same = await compareWith(root, at, print);
  if (typeof same === "string") return undefined;
  const through = await withFile(root, at, (file) => matchChain(file, print.chain ?? [], same.size));
  if (through === undefined) return undefined;
  const headBytes = Math.min(same.size, Buffer.byteLength(print.head, "base64"));
  return { same, provenBytes: same.short ? Math.max(through, headBytes) : print.offset };
}

/** Undefined when it is not there any more, or shorter than it was. */
export function firstBytes(root: string, at: FileLook): Promise<string | undefined> {
  return withFile(root, at, async (file) => {
    const head = headOf(await readAt(file, 0, LOG_HEAD_BYTES));
    return (await file.stat()).size < at.size ? undefined : head;
  });
}

interface Pair {
  readonly at: FileLook;
  readonly other: FileLook;
  /** Bytes that were the same before. */
  readonly known: number;
}

/**
 * True when `other` begins with all of `at`, with the number of equal bytes. Undefined when one was renamed meanwhile.
 */
export async function isBeginningOf(
  root: string,
  { at, other, known }: Pair,
): Promise<{ same: boolean; bytes: number } | undefined> {
  return withFile(root, at, (file) =>
    withFile(root, other, async (longer) => {
      const { size } = await file.stat();
      let bytes = known <= size && (await arePartsEqual(file, longer, known)) ? known : 0;
      while (bytes < size) {
        const length = Math.min(size - bytes, LOG_COMPARE_BYTES);
        const [part, expected] = [await readAt(file, bytes, length), await readAt(longer, bytes, length)];
        if (part.length < length || !part.equals(expected)) return { same: false, bytes };
        bytes += length;
      }
      return { same: (await longer.stat()).size >= size, bytes };
    }),
  );
}

/** True when both still begin alike, and are alike before `through`: a file may have been cut off and written anew. */
async function arePartsEqual(file: FileHandle, other: FileHandle, through: number): Promise<boolean> {
  for (const start of [0, Math.max(0, through - LOG_TAIL_BYTES)]) {
    const length = Math.min(through, LOG_TAIL_BYTES);
    const [part, expected] = [await readAt(file, start, length), await readAt(other, start, length)];
    if (part.length < length || !part.equals(expected)) return false;
  }
  return true;
}

/** Undefined when it is not there, or another has its name. */
async function withFile<T>(root: string, at: FileLook, work: (file: FileHandle) => Promise<T>): Promise<T | undefined> {
  let file: FileHandle;
  try {
    file = await openTrusted(join(root, at.path));
  } catch {
    return undefined;
  }
  try {
    const { dev, ino } = await file.stat();
    return `${dev}:${ino}` === at.id ? await work(file) : undefined;
  } finally {
    await file.close();
  }
}
