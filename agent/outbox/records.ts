import { keptBytes } from "../../common/agent/records.ts";
import { RECORDS_ENTRY_MAX_BYTES, RECORDS_PER_ENTRY_MAX } from "../../common/limits.ts";
import type { Encoding } from "../../common/text/encodings.ts";
import { TextStream } from "../../common/text/text-stream.ts";
import type { Records } from "../../proto/gen/agent/v1/agent.ts";
import type { Emission } from "./outbox.ts";

export interface RawRecord {
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly cut: boolean;
  /** The record had bytes that are invalid in its encoding. They are U+FFFD in `bytes`. */
  readonly malformed?: boolean;
  /** The original bytes of a malformed record. Absent when the record is not malformed, or when they were not kept. */
  readonly raw?: Uint8Array | undefined;
  /** The heading line that names the columns of the record; absent when none is known. */
  readonly heading?: string;
}

export type RecordsHead = Omit<Records, "offset" | "records" | "cut" | "malformed" | "raw" | "rawLengths" | "heading">;

interface ReadRecord {
  readonly bytes: Uint8Array;
  /** Position of the bytes in the file or the output. */
  readonly offset: number;
  readonly cut: boolean;
}

/** Converts a record to UTF-8, as it is sent. `leading` matches text at its beginning that is not sent. */
export function decodedRecord(
  { bytes: read, offset, cut }: ReadRecord,
  { encoding, leading }: { readonly encoding: Encoding; readonly leading?: RegExp },
): RawRecord & { readonly malformedCharacters: number } {
  const stream = new TextStream(encoding, { isWithin: offset > 0 });
  const text = stream.take(read);
  // A record that was cut may end within a character. That character is not malformed, so its bytes are dropped.
  const decoded = cut ? text : text + stream.end();
  const whole = Buffer.from(leading === undefined ? decoded : decoded.replace(leading, ""));
  const sent = keptBytes(whole);
  const malformedCharacters = stream.malformed;
  return {
    bytes: whole.subarray(0, sent),
    offset,
    cut: cut || sent < whole.length,
    malformed: malformedCharacters > 0,
    malformedCharacters,
    raw: malformedCharacters > 0 ? read : undefined,
  };
}

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
