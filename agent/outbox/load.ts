import { join } from "node:path";
import type { Files, OpenFile } from "../../common/files.ts";
import { readWhole, syncFolder, writeWholly } from "../disk/files.ts";
import {
  applyMarks,
  decodeGroup,
  decodeHeader,
  FRAME_HEAD_BYTES,
  lastEntry,
  makesRows,
  scanFrames,
  serialOf,
  type Segment,
  type SegmentHeader,
} from "./segment.ts";

/** The outbox as the previous agent process left it on disk. */
export interface LoadedOutbox {
  readonly streamId: string;
  readonly nextSequence: number;
  /** Time of the last entry that becomes rows (`makesRows`); 0 when there is none. */
  readonly lastTimeMs: number;
  readonly segments: readonly Segment[];
  readonly marks: ReadonlyMap<string, string>;
  /** The last segment, open for writing. New frames are appended to it. */
  readonly file: OpenFile;
  readonly damagedFrames: number;
  readonly tornBytes: number;
}

interface LeftSegment {
  readonly segment: Segment;
  readonly header: SegmentHeader;
  /**
   * Payloads of the frames after the header's frame. Groups with further marks of the header (`parts`) are included.
   */
  readonly groups: readonly Buffer[];
  readonly nextSequence: number;
  /** The bytes of the last frame, or of the whole header when no further frame follows. */
  readonly lastWrite: Buffer;
  readonly damagedFrames: number;
  readonly tornBytes: number;
}

/**
 * Loads the outbox of a folder; undefined when it has no segment. Everything in the answer is durable when the promise
 * resolves.
 */
export async function loadOutbox(files: Files, folder: string): Promise<LoadedOutbox | undefined> {
  const found: LeftSegment[] = [];
  for (const name of (await files.readdir(folder)).sort()) {
    const serial = serialOf(name);
    if (serial === undefined) continue;
    const segment = await loadSegment(files, join(folder, name), serial);
    // Either a crash interrupted the creation of this segment, or its creation failed and its deletion did not become
    // durable. In the second case, writing continued in the segment before it.
    if (!segment || segment.header.base < (found.at(-1)?.nextSequence ?? 1)) await files.rm(join(folder, name));
    else found.push(segment);
  }
  const last = found.at(-1);
  if (!last) return undefined;
  return {
    streamId: last.header.stream,
    nextSequence: last.nextSequence,
    lastTimeMs: lastTimeMs(found),
    segments: found.map(({ segment }) => segment),
    marks: marksOf(last),
    file: await openLast(files, folder, last),
    damagedFrames: found.reduce((sum, { damagedFrames }) => sum + damagedFrames, 0),
    tornBytes: last.tornBytes,
  };
}

/** Undefined when the header is incomplete or damaged. */
async function loadSegment(files: Files, path: string, serial: number): Promise<LeftSegment | undefined> {
  const bytes = (await readWhole(files, path)) ?? Buffer.alloc(0);
  const {
    payloads: [first, ...groups],
    end,
    damaged,
  } = scanFrames(bytes);
  if (!first) return undefined;
  const header = decodeHeader(first);
  const { parts = 0 } = header;
  // A crash interrupted the creation of the segment. It has no entries then, because entries are written only after all
  // marks of the header.
  if (groups.length < parts) return undefined;
  const headerBytes = [first, ...groups.slice(0, parts)].reduce(
    (sum, { length }) => sum + FRAME_HEAD_BYTES + length,
    0,
  );
  const segment = { serial, path, base: header.base, headerBytes, bytes: end };
  const nextSequence = (lastEntry(groups)?.sequence ?? header.base - 1) + 1;
  const last = groups.length > parts ? groups.at(-1) : undefined;
  const lastWrite = bytes.subarray(last ? end - FRAME_HEAD_BYTES - last.length : 0, end);
  return { segment, header, groups, nextSequence, lastWrite, damagedFrames: damaged, tornBytes: bytes.length - end };
}

function lastTimeMs(segments: readonly LeftSegment[]): number {
  for (const { groups } of segments.toReversed()) {
    const last = lastEntry(groups, ({ body }) => makesRows(body));
    if (last) return last.timeMs;
  }
  return 0;
}

/**
 * The marks at the end of the segment. The header has all marks at the time of its creation, and the groups after it
 * have the later changes.
 */
function marksOf({ header, groups }: LeftSegment): ReadonlyMap<string, string> {
  const marks = new Map(header.marks);
  for (const payload of groups) applyMarks(marks, decodeGroup(payload).marks);
  return marks;
}

/**
 * Writes the last frame again and syncs it, before the agent acts on its content. The previous process may have been
 * killed between the write and its sync. A sync alone is not enough: if the earlier one failed, the system keeps the
 * bytes in memory but treats them as written.
 */
async function openLast(
  files: Files,
  folder: string,
  { segment, lastWrite, tornBytes }: LeftSegment,
): Promise<OpenFile> {
  const file = await files.open(segment.path, "r+");
  if (tornBytes > 0) await file.truncate(segment.bytes);
  await writeWholly(file, lastWrite, segment.bytes - lastWrite.length);
  await file.datasync();
  await syncFolder(files, folder);
  return file;
}
