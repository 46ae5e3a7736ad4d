import { RECORDS_ENTRY_MAX_BYTES, RECORDS_PER_ENTRY_MAX } from "../limits.ts";
import type { RawRecord } from "./raw-records.ts";

/** Records of one entry. */
export interface PackedRecords {
  /** Position of the first record in its file or output. */
  readonly offset: number;
  /** The heading line of all of them; absent when none is known. */
  readonly heading: string | undefined;
  readonly records: Uint8Array[];
  /** Ordinals of the records that lost their end. */
  readonly cut: number[];
  /** Ordinals of the records with bytes that are invalid in their encoding. */
  readonly malformed: number[];
  /** Original bytes of malformed records, and the length of each; zero if they were not kept. */
  readonly raw: Uint8Array[];
  readonly rawLengths: number[];
}

/**
 * Packs records, in order. A new entry begins when the current one is full, or when the next record has another heading
 * line.
 */
export function packedRecords(records: readonly RawRecord[]): readonly PackedRecords[] {
  const entries: PackedRecords[] = [];
  let value: PackedRecords | undefined;
  let bytes = 0;
  for (const record of records) {
    const { offset, heading } = record;
    const size = sizeOf(record);
    const isFull = value && (value.records.length >= RECORDS_PER_ENTRY_MAX || bytes + size > RECORDS_ENTRY_MAX_BYTES);
    if (!value || isFull || value.heading !== heading) {
      value = { offset, heading, records: [], cut: [], malformed: [], raw: [], rawLengths: [] };
      entries.push(value);
      bytes = 0;
    }
    add(value, record);
    bytes += size;
  }
  return entries;
}

function add(value: PackedRecords, record: RawRecord): void {
  if (record.cut) value.cut.push(value.records.length);
  if (record.malformed) {
    value.malformed.push(value.records.length);
    value.rawLengths.push(record.raw?.length ?? 0);
    if (record.raw) value.raw.push(record.raw);
  }
  value.records.push(record.bytes);
}

/** Bytes that a record takes in an entry. */
export function sizeOf({ bytes, raw }: RawRecord): number {
  return bytes.length + (raw?.length ?? 0);
}
