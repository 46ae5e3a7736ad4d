import type { FileHandle } from "node:fs/promises";
import { LOG_HEAD_BYTES, LOG_HOLE_LOOK_BYTES, LOG_READ_BYTES, LOG_TAIL_BYTES } from "../../../../common/limits.ts";
import { tailOf, type Print } from "../rotation/content.ts";
import { readAt } from "../reading.ts";

/**
 * A hole is a run of NUL bytes that no program wrote. A truncated file begins with one if its writer does not append,
 * but continues at its old position. Other writers reserve space after their text, which has NUL bytes too.
 */

const NULS = Buffer.alloc(LOG_READ_BYTES);
const LINE_BEFORE_HOLE = Buffer.of(10, 0);

export function beginsWithHole(bytes: Buffer, unitBytes: 1 | 2): boolean {
  return bytes[0] === 0 && (unitBytes === 1 || bytes[1] === 0);
}

/**
 * Numbers of bytes that may be taken as text, best first; zero for a hole. The first number ends with a line before a
 * hole, the next with the last byte that is not NUL. The last number takes all bytes, because a hole within a record is
 * part of the record. It is left out if the file ends with `bytes` (`isWhole`), because NUL bytes at its end may be
 * reserved space. `bytes` begin at the beginning of a code unit.
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

/** Result of a look through a hole: a position before which there are only NUL bytes. */
interface HoleLook {
  readonly through: number;
  /** True if a byte that is not NUL is at that position. */
  readonly isEnd: boolean;
}

/** Searches for the end of a hole, through at most `LOG_HOLE_LOOK_BYTES`: a sparse file may have terabytes. */
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

/**
 * The print of a file after a hole was skipped. If the file begins with the hole, the NUL bytes become its head,
 * because text follows them now.
 */
export async function printBehindHole(file: FileHandle, offset: number, head: string): Promise<Print> {
  const from = Math.max(0, offset - LOG_TAIL_BYTES);
  const hole = await readAt(file, 0, head === "" ? Math.min(offset, LOG_HEAD_BYTES) : 0);
  const tail = tailOf(await readAt(file, from, offset - from));
  return { head: head || hole.toString("base64"), offset, tail, chain: undefined };
}

/** Remembers the NUL bytes after the read position of a file: a hole, or reserved space after the text. */
export class Room {
  /** The part of a hole that was looked through. `isWhole`: the part ends with the file. */
  #hole = { from: -1, through: -1, isWhole: false };
  #text = { end: 0, size: -1 };

  /** Records that a file of that size has only NUL bytes after `end`. */
  note(end: number, size: number): void {
    this.#text = { end, size };
  }

  /** The end of the text in a file of that size. Without a record of reserved space, the size itself. */
  textEnd(size: number): number {
    return this.#text.size === size ? this.#text.end : size;
  }

  /**
   * Continues to look through the hole at the read position. If the hole ended with the file and the size has changed,
   * the look begins again, because text may have been written into reserved space.
   */
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
