import type { FileHandle } from "node:fs/promises";
import { LOG_READ_BYTES } from "../../../common/limits.ts";
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

/** The place of the first byte from `from` on that is not NUL; undefined when there is none up to `size`. */
export async function endOfHole(file: FileHandle, from: number, size: number): Promise<number | undefined> {
  for (let at = from; at < size; ) {
    const bytes = await readAt(file, at, Math.min(NULS.length, size - at));
    if (bytes.length === 0) return undefined;
    if (!bytes.equals(NULS.subarray(0, bytes.length))) return at + bytes.findIndex((byte) => byte !== 0);
    at += bytes.length;
  }
  return undefined;
}
