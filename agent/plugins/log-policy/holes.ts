import type { FileHandle } from "node:fs/promises";
import { LOG_HOLE_LOOK_BYTES, LOG_READ_BYTES } from "../../../common/limits.ts";
import { readAt } from "./reading.ts";

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
export interface HoleLook {
  readonly through: number;
  /** True when another byte is at that place. */
  readonly isEnd: boolean;
}

/** Looks for the end of a hole from a place on, at most `LOG_HOLE_LOOK_BYTES` far: a sparse file may have terabytes. */
export async function lookThroughHole(file: FileHandle, from: number, size: number): Promise<HoleLook> {
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
