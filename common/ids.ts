/**
 * Forms of identifiers. An object id is `<label>:<key>`: the last component of its class path, the first colon, and any
 * text. Randomness, hashes and times are parameters here.
 */

export interface ObjectIdParts {
  readonly label: string;
  readonly key: string;
}

/** Splits a whole id; `undefined` if the text has no label or no key. */
export function parseObjectId(id: string): ObjectIdParts | undefined {
  const colon = id.indexOf(":");
  if (colon <= 0 || colon === id.length - 1) return undefined;
  return { label: id.slice(0, colon), key: id.slice(colon + 1) };
}

export function formatObjectId(label: string, key: string): string {
  return `${label}:${key}`;
}

/**
 * Joins the values of several key columns by `:`; `:` and `\` inside a value are escaped by `\`. Different values give
 * different texts. A single value stays unchanged.
 */
export function joinKeys(values: readonly string[]): string {
  if (values.length === 1) return values[0] ?? "";
  return values.map((value) => value.replace(/[\\:]/g, "\\$&")).join(":");
}

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Two characters for each ten bits. */
const TEN_BITS = Array.from({ length: 1_024 }, (_, bits) => CROCKFORD.charAt(bits >> 5) + CROCKFORD.charAt(bits & 31));
const TIME_CHARACTERS = 10;
/** Greatest time a ULID can carry: 48 bits of milliseconds. */
export const ULID_TIME_MAX_MS = 2 ** 48 - 1;
const ULID_CHARACTERS = 26;
const NO_DIGIT = 255;
/** Value of each digit, by its character code. */
const DIGITS = new Uint8Array(128).fill(NO_DIGIT);
for (let digit = 0; digit < CROCKFORD.length; digit++) DIGITS[CROCKFORD.charCodeAt(digit)] = digit;

/**
 * Makes a ULID from a time and 80 bits; the same time and bytes always give the same id. `entropy` is random, or the
 * beginning of a hash of the record's origin. Only its first ten bytes are used.
 */
export function ulidOf(timeMs: number, entropy: Uint8Array): string {
  if (entropy.length < 10) throw new RangeError("A ULID needs ten bytes.");
  return timeText(timeMs) + fiveBytesText(entropy, 0) + fiveBytesText(entropy, 5);
}

/**
 * Adds a number to ten bytes, so that ids of one time made of them ascend with the number. After the greatest value
 * comes zero.
 */
export function entropyPlus(entropy: Uint8Array, count: number): Uint8Array {
  // `slice` of a Buffer would be a view of the caller's bytes.
  const sum = new Uint8Array(entropy.subarray(0, ENTROPY_BYTES));
  let carry = count;
  for (let at = ENTROPY_BYTES - 1; at >= 0 && carry > 0; at--) {
    carry += sum[at] ?? 0;
    sum[at] = carry % 256;
    carry = Math.floor(carry / 256);
  }
  return sum;
}

const ENTROPY_BYTES = 10;

/** Number of characters of a ULID's entropy that hold the ordinal of a series. */
const ORDINAL_CHARACTERS = 5;
export const ULID_ORDINALS_MAX = 32 ** ORDINAL_CHARACTERS;

/**
 * Makes the ULIDs of one source and time, in the order of their ordinals: 55 bits of `entropy`, then the ordinal, which
 * is below `ULID_ORDINALS_MAX`.
 */
export function ulidSeries(timeMs: number, entropy: Uint8Array): (ordinal: number) => string {
  const stem = ulidOf(timeMs, entropy).slice(0, -ORDINAL_CHARACTERS);
  return (ordinal) => {
    if (!(ordinal >= 0 && ordinal < ULID_ORDINALS_MAX))
      throw new RangeError(`A series of ids has no ordinal ${ordinal}.`);
    return stem + CROCKFORD.charAt(ordinal >> 20) + twentyBitsText(ordinal & 0xfffff);
  };
}

/** The time in a ULID; `undefined` if the text is no ULID. */
export function ulidTimeMs(id: string): number | undefined {
  if (id.length !== ULID_CHARACTERS) return undefined;
  let timeMs = 0;
  for (let at = 0; at < ULID_CHARACTERS; at++) {
    const digit = DIGITS[id.charCodeAt(at)] ?? NO_DIGIT;
    if (digit === NO_DIGIT) return undefined;
    if (at < TIME_CHARACTERS) timeMs = timeMs * 32 + digit;
  }
  return timeMs > ULID_TIME_MAX_MS ? undefined : timeMs;
}

/** A UUID of version 7 (RFC 9562): ordered by time. `entropy` has ten bytes. */
export function uuidOf(timeMs: number, entropy: Uint8Array): string {
  if (entropy.length < 10) throw new RangeError("A UUID needs ten bytes.");
  const time = Math.trunc(timeMs).toString(16).padStart(12, "0");
  const bytes = Array.from(entropy.subarray(0, 10));
  bytes[0] = ((bytes[0] ?? 0) & 0x0f) | 0x70;
  bytes[2] = ((bytes[2] ?? 0) & 0x3f) | 0x80;
  const rest = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${time.slice(0, 8)}-${time.slice(8)}-${rest.slice(0, 4)}-${rest.slice(4, 8)}-${rest.slice(8)}`;
}

/**
 * Sort text of a key. Keys made by the platform (ULIDs and UUIDs of version 7, also mixed) sort in the order in which
 * they were made. Other keys stay unchanged.
 */
export function arrivalText(key: string): string {
  if (ulidTimeMs(key) === undefined) return UUID_7.test(key) ? key.replaceAll("-", "") : key;
  let bits = 0n;
  for (const character of key) bits = bits * 32n + BigInt(CROCKFORD.indexOf(character.toUpperCase()));
  // In a UUID, version and variant replace six bits of the ten bytes.
  const asUuid = (bits & ~UUID_7_REPLACED) | UUID_7_MARKS;
  return asUuid.toString(16).padStart(32, "0");
}

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const UUID_7_REPLACED = (0xfn << 76n) | (0x3n << 62n);
const UUID_7_MARKS = (0x7n << 76n) | (0x2n << 62n);

function timeText(timeMs: number): string {
  let rest = Math.min(Math.max(Math.trunc(timeMs), 0), ULID_TIME_MAX_MS);
  let text = "";
  for (let at = 0; at < TIME_CHARACTERS; at++) {
    text = CROCKFORD.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function fiveBytesText(bytes: Uint8Array, offset: number): string {
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = bytes.subarray(offset, offset + 5);
  const high = (a << 12) | (b << 4) | (c >> 4);
  const low = ((c & 15) << 16) | (d << 8) | e;
  return twentyBitsText(high) + twentyBitsText(low);
}

function twentyBitsText(bits: number): string {
  return TEN_BITS[bits >> 10]! + TEN_BITS[bits & 1_023]!;
}
