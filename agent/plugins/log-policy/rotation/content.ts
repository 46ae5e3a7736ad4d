import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { LOG_COMPARE_BYTES, LOG_HEAD_BYTES, LOG_TAIL_BYTES } from "../../../../common/limits.ts";
import { openTrusted } from "../../../disk/trusted-path.ts";
import { matchChain, type Checkpoint } from "./chain.ts";
import type { FileLook } from "../folder.ts";
import { readAt } from "../reading.ts";

/**
 * Identifies a life of a file by its first bytes and by the bytes before the read position. A file that has taken its
 * name or its inode has other bytes there. A copy that a rotation makes before it truncates the file has the same.
 */
export interface Print {
  /** Its first bytes in base64, at most `LOG_HEAD_BYTES`, without reserved space (NUL bytes) after the text. */
  readonly head: string;
  readonly offset: number;
  readonly tail: Tail;
  /** Absent in marks of older versions and after a hole. A copy is then identified by head and tail alone. */
  readonly chain?: readonly Checkpoint[];
}

/** The last bytes before `offset`. They begin at the last checkpoint of the chain, or before it. */
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

/** Removes NUL bytes at the end: they may be reserved space, into which text is written later. */
function withoutRoom(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1);
}

export function cutHead(head: string, bytes: number): string {
  return Buffer.from(head, "base64").subarray(0, bytes).toString("base64");
}

/**
 * The bytes of a head. A head in a mark of an older version may have reserved space at its end, which is removed. A
 * head of NUL bytes alone identifies a file that begins with a hole, and is unchanged.
 */
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

/** `unknown`: the file is not at its path any more. */
type Compared = "other" | "unknown" | Same;

export interface Same {
  /** Current size of the file. */
  readonly size: number;
  /** The last bytes of a file that ends before the read position; absent for a file that does not. */
  readonly short?: Tail;
}

/**
 * Compares a file with a print. `Same` without `short`: head and tail are equal, and reading can continue in this file.
 * `Same` with `short`: the file ends before the read position, and only the head was compared.
 */
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

/** Proof that a file may be a copy of a life. */
export interface CopyProof {
  readonly same: Same;
  /** Number of read bytes that are proven to be equal. */
  readonly provenBytes: number;
}

/**
 * Like `compareWith`, for a file that may be a copy: it also compares the chain. Undefined when the file is no copy.
 */
export async function proveCopy(root: string, at: FileLook, print: Print): Promise<CopyProof | undefined> {
  const same = await compareWith(root, at, print);
  if (typeof same === "string") return undefined;
  const through = await withFile(root, at, (file) => matchChain(file, print.chain ?? [], same.size));
  if (through === undefined) return undefined;
  const headBytes = Math.min(same.size, Buffer.byteLength(print.head, "base64"));
  return { same, provenBytes: same.short ? Math.max(through, headBytes) : print.offset };
}

/** The head of a file. Undefined when the file is not at its path any more, or is shorter than before. */
export function firstBytes(root: string, at: FileLook): Promise<string | undefined> {
  return withFile(root, at, async (file) => {
    const head = headOf(await readAt(file, 0, LOG_HEAD_BYTES));
    return (await file.stat()).size < at.size ? undefined : head;
  });
}

interface Pair {
  readonly at: FileLook;
  readonly other: FileLook;
  /** Length of the common beginning that was found before. */
  readonly known: number;
}

/**
 * `same` is true if `other` begins with all of `at`. `bytes` is the length of the common beginning that was found.
 * Undefined when one of the files is not at its path any more.
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

/**
 * True if both files still have equal bytes at the beginning and before `through`. They may differ after one was
 * truncated and written again.
 */
async function arePartsEqual(file: FileHandle, other: FileHandle, through: number): Promise<boolean> {
  for (const start of [0, Math.max(0, through - LOG_TAIL_BYTES)]) {
    const length = Math.min(through, LOG_TAIL_BYTES);
    const [part, expected] = [await readAt(file, start, length), await readAt(other, start, length)];
    if (part.length < length || !part.equals(expected)) return false;
  }
  return true;
}

/** Calls `work` with the open file. Undefined when the file cannot be opened, or when another file has its name. */
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
