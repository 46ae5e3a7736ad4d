import { crc32 } from "node:zlib";
import { Batch, type Entry } from "../../proto/gen/agent/v1/agent.ts";
import { AppError } from "../../common/errors.ts";
import { OUTBOX_FRAME_MAX_BYTES } from "../../common/limits.ts";

/**
 * How the outbox lies on disk. A segment file is a row of frames: length (u32), CRC-32 of the payload (u32), payload.
 * The first payload of a segment is its header with all marks as they were; every other is one group: marks that
 * changed, and entries. Marks that do not fit into the header are in groups directly behind it.
 */

export type EntryBody = NonNullable<Entry["body"]>;

/** A file of the outbox; `bytes` is what is safely on disk. */
export interface Segment {
  readonly serial: number;
  readonly path: string;
  readonly base: number;
  readonly headerBytes: number;
  bytes: number;
}

/** Absent value: the mark is taken away. */
export interface Mark {
  readonly key: string;
  readonly value?: string | undefined;
}

export interface SegmentHeader {
  readonly format: 1;
  readonly stream: string;
  /** Sequence of the first entry in this segment, or in the next ones when it has none. */
  readonly base: number;
  readonly marks: readonly (readonly [key: string, value: string])[];
  /** Number of groups behind the header that hold further marks. Absent: the header has all of them. */
  readonly parts?: number;
}

export interface Group {
  readonly entries: readonly Entry[];
  readonly marks: readonly Mark[];
}

export const FRAME_HEAD_BYTES = 8;
/** A frame also holds marks, whose size is not counted in an append, so it may be larger than `OUTBOX_FRAME_MAX_BYTES`. */
const PAYLOAD_MAX_BYTES = 4 * OUTBOX_FRAME_MAX_BYTES;
const KIND_HEADER = 0;
const KIND_GROUP = 1;
const GROUP_HEAD_BYTES = 5;

const SEGMENT_NAME = /^(\d{10})\.seg$/;

export function segmentName(serial: number): string {
  return `${String(serial).padStart(10, "0")}.seg`;
}

/** Undefined when no segment is called so. */
export function serialOf(name: string): number | undefined {
  const digits = SEGMENT_NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** One frame, and a group for each further part of the marks where they are too large for one frame. */
export function encodeHeader(header: SegmentHeader): Buffer {
  const [marks = [], ...rest] = inParts(header.marks);
  const first = { ...header, marks, ...(rest.length > 0 && { parts: rest.length }) };
  const groups = rest.map((part) => encodeGroup({ entries: [], marks: part.map(([key, value]) => ({ key, value })) }));
  return Buffer.concat([frame(Buffer.concat([Buffer.of(KIND_HEADER), Buffer.from(JSON.stringify(first))])), ...groups]);
}

/** Marks in their order, in parts that fit into one append. */
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
  const entries = Batch.encode(Batch.fromPartial({ entries: [...group.entries] })).finish();
  return frame(Buffer.concat([head, marks, entries]));
}

function frame(payload: Buffer): Buffer {
  if (payload.length > PAYLOAD_MAX_BYTES) throw new AppError("too_large", "A frame of the outbox is too large.");
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt32LE(payload.length, 0);
  head.writeUInt32LE(crc32(payload), 4);
  return Buffer.concat([head, payload]);
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
    entries: Batch.decode(payload.subarray(marksEnd)).entries,
  };
}

/** The last of the entries in these payloads that is wanted, undefined when there are none. */
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

/** False for what commands wrote and how they ended: it is kept by its command, in the order of its places. */
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

/** The frame at `at`, or undefined when there is none that is whole and sound. */
export function frameAt(bytes: Buffer, at: number): { payload: Buffer; next: number } | undefined {
  const next = frameEnd(bytes, at);
  if (next === undefined || next > bytes.length) return undefined;
  const payload = bytes.subarray(at + FRAME_HEAD_BYTES, next);
  return crc32(payload) === bytes.readUInt32LE(at + 4) ? { payload, next } : undefined;
}

/** Where the frame at `at` would end, by its length field. */
export function frameEnd(bytes: Buffer, at: number): number | undefined {
  if (at + FRAME_HEAD_BYTES > bytes.length) return undefined;
  const length = bytes.readUInt32LE(at);
  return length === 0 || length > PAYLOAD_MAX_BYTES ? undefined : at + FRAME_HEAD_BYTES + length;
}

export interface Scan {
  readonly payloads: readonly Buffer[];
  /** End of the last sound frame: what follows was torn off by a crash. */
  readonly end: number;
  /** Frames in the middle with damaged bytes. */
  readonly damaged: number;
}

/** All sound frames. Bad frames with a sound one behind them are damage and left out; otherwise they are the torn tail. */
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

/** About how many bytes an entry takes. */
export function entryWeight(body: EntryBody): number {
  if (body.$case === "records") {
    const { records, raw, heading = "" } = body.value;
    return records.reduce((sum, record) => sum + record.length + 4, 200 + raw.length + Buffer.byteLength(heading));
  }
  return body.$case === "output" ? body.value.data.length + 100 : 300;
}
