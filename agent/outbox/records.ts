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
  /** Bytes that were no character of the encoding it was read in are U+FFFD now. */
  readonly malformed?: boolean;
  /** Bytes of a malformed record in its encoding. Absent: they were not kept. */
  readonly raw?: Uint8Array | undefined;
  /** The line of its file that names its columns; absent where none is known. */
  readonly heading?: string;
}

export type RecordsHead = Omit<Records, "offset" | "records" | "cut" | "malformed" | "raw" | "rawLengths" | "heading">;

interface ReadRecord {
  readonly bytes: Uint8Array;
  /** Place of the bytes in what was read. */
  readonly offset: number;
  readonly cut: boolean;
}

/** A record that was read in an encoding, as it is sent: in UTF-8. `leading`: what its text is sent without. */
export function decodedRecord(
  { bytes: read, offset, cut }: ReadRecord,
  { encoding, leading }: { readonly encoding: Encoding; readonly leading?: RegExp },
): RawRecord & { readonly malformedCharacters: number } {
  const stream = new TextStream(encoding, { isWithin: offset > 0 });
  const text = stream.take(read);
  // The rest of a character that was cut follows no more.
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

/** Packs records into as few entries as their bounds and their heading lines allow, in order. */
export function packRecords(head: RecordsHead, records: readonly RawRecord[]): Emission[] {
  const entries: Emission[] = [];
  let value: Records | undefined;
  let raw: Uint8Array[] = [];
  let bytes = 0;
  const close = (): void => {
    // Those without malformed records, which are nearly all, keep the empty buffer.
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
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
