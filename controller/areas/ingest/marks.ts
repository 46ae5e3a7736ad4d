import { isUtf8 } from "node:buffer";
import { RECORD_MAX_BYTES } from "../../../common/limits.ts";
import type { Records } from "../../../proto/gen/agent/v1/agent.ts";
import type { RecordMark, RecordMarks } from "../objects/index.ts";

/** By ordinal, of those records of an entry that are not as they were written. */
export type MarkedRecords = ReadonlyMap<number, RecordMarks>;

const NONE: MarkedRecords = new Map();
const NOTHING = Buffer.alloc(0);

/**
 * Marks records that are not as written. The agent marks those that it cut or decoded from another encoding; bytes that
 * are not UTF-8 are found here.
 */
export function markedRecords(records: Records): MarkedRecords {
  // Nearly all entries have none, and make nothing here.
  let marked: Map<number, RecordMarks> | undefined;
  const told = records.cut.length + records.malformed.length > 0 ? new Told(records) : undefined;
  for (let at = 0; at < records.records.length; at += 1) {
    const bytes = records.records[at] ?? NOTHING;
    const marks = told?.of(at);
    const isText = isUtf8(bytes);
    if (marks === undefined && isText) continue;
    marked ??= new Map();
    marked.set(at, isText && marks ? marks : malformedBytes(bytes, marks));
  }
  return marked ?? NONE;
}

/** How many of them have the mark. */
export function countOf(marked: MarkedRecords, mark: RecordMark): number {
  let count = 0;
  for (const { marks } of marked.values()) if (marks.includes(mark)) count += 1;
  return count;
}

/** One of the records alone, with its marks. */
export function onlyRecord(records: Records, ordinal: number): Records | undefined {
  const bytes = records.records[ordinal];
  if (bytes === undefined) return undefined;
  const alone = { ...records, records: [bytes], cut: [], malformed: [], raw: NOTHING, rawLengths: [] };
  if (records.cut.length + records.malformed.length === 0) return alone;
  const told = new Told(records);
  const raw = told.rawOf(ordinal);
  return {
    ...alone,
    ...(told.isCut(ordinal) && { cut: [0] }),
    ...(told.isMalformed(ordinal) && { malformed: [0], raw: raw ?? NOTHING, rawLengths: [raw?.length ?? 0] }),
  };
}

/** Marks that the agent sent with the records of an entry. */
class Told {
  readonly #cut: ReadonlySet<number>;
  /** By ordinal: raw bytes of malformed records, where they are known. */
  readonly #malformed: ReadonlyMap<number, Buffer | undefined>;

  constructor({ cut, malformed, raw, rawLengths }: Records) {
    this.#cut = new Set(cut);
    let from = 0;
    const known = new Map<number, Buffer | undefined>();
    for (const [place, ordinal] of malformed.entries()) {
      const length = rawLengths[place] ?? 0;
      const isThere = length > 0 && length <= RECORD_MAX_BYTES && from + length <= raw.length;
      known.set(ordinal, isThere ? raw.subarray(from, from + length) : undefined);
      from += length;
    }
    this.#malformed = known;
  }

  isCut(ordinal: number): boolean {
    return this.#cut.has(ordinal);
  }

  isMalformed(ordinal: number): boolean {
    return this.#malformed.has(ordinal);
  }

  rawOf(ordinal: number): Buffer | undefined {
    return this.#malformed.get(ordinal);
  }

  of(ordinal: number): RecordMarks | undefined {
    const [isCut, isMalformed] = [this.isCut(ordinal), this.isMalformed(ordinal)];
    if (!isMalformed) return isCut ? { marks: ["cut"] } : undefined;
    const raw = this.rawOf(ordinal);
    const rawBytes = raw?.toString("base64");
    return { marks: isCut ? ["cut", "malformed"] : ["malformed"], rawBytes };
  }
}

/** Marks of a record whose bytes came as they were written. */
function malformedBytes(bytes: Buffer, told: RecordMarks | undefined): RecordMarks {
  const marks = told?.marks.includes("cut") ? (["cut", "malformed"] as const) : (["malformed"] as const);
  return { marks, rawBytes: bytes.subarray(0, RECORD_MAX_BYTES).toString("base64") };
}
