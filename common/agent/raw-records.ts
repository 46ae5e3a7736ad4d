import type { Encoding } from "../text/encodings.ts";
import { TextStream } from "../text/text-stream.ts";
import { keptBytes } from "./records.ts";

/** One record as a policy cut it, before the rule. */
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
  const whole = new TextEncoder().encode(leading === undefined ? decoded : decoded.replace(leading, ""));
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
