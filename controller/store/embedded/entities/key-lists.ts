import { KEY_LISTS_MAX, KEY_LIST_KEPT_MAX_BYTES } from "../../../../common/limits.ts";
import { ByteReader } from "../bytes/reader.ts";

interface KeyList {
  readonly bytes: Uint8Array;
  readonly keys: readonly string[];
}

/** FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/**
 * Lists of cell keys, cached by their stored bytes. Entities of a class mostly have the same keys, so most lists are
 * made once and shared.
 */
export class KeyLists {
  readonly #lists = new Map<number, KeyList>();
  #last: KeyList = { bytes: new Uint8Array(0), keys: [] };

  at(bytes: Buffer, start: number, end: number): readonly string[] {
    if (end - start > KEY_LIST_KEPT_MAX_BYTES) return readKeys(bytes, start, end);
    if (!lies(this.#last.bytes, bytes, { start, end })) this.#last = this.#kept(bytes, start, end);
    return this.#last.keys;
  }

  #kept(bytes: Buffer, start: number, end: number): KeyList {
    const hash = hashOf(bytes, start, end);
    const known = this.#lists.get(hash);
    if (known !== undefined && lies(known.bytes, bytes, { start, end })) return known;
    if (this.#lists.size >= KEY_LISTS_MAX) this.#lists.clear();
    const list = { bytes: new Uint8Array(bytes.subarray(start, end)), keys: readKeys(bytes, start, end) };
    this.#lists.set(hash, list);
    return list;
  }
}

function readKeys(bytes: Buffer, start: number, end: number): readonly string[] {
  const reader = new ByteReader(bytes, start);
  const keys: string[] = [];
  while (reader.at < end) keys.push(reader.text());
  return keys;
}

function lies(
  list: Uint8Array,
  bytes: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
): boolean {
  if (list.length !== end - start) return false;
  for (let at = 0; at < list.length; at += 1) if (list[at] !== bytes[start + at]) return false;
  return true;
}

function hashOf(bytes: Buffer, start: number, end: number): number {
  let hash = FNV_OFFSET;
  for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ bytes[at]!, FNV_PRIME);
  return hash;
}
