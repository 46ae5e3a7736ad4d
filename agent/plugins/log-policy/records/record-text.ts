import type { Piece } from "../../../../common/agent/records.ts";
import type { Encoding } from "../../../../common/text/encodings.ts";
import { decodedRecord, type RawRecord } from "../../../../common/agent/raw-records.ts";

const LEADING_NULS = /^\0+/;

/** A record of a file as it is sent, in UTF-8. `offset`: position of `bytes` in the file. */
export function recordOf(
  bytes: Buffer,
  { start, end, cut }: Piece,
  { offset, encoding }: { readonly offset: number; readonly encoding: Encoding | undefined },
): RawRecord {
  const read = { bytes: bytes.subarray(start, end), offset: offset + start, cut };
  return encoding ? decodedRecord(read, { encoding, leading: LEADING_NULS }) : read;
}
