import { isUtf8 } from "node:buffer";
import { RECORD_MAX_BYTES } from "../../../common/limits.ts";
import type { Records } from "../../../proto/gen/agent/v1/agent.ts";
import type { RecordMark, RecordMarks } from "../objects/index.ts";

/** Marks by ordinal, only for the records of an entry that differ from the text at their source. */
export type MarkedRecords = ReadonlyMap<number, RecordMarks>;

const NONE: MarkedRecords = new Map();
const NOTHING = Buffer.alloc(0);

/**
 * Finds the records that differ from the text at their source. The agent reports the records that it cut, and malformed
 * records that it read in an encoding other than UTF-8. Bytes that are invalid in UTF-8 are found here.
 */
export function markedRecords(records: Records): MarkedRecords {
  // Nearly all entries have no marks, so no map is created for them.
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

/** Number of records with the mark. */
export function countOf(marked: MarkedRecords, mark: RecordMark): number {
  let count = 0;
  for (const { marks } of marked.values()) if (marks.includes(mark)) count += 1;
  return count;
}

/** The records reduced to the one with this ordinal, with its marks. `undefined` if there is no such record. */
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
  /** Raw bytes of malformed records by ordinal; `undefined` if the agent sent none that are valid. */
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

/** Marks of a record whose bytes are invalid in UTF-8. The agent did not decode them, so they are the raw bytes. */
function malformedBytes(bytes: Buffer, told: RecordMarks | undefined): RecordMarks {
  const marks = told?.marks.includes("cut") ? (["cut", "malformed"] as const) : (["malformed"] as const);
  return { marks, rawBytes: bytes.subarray(0, RECORD_MAX_BYTES).toString("base64") };
}
