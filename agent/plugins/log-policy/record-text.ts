import { keptBytes, type Piece } from "../../../common/agent/records.ts";
import type { Encoding } from "../../../common/text/encodings.ts";
import { TextStream } from "../../../common/text/text-stream.ts";
import type { RawRecord } from "../../records.ts";

const LEADING_NULS = /^\0+/;

/** A record of a file in that encoding as it is sent: in UTF-8. `offset`: place of `bytes` in the file. */
export function recordOf(
  bytes: Buffer,
  { start, end, cut }: Piece,
  { offset, encoding }: { readonly offset: number; readonly encoding: Encoding | undefined },
): RawRecord {
  const piece = bytes.subarray(start, end);
  const place = { offset: offset + start };
  if (!encoding) return { ...place, bytes: piece, cut, malformed: false };
  const stream = new TextStream(encoding, { isWithin: offset + start > 0 });
  const text = stream.take(piece);
  // The rest of a character that was cut follows no more.
  const whole = Buffer.from((cut ? text : text + stream.end()).replace(LEADING_NULS, ""));
  const sent = keptBytes(whole);
  return {
    ...place,
    bytes: whole.subarray(0, sent),
    cut: cut || sent < whole.length,
    malformed: stream.malformed > 0,
  };
}
