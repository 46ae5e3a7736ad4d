import type { Records } from "../proto/gen/agent/v1/agent.ts";
import { RECORDS_ENTRY_MAX_BYTES, RECORDS_PER_ENTRY_MAX } from "../common/limits.ts";
import type { Emission } from "./outbox.ts";

export interface RawRecord {
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly cut: boolean;
  /** Bytes that were no character of the encoding it was read in are U+FFFD now. */
  readonly malformed?: boolean;
  /** The line of its file that names its columns; absent where none is known. */
  readonly heading?: string;
}

export type RecordsHead = Omit<Records, "offset" | "records" | "cut" | "malformed" | "heading">;

/** Packs records into as few entries as their bounds and their heading lines allow, in order. */
export function packRecords(head: RecordsHead, records: readonly RawRecord[]): Emission[] {
  const entries: Emission[] = [];
  let value: Records | undefined;
  let bytes = 0;
  for (const record of records) {
    if (
      !value ||
      value.heading !== record.heading ||
      value.records.length >= RECORDS_PER_ENTRY_MAX ||
      bytes + record.bytes.length > RECORDS_ENTRY_MAX_BYTES
    ) {
      value = { ...head, offset: record.offset, records: [], cut: [], malformed: [], heading: record.heading };
      entries.push({ body: { $case: "records", value } });
      bytes = 0;
    }
    if (record.cut) value.cut.push(value.records.length);
    if (record.malformed) value.malformed.push(value.records.length);
    value.records.push(asBuffer(record.bytes));
    bytes += record.bytes.length;
  }
  return entries;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
