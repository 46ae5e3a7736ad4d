import type { FileHandle } from "node:fs/promises";
import { LOG_HEAD_BYTES, LOG_HOLE_LOOK_BYTES, LOG_READ_BYTES, LOG_TAIL_BYTES } from "../../../../common/limits.ts";
import { tailOf, type Print } from "../rotation/content.ts";
import { readAt } from "../reading.ts";

/**
 * A hole is a run of NUL bytes that no program wrote. A writer that does not always write at the end leaves one at the
 * beginning of its file when that is cut off: it goes on where it was. Others reserve room behind what they have written.
 */

const NULS = Buffer.alloc(LOG_READ_BYTES);
const LINE_BEFORE_HOLE = Buffer.of(10, 0);

export function beginsWithHole(bytes: Buffer, unitBytes: 1 | 2): boolean {
  return bytes[0] === 0 && (unitBytes === 1 || bytes[1] === 0);
}

/**
 * How many of `bytes` to take for text, best first; zero for a hole. What ends with a line before a hole comes first, then
 * what ends with the last text. A hole within a record is a part of it, unless the file ends with the hole (`isWhole`):
 * that is room which may be written yet. `bytes` begin where a code unit begins.
 */
export function textEnds(
  bytes: Buffer,
  { unitBytes, isWhole }: { readonly unitBytes: 1 | 2; readonly isWhole: boolean },
): readonly number[] {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  end = Math.min(bytes.length, end + (end % unitBytes));
  const line = unitBytes > 1 ? -1 : bytes.subarray(0, end).indexOf(LINE_BEFORE_HOLE);
  return [...(line < 0 ? [] : [line + 1]), end, ...(isWhole || end === bytes.length ? [] : [bytes.length])];
}

/** A place up to which a file has nothing but NUL bytes. */
interface HoleLook {
  readonly through: number;
  /** True when another byte is at that place. */
  readonly isEnd: boolean;
}

/** Looks for the end of a hole from a place on, at most `LOG_HOLE_LOOK_BYTES` far: a sparse file may have terabytes. */
async function lookThroughHole(file: FileHandle, from: number, size: number): Promise<HoleLook> {
  const limit = Math.min(size, from + LOG_HOLE_LOOK_BYTES);
  let at = from;
  while (at < limit) {
    const bytes = await readAt(file, at, Math.min(NULS.length, limit - at));
    if (bytes.length === 0) break;
    if (!bytes.equals(NULS.subarray(0, bytes.length)))
      return { through: at + bytes.findIndex((byte) => byte !== 0), isEnd: true };
    at += bytes.length;
  }
  return { through: at, isEnd: false };
}

/** The print of a file that is read on behind a hole. One that begins with it is known by it, now that text follows. */
export async function printBehindHole(file: FileHandle, offset: number, head: string): Promise<Print> {
  const from = Math.max(0, offset - LOG_TAIL_BYTES);
  const hole = await readAt(file, 0, head === "" ? Math.min(offset, LOG_HEAD_BYTES) : 0);
  const tail = tailOf(await readAt(file, from, offset - from));
  return { head: head || hole.toString("base64"), offset, tail, chain: undefined };
}

/** The NUL bytes behind the place read of a file: a hole that is looked through, or room behind its text. */
export class Room {
  /** The hole as far as it was looked through, and whether it ended with the file. */
  #hole = { from: -1, through: -1, isWhole: false };
  #text = { end: 0, size: -1 };

  /** A file of that size has only NUL bytes from `end` on. */
  note(end: number, size: number): void {
    this.#text = { end, size };
  }

  /** The end of the text that was seen in a file of that size. */
  textEnd(size: number): number {
    return this.#text.size === size ? this.#text.end : size;
  }

  /** Looks on through the hole at the place read. Text may have been written since the last look where only room was. */
  async look(
    file: FileHandle,
    { offset, size }: { readonly offset: number; readonly size: number },
  ): Promise<HoleLook> {
    const { from, through, isWhole } = this.#hole;
    if (from === offset && isWhole && through === size) return { through, isEnd: false };
    const found = await lookThroughHole(file, from === offset && !isWhole ? through : offset, size);
    if (found.isEnd) return found;
    this.#hole = { from: offset, through: found.through, isWhole: found.through >= size };
    if (this.#hole.isWhole) this.note(offset, size);
    return found;
  }
}
