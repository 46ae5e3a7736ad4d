import { createHash } from "node:crypto";
import { decodeText } from "../../texts.ts";
import type { EntityKey } from "../../objects.ts";
import { asBuffer, concat, readU32, textBytes, u32, u64Descending, writeFloat64, writeU32, writeU64 } from "./keys.ts";

/**
 * Number of bytes of the digest that represents the other end of an edge in a key. Two ids of full length would not fit
 * into one key.
 */
const DIGEST_BYTES = 16;
const CID_BYTES = 4;
/** A slot and a number of eight bytes. */
const NUMBER_PREFIX_BYTES = 9;
const NO_BYTES = new Uint8Array(0);
const ULID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_TIME_DIGITS = 10;
const ULID_TIME_MAX_MS = 2 ** 48 - 1;

/** Key in which the id comes last: `objects`, values of `terms`, and the end of `numbers` and `records`. */
export function entityKeyBytes(key: EntityKey): Uint8Array {
  const bytes = Buffer.allocUnsafe(CID_BYTES + Buffer.byteLength(key.id));
  writeU32(bytes, 0, key.cid);
  bytes.write(key.id, CID_BYTES);
  return bytes;
}

export function parseEntityKey(bytes: Uint8Array): EntityKey {
  return { cid: readU32(bytes, 0), id: decodeText(asBuffer(bytes), CID_BYTES, bytes.length) };
}

/** Prefix of all keys that belong to one entity. */
export function ownerPrefix(key: EntityKey): Uint8Array {
  return lengthPrefixed(key.cid, textBytes(key.id));
}

export function historyKey(key: EntityKey, timeUs: number): Uint8Array {
  return concat(ownerPrefix(key), u64Descending(timeUs));
}

export function edgeTypePrefix(owner: EntityKey, type: string): Uint8Array {
  return concat(ownerPrefix(owner), digest(textBytes(type)));
}

export function edgeKey(owner: EntityKey, type: string, other: EntityKey): Uint8Array {
  return concat(edgeTypePrefix(owner, type), digest(entityKeyBytes(other)));
}

export function numberKey(slot: number, value: number, entity: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(NUMBER_PREFIX_BYTES + entity.length);
  bytes[0] = slot;
  writeFloat64(bytes, 1, value);
  bytes.set(entity, NUMBER_PREFIX_BYTES);
  return bytes;
}

/** The entity in the key of a number. */
export function numberOwner(key: Uint8Array): Uint8Array {
  return key.subarray(NUMBER_PREFIX_BYTES);
}

/** The part of a number's key before the entity. */
export function numberPrefix(slot: number, value: number): Uint8Array {
  return numberKey(slot, value, NO_BYTES);
}

/** Prefix of the records of a class with a term, in the order of their ids. */
export function recordTermPrefix(cid: number, term: string): Uint8Array {
  // Uses the shared pool of small buffers: there is one such key per record and indexed value.
  return lengthPrefixed(cid, Buffer.from(term));
}

/** The term in a key below `recordTermPrefix`. */
export function recordTermText(key: Uint8Array): { readonly length: number; readonly term: Uint8Array } {
  const length = (key[CID_BYTES]! << 8) | key[CID_BYTES + 1]!;
  const from = CID_BYTES + 2;
  return { length, term: key.subarray(from, from + length) };
}

/** A boundary that sorts after every id before `timeMs` and before every id from then on. */
export function ulidBoundary(timeMs: number): Uint8Array {
  let rest = Math.min(Math.max(Math.ceil(timeMs), 0), ULID_TIME_MAX_MS);
  let digits = "";
  for (let i = 0; i < ULID_TIME_DIGITS; i++) {
    digits = ULID_DIGITS[rest % 32]! + digits;
    rest = Math.floor(rest / 32);
  }
  // After the latest time that an id can contain: sorts after all ids.
  return textBytes(timeMs > ULID_TIME_MAX_MS ? "~" : digits);
}

/** Class and id in a key below `recordTermPrefix`, in the form of the record's key. */
export function recordTermParts(key: Uint8Array): { readonly cid: Uint8Array; readonly id: Uint8Array } {
  const from = CID_BYTES + 2 + recordTermText(key).length;
  return { cid: key.subarray(0, CID_BYTES), id: key.subarray(from) };
}

export const EXPIRY_KINDS = { entity: 1, edge: 2, version: 3, record: 4 } as const;

export function expiryKey(atMs: number, kind: number, key: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(9 + key.length);
  writeU64(bytes, 0, Math.ceil(atMs));
  bytes[8] = kind;
  bytes.set(key, 9);
  return bytes;
}

function lengthPrefixed(cid: number, text: Uint8Array): Uint8Array {
  return concat(u32(cid), Uint8Array.of(text.length >> 8, text.length & 0xff), text);
}

function digest(bytes: Uint8Array): Uint8Array {
  return createHash("sha256").update(bytes).digest().subarray(0, DIGEST_BYTES);
}
