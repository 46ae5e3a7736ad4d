import type { RawRecord } from "../../common/agent/raw-records.ts";
import { RECORDS_ENTRY_MAX_BYTES, RECORDS_PER_ENTRY_MAX } from "../../common/limits.ts";
import type { Records } from "../../proto/gen/agent/v1/agent.ts";
import type { Emission } from "./outbox.ts";

export type RecordsHead = Omit<Records, "offset" | "records" | "cut" | "malformed" | "raw" | "rawLengths" | "heading">;

/**
 * Packs records into entries, in order. A new entry begins when the current one is full, or when the next record has
 * another heading line.
 */
export function packRecords(head: RecordsHead, records: readonly RawRecord[]): Emission[] {
  const entries: Emission[] = [];
  let value: Records | undefined;
  let raw: Uint8Array[] = [];
  let bytes = 0;
  const close = (): void => {
    // Entries without malformed records keep the shared empty buffer. Nearly all entries are so.
    if (value && raw.length > 0) value.raw = Buffer.concat(raw);
  };
  for (const record of records) {
    const size = sizeOf(record);
    const isFull = value && (value.records.length >= RECORDS_PER_ENTRY_MAX || bytes + size > RECORDS_ENTRY_MAX_BYTES);
    if (!value || isFull || value.heading !== record.heading) {
      close();
      value = {
        ...head,
        offset: record.offset,
        records: [],
        cut: [],
        malformed: [],
        raw: NOTHING,
        rawLengths: [],
        heading: record.heading,
      };
      entries.push({ body: { $case: "records", value } });
      raw = [];
      bytes = 0;
    }
    if (record.cut) value.cut.push(value.records.length);
    if (record.malformed) {
      value.malformed.push(value.records.length);
      value.rawLengths.push(record.raw?.length ?? 0);
      if (record.raw) raw.push(record.raw);
    }
    value.records.push(asBuffer(record.bytes));
    bytes += size;
  }
  close();
  return entries;
}

/** Bytes that a record takes in the outbox and in an entry. */
export function sizeOf({ bytes, raw }: RawRecord): number {
  return bytes.length + (raw?.length ?? 0);
}

const NOTHING = Buffer.alloc(0);

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
