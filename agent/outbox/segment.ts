import { crc32 } from "node:zlib";
import type { Entry } from "../../proto/gen/agent/v1/agent.ts";
import { AppError } from "../../common/errors.ts";
import { OUTBOX_FRAME_MAX_BYTES } from "../../common/limits.ts";
import { encodeEntry, storedEntries } from "./entries.ts";

/**
 * The format of the outbox on disk. A segment file is a sequence of frames: length (u32), CRC-32 of the payload (u32),
 * payload. The payload of the first frame is the header, with all marks at the time when the segment was created. Every
 * other payload is a group: changed marks, and entries. Marks that do not fit into the header are in the groups
 * directly after it.
 */

export type EntryBody = NonNullable<Entry["body"]>;

/** A file of the outbox. `bytes` is the length that is durable on disk; it increases with every write. */
export interface Segment {
  readonly serial: number;
  readonly path: string;
  readonly base: number;
  readonly headerBytes: number;
  bytes: number;
}

/** A change of a mark. Without a value, the mark is removed. */
export interface Mark {
  readonly key: string;
  readonly value?: string | undefined;
}

export interface SegmentHeader {
  readonly format: 1;
  readonly stream: string;
  /**
   * Sequence of the first entry that is written after the header. If this segment has no entries, a later segment
   * begins with it.
   */
  readonly base: number;
  readonly marks: readonly (readonly [key: string, value: string])[];
  /** Number of groups after the header that contain further marks. Absent: the header contains all marks. */
  readonly parts?: number;
}

export interface Group {
  readonly entries: readonly Entry[];
  readonly marks: readonly Mark[];
}

export const FRAME_HEAD_BYTES = 8;
/**
 * Maximum size of a frame's payload. An append counts only the size of its entries, not of its marks, so a frame may be
 * larger than `OUTBOX_FRAME_MAX_BYTES`.
 */
const PAYLOAD_MAX_BYTES = 4 * OUTBOX_FRAME_MAX_BYTES;
const KIND_HEADER = 0;
const KIND_GROUP = 1;
const GROUP_HEAD_BYTES = 5;

const SEGMENT_NAME = /^(\d{10})\.seg$/;

export function segmentName(serial: number): string {
  return `${String(serial).padStart(10, "0")}.seg`;
}

/** The serial in the name of a segment file; undefined for other names. */
export function serialOf(name: string): number | undefined {
  const digits = SEGMENT_NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** The frame of the header. If the marks are too large for one frame, a group follows for each further part of them. */
export function encodeHeader(header: SegmentHeader): Buffer {
  const [marks = [], ...rest] = inParts(header.marks);
  const first = { ...header, marks, ...(rest.length > 0 && { parts: rest.length }) };
  const groups = rest.map((part) => encodeGroup({ entries: [], marks: part.map(([key, value]) => ({ key, value })) }));
  return Buffer.concat([frame([Buffer.of(KIND_HEADER), Buffer.from(JSON.stringify(first))]), ...groups]);
}

/** Splits marks, in their order, into parts that each fit into one append. */
export function inParts(marks: SegmentHeader["marks"]): SegmentHeader["marks"][] {
  const parts: SegmentHeader["marks"][number][][] = [];
  let bytes = Infinity;
  for (const mark of marks) {
    const weight = Buffer.byteLength(JSON.stringify(mark));
    bytes += weight;
    if (bytes > OUTBOX_FRAME_MAX_BYTES) {
      parts.push([]);
      bytes = weight;
    }
    parts.at(-1)?.push(mark);
  }
  return parts;
}

export function encodeGroup(group: Group): Buffer {
  const marks = Buffer.from(
    group.marks.length === 0 ? "" : JSON.stringify(group.marks.map(({ key, value }) => [key, value ?? null])),
  );
  const head = Buffer.alloc(GROUP_HEAD_BYTES);
  head.writeUInt8(KIND_GROUP, 0);
  head.writeUInt32LE(marks.length, 1);
  return frame([head, marks, ...group.entries.map(encodeEntry)]);
}

/** The frame of a payload that is given in parts. */
function frame(parts: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.concat([Buffer.alloc(FRAME_HEAD_BYTES), ...parts]);
  const payload = bytes.subarray(FRAME_HEAD_BYTES);
  if (payload.length > PAYLOAD_MAX_BYTES) throw new AppError("too_large", "A frame of the outbox is too large.");
  bytes.writeUInt32LE(payload.length, 0);
  bytes.writeUInt32LE(crc32(payload), 4);
  return bytes;
}

export function decodeHeader(payload: Buffer): SegmentHeader {
  const header: unknown = payload[0] === KIND_HEADER ? JSON.parse(payload.toString("utf8", 1)) : undefined;
  if (!isHeader(header)) throw new AppError("unsupported", "The outbox was written by a newer agent.");
  return header;
}

function isHeader(value: unknown): value is SegmentHeader {
  return typeof value === "object" && value !== null && "format" in value && value.format === 1;
}

export function decodeGroup(payload: Buffer): Group {
  if (payload[0] !== KIND_GROUP) throw new AppError("unsupported", "The outbox holds a frame of an unknown kind.");
  const marksEnd = GROUP_HEAD_BYTES + payload.readUInt32LE(1);
  return {
    marks: decodeMarks(payload.toString("utf8", GROUP_HEAD_BYTES, marksEnd)),
    entries: storedEntries(payload.subarray(marksEnd)),
  };
}

/** The last entry in these groups for which `isWanted` is true; undefined when there is none. */
export function lastEntry(
  groups: readonly Buffer[],
  isWanted: (entry: Entry) => boolean = () => true,
): Entry | undefined {
  for (const payload of groups.toReversed()) {
    const last = decodeGroup(payload).entries.findLast(isWanted);
    if (last) return last;
  }
  return undefined;
}

/**
 * True for entries that become rows ordered by time. False for output and results of commands: they are stored with
 * their command, and output is ordered by its offset.
 */
export function makesRows(body: EntryBody | undefined): boolean {
  return body !== undefined && body.$case !== "output" && body.$case !== "result";
}

export function applyMarks(marks: Map<string, string>, changes: readonly Mark[]): void {
  for (const { key, value } of changes) {
    if (value === undefined) marks.delete(key);
    else marks.set(key, value);
  }
}

function decodeMarks(text: string): Mark[] {
  if (text === "") return [];
  const pairs: unknown = JSON.parse(text);
  if (!Array.isArray(pairs)) return [];
  return pairs.map((pair: unknown) => {
    const [key, value]: unknown[] = Array.isArray(pair) ? pair : [];
    return { key: String(key), value: typeof value === "string" ? value : undefined };
  });
}

/** The frame that begins at `at`; undefined when it is incomplete or damaged. */
export function frameAt(bytes: Buffer, at: number): { payload: Buffer; next: number } | undefined {
  const next = frameEnd(bytes, at);
  if (next === undefined || next > bytes.length) return undefined;
  const payload = bytes.subarray(at + FRAME_HEAD_BYTES, next);
  return crc32(payload) === bytes.readUInt32LE(at + 4) ? { payload, next } : undefined;
}

/** The end of the frame that begins at `at`, by its length field. Undefined when there is no valid length. */
export function frameEnd(bytes: Buffer, at: number): number | undefined {
  if (at + FRAME_HEAD_BYTES > bytes.length) return undefined;
  const length = bytes.readUInt32LE(at);
  return length === 0 || length > PAYLOAD_MAX_BYTES ? undefined : at + FRAME_HEAD_BYTES + length;
}

export interface Scan {
  readonly payloads: readonly Buffer[];
  /** End of the last valid frame. Bytes after it are an incomplete write. */
  readonly end: number;
  /** Number of damaged frames that are followed by a valid one. */
  readonly damaged: number;
}

/**
 * Finds all valid frames. Invalid frames before a valid one are damage, and are skipped. Invalid frames at the end are
 * an incomplete write.
 */
export function scanFrames(bytes: Buffer): Scan {
  const payloads: Buffer[] = [];
  let end = 0;
  let damaged = 0;
  let passed = 0;
  for (let at: number | undefined = 0; at !== undefined && at < bytes.length; at = frameEnd(bytes, at)) {
    const sound = frameAt(bytes, at);
    if (!sound) {
      passed++;
      continue;
    }
    payloads.push(sound.payload);
    end = sound.next;
    damaged += passed;
    passed = 0;
  }
  return { payloads, end, damaged };
}
