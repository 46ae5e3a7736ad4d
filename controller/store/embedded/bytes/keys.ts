/**
 * Keys of the named databases: bytes that sort like the values they encode. If a text is not the last part of a key,
 * its length comes before it. So the key of one text never begins with the key of another text.
 */
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function textBytes(text: string): Uint8Array {
  return encoder.encode(text);
}

export function bytesText(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** The same bytes, not a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The first key after all that begin with `prefix`; `undefined` if there is none. */
export function prefixEnd(prefix: Uint8Array): Uint8Array | undefined {
  for (let length = prefix.length; length > 0; length--) {
    const last = prefix[length - 1]!;
    if (last === 0xff) continue;
    const end = prefix.slice(0, length);
    end[length - 1] = last + 1;
    return end;
  }
  return undefined;
}

/** The first key after `key`. */
export function following(key: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(key.length + 1);
  bytes.set(key);
  return bytes;
}

export function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  writeU32(bytes, 0, value);
  return bytes;
}

/** Encodes a whole number from 0 to 2^53. */
export function u64(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  writeU64(bytes, 0, value);
  return bytes;
}

/** Sorts greater numbers first. */
export function u64Descending(value: number): Uint8Array {
  const bytes = u64(value);
  for (let i = 0; i < 8; i++) bytes[i] = 0xff - bytes[i]!;
  return bytes;
}

export function readU32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

export function readU64(bytes: Uint8Array, at: number): number {
  return readU32(bytes, at) * 0x1_0000_0000 + readU32(bytes, at + 4);
}

export function readU64Descending(bytes: Uint8Array, at: number): number {
  const upper = ~readU32(bytes, at) >>> 0;
  const lower = ~readU32(bytes, at + 4) >>> 0;
  return upper * 0x1_0000_0000 + lower;
}

/** Writes any finite number in eight bytes; negative ones sort before positive ones. */
export function writeFloat64(bytes: Buffer, at: number, value: number): void {
  // Zero and minus zero are equal, so they must have one key.
  bytes.writeDoubleBE(value === 0 ? 0 : value, at);
  if (bytes[at]! & 0x80) for (let i = at; i < at + 8; i++) bytes[i] = 0xff - bytes[i]!;
  else bytes[at] = bytes[at]! | 0x80;
}

export function writeU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

export function writeU64(bytes: Uint8Array, at: number, value: number): void {
  writeU32(bytes, at, Math.floor(value / 0x1_0000_0000));
  writeU32(bytes, at + 4, value >>> 0);
}

/** Negative, zero or positive if `a` is before, equal to or after `b` in byte order. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}
