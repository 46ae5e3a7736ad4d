import { createHash } from "node:crypto";
import { AppError } from "../../../../common/errors.ts";
import { CELL_MAX_BYTES, ELEMENT_NAME_MAX_BYTES } from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import { decodeStored, encodePacked } from "../../../store/format.ts";
import { decodeText } from "../../../store/texts.ts";
import type { ColumnType } from "../types.ts";

/**
 * The first byte of a cell is its format. The values here differ from those of `store/format.ts`, and are never reused.
 */
const TEXT = 16;
const NUMBER = 17;
const FALSE = 18;
const TRUE = 19;
const BYTES = 20;
const ASSIGNED = 21;
const CLEARED = 22;

/** Base cell of a set or map that was assigned as a whole. Elements with earlier times do not count. */
export const ASSIGNED_CELL: Uint8Array = Uint8Array.of(ASSIGNED);
/** Base cell of a set or map that was cleared. */
export const CLEARED_CELL: Uint8Array = Uint8Array.of(CLEARED);

/** A canonical value as bytes. `AppError("too_large")` when the bytes do not fit into a cell. */
export function encodeCell(type: ColumnType, value: Value, name: string): Uint8Array {
  const bytes = encode(type, value);
  if (bytes.length <= CELL_MAX_BYTES) return bytes;
  throw new AppError("too_large", `[Valid] column ${name}: a value has at most ${CELL_MAX_BYTES} bytes.`, {
    details: { column: name },
  });
}

/** The canonical value between `start` and `end`. */
export function decodeCell(bytes: Buffer, start: number, end: number): Value {
  switch (bytes[start]) {
    case TEXT:
      return decodeText(bytes, start + 1, end);
    case NUMBER:
      return bytes.readDoubleBE(start + 1);
    case FALSE:
      return false;
    case TRUE:
      return true;
    case BYTES:
      return bytes.toString("base64", start + 1, end);
    default:
      return decodeStored<Value>(bytes.subarray(start, end));
  }
}

export function isClearedBase(bytes: Uint8Array, start = 0): boolean {
  return bytes[start] === CLEARED;
}

/**
 * Key of the cell of one element or map entry. A long name is replaced by its beginning and a hash; the value of the
 * cell has the whole name.
 */
export function elementCellKey(columnKey: string, text: string): string {
  // A UTF-16 unit has at most three bytes in UTF-8, so short texts need no counting.
  if (text.length * 3 <= ELEMENT_NAME_MAX_BYTES || Buffer.byteLength(text) <= ELEMENT_NAME_MAX_BYTES)
    return `${columnKey}/${text}`;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 32);
  return `${columnKey}/${Array.from(text.slice(0, 32)).slice(0, 31).join("")}#${digest}`;
}

function encode(type: ColumnType, value: Value): Uint8Array {
  switch (typeof value) {
    case "string":
      return type === "blob" ? prefixed(BYTES, Buffer.from(value, "base64")) : encodeText(value);
    case "number":
      return encodeNumber(value);
    case "boolean":
      return Uint8Array.of(value ? TRUE : FALSE);
    default:
      return encodePacked(value);
  }
}

function encodeText(text: string): Uint8Array {
  const bytes = Buffer.allocUnsafe(1 + Buffer.byteLength(text));
  bytes[0] = TEXT;
  bytes.write(text, 1);
  return bytes;
}

function encodeNumber(value: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(9);
  bytes[0] = NUMBER;
  bytes.writeDoubleBE(value, 1);
  return bytes;
}

function prefixed(format: number, body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(body.length + 1);
  bytes[0] = format;
  bytes.set(body, 1);
  return bytes;
}
