import { Packr, RESERVE_START_SPACE, Unpackr } from "msgpackr";
import type { AppError } from "../../common/errors.ts";
import { storeDamaged } from "./damage.ts";

/**
 * Every stored value begins with a format byte that defines how to read it: JSON for values that people inspect with
 * other tools (KvStore), msgpack for bulk data. An unknown byte was written by a newer version and is refused.
 */
const FORMAT_JSON = 1;
const FORMAT_MSGPACK = 2;
/** An entity of the embedded engine in its own format (`embedded/entities/form.ts`). */
export const FORMAT_ENTITY = 3;
/** A value of the KvStore that follows its expiry time (`kv/expiry.ts`). */
export const FORMAT_EXPIRING = 4;

const packr = new Packr({ useRecords: false, int64AsType: "number" });
const unpackr = new Unpackr({ useRecords: false, int64AsType: "number" });
const BEHIND_FORMAT = { start: 1 };
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

export function encodeJson(value: unknown): Uint8Array {
  return storedJson(JSON.stringify(value));
}

/** Like `encodeJson`, from a JSON text. For a large value the caller creates that text in slices. */
export function storedJson(text: string): Uint8Array {
  return prefixed(FORMAT_JSON, encoder.encode(text));
}

/** The JSON text in bytes from `encodeJson` or `storedJson`. */
export function jsonOfStored(bytes: Uint8Array): string {
  if (bytes[0] !== FORMAT_JSON) throw unknownFormat(bytes[0]);
  return decoder.decode(bytes.subarray(1));
}

export function encodePacked(value: unknown): Uint8Array {
  // The packer leaves one byte free before the packed value, in its own buffer: nothing is copied.
  const bytes = packr.pack(value, RESERVE_START_SPACE | 1);
  bytes[0] = FORMAT_MSGPACK;
  return bytes;
}

/** The value that was given to `encodeJson` or `encodePacked`. The caller knows its type because it wrote it. */
export function decodeStored<T>(bytes: Uint8Array): T {
  switch (bytes[0]) {
    case FORMAT_JSON:
      return JSON.parse(jsonOfStored(bytes)) as T;
    case FORMAT_MSGPACK:
      return unpackr.unpack(bytes, BEHIND_FORMAT) as T;
    default:
      throw unknownFormat(bytes[0]);
  }
}

function unknownFormat(format: number | undefined): AppError {
  return storeDamaged(`A stored value has format ${String(format)}, which this version does not know.`);
}

function prefixed(format: number, body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(body.length + 1);
  bytes[0] = format;
  bytes.set(body, 1);
  return bytes;
}
