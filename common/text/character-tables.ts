import type { Encoding } from "./encodings.ts";

/** Entry for bytes that are no character. */
export const NONE = 0;

/** Maps the bytes of an encoding to UTF-16 units; `NONE` for bytes that are no character. */
export interface CharacterTable {
  /** Index: a byte from 0x80. Bytes below are ASCII. */
  readonly single: Uint16Array;
  /** 1 for a byte that begins a longer character. */
  readonly leads: Uint8Array;
  /** Index: two bytes, the first from 0x80. Empty for encodings of one byte per character. */
  readonly pairs: Uint16Array;
  /** Index: the second and third byte after 0x8F. Empty except for EUC-JP. */
  readonly triples: Uint16Array;
  /** True if four bytes may be one character: GB18030, and GBK as the Encoding Standard decodes it. */
  readonly hasQuads: boolean;
}

const UPPER = range(0x80, 0xff);
/** Possible second bytes. None is a control character, so a line end is never within a character. */
const SECONDS = range(0x30, 0xff);
export const TRIPLE_LEAD = 0x8f;
const EMPTY = new Uint16Array(0);
const REPLACEMENT = 0xfffd;
const EURO = 0x20ac;

/**
 * windows-1252 from 0x80 to 0x9F; five of these bytes are control characters. Some versions of Node decode Latin-1
 * instead.
 */
const WINDOWS_1252 = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ";

const tables = new Map<string, CharacterTable>();

/** Type of the global class. The types of Node declare only the value `TextDecoder`, not a type of that name. */
type Decoder = InstanceType<typeof TextDecoder>;

/** Makes the table of an encoding once, with the runtime's decoder. There are fewer than 40 encodings. */
export function tableOf(encoding: Encoding): CharacterTable {
  let table = tables.get(encoding.name);
  if (table === undefined) tables.set(encoding.name, (table = madeTable(encoding)));
  return table;
}

/** Decodes a GB18030 character of four bytes to one or two UTF-16 units; `undefined` if there is none. */
export function quadText(bytes: Uint8Array, at: number): string | undefined {
  try {
    return GB18030.decode(bytes.subarray(at, at + 4));
  } catch {
    return undefined;
  }
}

const GB18030 = new TextDecoder("gb18030", { fatal: true, ignoreBOM: true });

function madeTable({ name, kind }: Encoding): CharacterTable {
  const isGb = name === "gbk" || name === "gb18030";
  // The Encoding Standard decodes GBK with the table of GB18030, which includes it.
  const decoder = new TextDecoder(isGb ? "gb18030" : name);
  const bytes = UPPER.map((byte) => [byte]);
  const single = new Uint16Array(256);
  single.set(unitsOf(decoder, bytes), 0x80);
  if (isGb) single[0x80] = EURO;
  // The runtime decodes unused single bytes of these encodings to control characters. Then each half of a character
  // would be read as a character.
  if (name === "big5" || name.startsWith("euc-")) single.fill(NONE);
  if (name === "windows-1252") for (let at = 0; at < 32; at++) single[0x80 + at] = WINDOWS_1252.charCodeAt(at);
  const leads = new Uint8Array(256);
  if (kind === "single-byte") return { single, leads, pairs: EMPTY, triples: EMPTY, hasQuads: false };
  const pairs = pairTable(decoder, []);
  for (const lead of UPPER)
    if (single[lead] === NONE && pairs.subarray(lead * 256, lead * 256 + 256).some((unit) => unit !== NONE))
      leads[lead] = 1;
  if (name === "euc-jp") leads[TRIPLE_LEAD] = 1;
  return {
    single,
    leads,
    pairs,
    triples: name === "euc-jp" ? pairTable(decoder, [TRIPLE_LEAD]) : EMPTY,
    hasQuads: isGb,
  };
}

function pairTable(decoder: Decoder, before: readonly number[]): Uint16Array {
  const table = new Uint16Array(65_536);
  const pairs = UPPER.flatMap((lead) => SECONDS.map((second) => [lead, second] as const));
  const sequences = pairs.map((pair) => [...before, ...pair]);
  const units = unitsOf(decoder, sequences);
  for (const [at, [lead, second]] of pairs.entries()) table[lead * 256 + second] = units[at] ?? NONE;
  return table;
}

/**
 * UTF-16 unit of each sequence; `NONE` if the sequence is not exactly one. A line feed after each ends incomplete ones.
 */
function unitsOf(decoder: Decoder, sequences: readonly (readonly number[])[]): readonly number[] {
  const texts = decoder.decode(Uint8Array.from(sequences.flatMap((bytes) => [...bytes, 0x0a]))).split("\n");
  return sequences.map((_, at) => {
    const text = texts[at] ?? "";
    const unit = text.length === 1 ? text.charCodeAt(0) : NONE;
    return unit === REPLACEMENT ? NONE : unit;
  });
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}
