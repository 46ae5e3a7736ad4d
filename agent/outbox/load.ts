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

/** An outbox as a former agent left it. */
export interface LoadedOutbox {
  readonly streamId: string;
  readonly nextSequence: number;
  /** Time of the last entry that rows are made of; 0 when there is none. */
  readonly lastTimeMs: number;
  readonly segments: readonly Segment[];
  readonly marks: ReadonlyMap<string, string>;
  /** The last segment, open to go on. */
  readonly file: OpenFile;
  readonly damagedFrames: number;
  readonly tornBytes: number;
}

interface LeftSegment {
  readonly segment: Segment;
  readonly header: SegmentHeader;
  /** Payloads. */
  readonly groups: readonly Buffer[];
  readonly nextSequence: number;
  /** The last frame with its head, or the whole header when nothing is behind it. */
  readonly lastWrite: Buffer;
  readonly damagedFrames: number;
  readonly tornBytes: number;
}

/** Undefined when there is none. What it answers is durable. */
export async function loadOutbox(files: Files, folder: string): Promise<LoadedOutbox | undefined> {
  const found: LeftSegment[] = [];
  for (const name of (await files.readdir(folder)).sort()) {
    const serial = serialOf(name);
    if (serial === undefined) continue;
    const segment = await loadSegment(files, join(folder, name), serial);
    // A crash while it was made, or a failure whose deletion was lost: then the file before it went on.
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

/** Undefined without a sound and whole header. */
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
  // A crash while it was made: entries come only after all marks are on disk.
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

/** A header has all of them as they were, the groups behind it what changed since. */
function marksOf({ header, groups }: LeftSegment): ReadonlyMap<string, string> {
  const marks = new Map(header.marks);
  for (const payload of groups) applyMarks(marks, decodeGroup(payload).marks);
  return marks;
}

/**
 * Writes the last write again before the agent acts on it, as a kill may have come between that write and its sync. If
 * its sync failed, the system has it in memory only, takes it for written, and would sync nothing.
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
