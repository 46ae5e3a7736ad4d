import { createHash } from "node:crypto";
import { open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { LOG_COMPARE_BYTES, LOG_HEAD_BYTES, LOG_TAIL_BYTES } from "../../../common/limits.ts";
import type { FileLook } from "./folder.ts";

/**
 * What tells the life of a file from whatever takes its name or its inode: its first bytes, and those before the place up to which it
 * was read. A copy of it, which a rotation may make before it cuts the file off, has them too.
 */
export interface Print {
  /** Its first bytes as they are, in base64, at most `LOG_HEAD_BYTES`. */
  readonly head: string;
  readonly offset: number;
  readonly tail: Tail;
}

/** The last bytes before `offset`. */
export interface Tail {
  readonly hash: string;
  readonly bytes: number;
}

export const NO_TAIL: Tail = { hash: "", bytes: 0 };

export function tailOf(bytes: Uint8Array): Tail {
  const last = bytes.subarray(Math.max(0, bytes.length - LOG_TAIL_BYTES));
  return last.length === 0
    ? NO_TAIL
    : { hash: createHash("sha256").update(last).digest("hex").slice(0, 16), bytes: last.length };
}

/** Fewer bytes than asked for at the end of the file. */
export async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.max(0, length));
  let done = 0;
  while (done < buffer.length) {
    const { bytesRead } = await file.read(buffer, done, buffer.length - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return buffer.subarray(0, done);
}

export function headOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(0, LOG_HEAD_BYTES)).toString("base64");
}

export function extendsHead(longer: string, head: string): boolean {
  const expected = Buffer.from(head, "base64");
  return Buffer.from(longer, "base64").subarray(0, expected.length).equals(expected);
}

export async function hasHead(file: FileHandle, head: string): Promise<boolean> {
  const expected = Buffer.from(head, "base64");
  return (await readAt(file, 0, expected.length)).equals(expected);
}

async function hasTail(file: FileHandle, { offset, tail }: Print): Promise<boolean> {
  const bytes = await readAt(file, offset - tail.bytes, tail.bytes);
  return tailOf(bytes).hash === tail.hash;
}

/** Of a file that is not the one looked at any more, because it was renamed meanwhile, nothing can be said. */
type Compared = "other" | "unknown" | Same;

export interface Same {
  /** Present size of the file. */
  readonly size: number;
  /** Of a copy that ends before the place read: its last bytes. */
  readonly short?: Tail;
}

/** Whether the file holds what the print speaks of, so that it can be read on from there, or may be a copy of it that was ended before. */
export async function compareWith(root: string, at: FileLook, print: Print): Promise<Compared> {
  const compared = await withFile(root, at, async (file): Promise<Compared> => {
    const { size } = await file.stat();
    const head = Buffer.from(print.head, "base64");
    const first = await readAt(file, 0, Math.min(head.length, size));
    if (first.length === 0 ? head.length > 0 : !first.equals(head.subarray(0, first.length))) return "other";
    if (size >= print.offset) return first.length === head.length && (await hasTail(file, print)) ? { size } : "other";
    const last = await readAt(file, Math.max(0, size - LOG_TAIL_BYTES), Math.min(size, LOG_TAIL_BYTES));
    return { size, short: tailOf(last) };
  });
  return compared ?? "unknown";
}

/** Undefined when it is not there any more, or shorter than it was. */
export function firstBytes(root: string, at: FileLook): Promise<string | undefined> {
  return withFile(root, at, async (file) => {
    const head = headOf(await readAt(file, 0, LOG_HEAD_BYTES));
    return (await file.stat()).size < at.size ? undefined : head;
  });
}

/** Whether the first file is as the second begins; long ones are compared in part. Undefined when one of them was renamed meanwhile. */
export async function isBeginningOf(root: string, at: FileLook, other: FileLook): Promise<boolean | undefined> {
  return withFile(root, at, (file) =>
    withFile(root, other, async (longer) => {
      const { size } = await file.stat();
      const length = Math.min(size, LOG_COMPARE_BYTES);
      const [bytes, expected] = [await readAt(file, 0, length), await readAt(longer, 0, length)];
      return (await longer.stat()).size >= size && bytes.equals(expected);
    }),
  );
}

/** Undefined when it is not there, or another has its name. */
async function withFile<T>(root: string, at: FileLook, work: (file: FileHandle) => Promise<T>): Promise<T | undefined> {
  let file: FileHandle;
  try {
    file = await open(join(root, at.path), "r");
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
