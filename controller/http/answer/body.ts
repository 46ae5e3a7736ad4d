import { HTTP_PIECE_BYTES } from "../../../common/limits.ts";
import { encodeJson, isLongJson, textPieces } from "../../turns/decoding.ts";
import type { ThreadSlices } from "../../turns/slices.ts";
import type { MessageAnswer } from "../interface/endpoint.ts";

type Slicing = Pick<ThreadSlices, "isOverNow" | "pause">;

/** Has the slices for a long value; a short one needs none. */
interface SliceHolder {
  readonly slices: Slicing;
}

/** The envelope of a message. A long message is encoded in slices. */
export function messageText(
  { message, meta, warnings, failed }: Pick<MessageAnswer<unknown>, "message" | "meta" | "warnings" | "failed">,
  holder: SliceHolder,
): string | Promise<string> {
  if (!isLongJson(message)) return JSON.stringify({ status: "ok", message, meta, warnings, failed });
  return encodeJson(message, holder.slices).then(
    (text) =>
      `{"status":"ok","message":${text}${member("meta", meta)}${member("warnings", warnings)}${member("failed", failed)}}`,
  );
}

/** The JSON text of a value without an envelope. */
export function jsonText(value: unknown, holder: SliceHolder): string | Promise<string> {
  return isLongJson(value) ? encodeJson(value, holder.slices) : JSON.stringify(value);
}

/** A further member of a JSON object, with the comma before it; empty for an undefined value. */
export function member(name: string, value: unknown): string {
  return value === undefined ? "" : `,${JSON.stringify(name)}:${JSON.stringify(value)}`;
}

/** The bytes of a body in pieces of at most `HTTP_PIECE_BYTES`. A long text is encoded in slices. */
export async function bodyPieces(body: string | Uint8Array, slices: Slicing): Promise<readonly Buffer[]> {
  if (typeof body !== "string") return cut(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  if (!isLongJson(body)) return cut(Buffer.from(body));
  const pieces: Buffer[] = [];
  for (const piece of textPieces(body)) {
    pieces.push(...cut(Buffer.from(piece)));
    if (slices.isOverNow()) await slices.pause();
  }
  return pieces;
}

function cut(bytes: Buffer): readonly Buffer[] {
  if (bytes.length <= HTTP_PIECE_BYTES) return [bytes];
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += HTTP_PIECE_BYTES) pieces.push(bytes.subarray(at, at + HTTP_PIECE_BYTES));
  return pieces;
}
