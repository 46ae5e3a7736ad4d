import { JOB_TAIL_MAX_BYTES } from "../../../../common/limits.ts";
import type { StreamPart } from "../../../store/blobs.ts";

/** The part of an output to read. */
export interface OutputPart {
  /** Position at which to begin: the number of bytes that the reader already has. */
  readonly from: number;
  /** Position before which to end; absent: continues until the run ends. */
  readonly to?: number;
  /**
   * Begins at most `tail` bytes, or `lines` lines, before the end of the output that is stored now; never before
   * `from`.
   */
  readonly tail?: number;
  readonly lines?: number;
}

const NEWLINE = 0x0a;

/** The position of the first byte to read, computed from the output that is stored now. */
export async function beginningOf(
  { from, tail, lines }: OutputPart,
  read: (offset: number, maxBytes: number) => Promise<StreamPart>,
): Promise<number> {
  if (tail === undefined && lines === undefined) return from;
  const { size } = await read(0, 1);
  const byBytes = tail === undefined ? from : size - tail;
  const byLines = lines === undefined ? from : await lastLines(size, lines, read);
  return Math.max(from, byBytes, byLines);
}

/**
 * Position at which the last lines begin, at most `JOB_TAIL_MAX_BYTES` before the end. A newline at the end belongs to
 * the last line.
 */
async function lastLines(
  size: number,
  lines: number,
  read: (offset: number, maxBytes: number) => Promise<StreamPart>,
): Promise<number> {
  if (lines === 0) return size;
  const begin = Math.max(0, size - JOB_TAIL_MAX_BYTES);
  const bytes = await whole(begin, size, read);
  let left = lines;
  for (let at = bytes.length - 2; at >= 0; at--) if (bytes[at] === NEWLINE && --left === 0) return begin + at + 1;
  return begin;
}

async function whole(
  begin: number,
  end: number,
  read: (offset: number, maxBytes: number) => Promise<StreamPart>,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for (let at = begin; at < end; ) {
    const { bytes } = await read(at, end - at);
    if (bytes.length === 0) break;
    pieces.push(bytes);
    at += bytes.length;
  }
  return Buffer.concat(pieces);
}
