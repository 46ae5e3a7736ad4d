import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { TIMES } from "../../test/helpers/time/times.ts";
import { encodingNamed, markedEncoding, type Encoding } from "./encodings.ts";
import { decodeText, refusing, requireMarkOf, TextStream, textOf } from "./text-stream.ts";

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"));
const FACE = "\u{1F600}";

/** Bytes as `iconv` writes them. */
const SAMPLES: readonly (readonly [encoding: string, bytes: string, text: string])[] = [
  ["utf-8", "efbbbf 41 c3a9 e7bc96 f09f9880", `Aé编${FACE}`],
  ["utf-16le", "fffe 4100 e900 167f 3dd800de", `Aé编${FACE}`],
  ["utf-16be", "feff 0041 00e9 7f16 d83dde00", `Aé编${FACE}`],
  ["gbk", "41 b1e0 c2eb 8140", "A编码丂"],
  ["gb18030", "41 b1e0 c2eb 81308130 9439fc36", `A编码\x80${FACE}`],
  ["big5", "41 bd73 bd58", "A編碼"],
  ["shift_jis", "41 95b6 8e9a b1 835c 5c", "A文字ｱソ\\"],
  ["euc-jp", "41 cab8 8eb1 8fb0a1", "A文ｱ丂"],
  ["euc-kr", "41 c7d1 b1db", "A한글"],
  ["windows-1250", "9a e8", "šč"],
  ["windows-1251", "cae8f0", "Кир"],
  ["windows-1252", "80 e9 df", "€éß"],
  ["latin1", "80 e9 df", "€éß"],
  ["windows-1253", "e1e2", "αβ"],
  ["windows-1254", "fe", "ş"],
  ["windows-1255", "f9", "ש"],
  ["windows-1256", "c8", "ب"],
  ["windows-1257", "e0", "ą"],
  ["windows-1258", "d2", "\u0309"],
  ["koi8-r", "ebc9d2", "Кир"],
  ["iso-8859-15", "a4", "€"],
];
const NAMES = [...new Set(SAMPLES.map(([name]) => encodingNamed(name).name))];

test.each(SAMPLES)("%s is read, wherever its bytes are cut", (name, bytes, text) => {
  const encoding = encodingNamed(name);
  expect(decodeText(hex(bytes), encoding)).toEqual({ text, malformed: 0, places: [] });
  for (let at = 0; at <= hex(bytes).length; at++)
    expect(inPieces(hex(bytes), encoding, [at]).text, String(at)).toBe(text);
  expect(textOf(hex(bytes), refusing("The file"), encoding)).toBe(text);
});

test("names are read in any case, by their labels and as code pages", () => {
  for (const [given, name] of [
    ["UTF-8", "utf-8"],
    ["utf8", "utf-8"],
    ["UTF16LE", "utf-16le"],
    ["GB2312", "gbk"],
    ["cp936", "gbk"],
    ["cp950", "big5"],
    ["SJIS", "shift_jis"],
    ["Windows-31J", "shift_jis"],
    ["ISO-8859-1", "windows-1252"],
    [" cp1251 ", "windows-1251"],
  ] as const)
    expect(encodingNamed(given).name).toBe(name);
});

test("a name that is no encoding is refused with examples, by the parameter that gave it", () => {
  for (const name of ["utf-9", "", "constructor", "iso-2022-jp", "replacement", "x-user-defined", "x".repeat(1_000)]) {
    const refused = `charset=${JSON.stringify(name.slice(0, 60))} is no encoding that is read here: name one such as utf-8`;
    expect(() => encodingNamed(name, "charset")).toThrow(refused);
  }
});

test("malformed characters are counted with their places, and a U+FFFD that the bytes say is none of them", () => {
  for (const [name, bytes, text, places] of [
    ["utf-8", "41 ff 42 c3", "A\ufffdB\ufffd", [1, 3]],
    ["utf-8", "efbfbd", "\ufffd", []],
    ["utf-8", "eda080", "\ufffd\ufffd\ufffd", [0, 1, 2]],
    ["utf-8", "f09f98 41", "\ufffdA", [0]],
    ["utf-16le", "00d8 4100 00dc fdff 41", "\ufffdA\ufffd\ufffd\ufffd", [0, 4, 8]],
    ["utf-16be", "d800", "\ufffd", [0]],
    ["gbk", "b1 0a 41 ff b1", "\ufffd\nA\ufffd\ufffd", [0, 3, 4]],
    ["gb18030", "8431a437", "\ufffd", []],
    ["gb18030", "81308122 81 31", '\ufffd0\ufffd"\ufffd', [0, 2, 4]],
    ["shift_jis", "81 22 a0 b1", '\ufffd"\ufffdｱ', [0, 2]],
    ["euc-kr", "8141 a2", "\ufffdA\ufffd", [0, 2]],
    ["euc-jp", "8fb0 22", '\ufffd"', [0]],
    ["windows-1253", "d2 41", "\ufffdA", [0]],
  ] as const)
    expect(decodeText(hex(bytes), encodingNamed(name)), `${name} ${bytes}`).toEqual({
      text,
      malformed: places.length,
      places,
    });
  const many = decodeText(new Uint8Array(100).fill(0xff));
  expect([many.malformed, many.places]).toEqual([100, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]);
});

test("refused bytes are told by their place in the whole stream, and by the name that the text was read in", () => {
  const stream = new TextStream(encodingNamed("gbk"), { refuse: refusing("The file") });
  expect(stream.take(hex("41 b1")) + stream.take(hex("e0 42"))).toBe("A编B");
  expect(() => stream.take(hex("43 ff"))).toThrow("The file is no gbk text at byte 6: name its encoding by encoding=");
  expect(() => textOf(hex("41 c3"), refusing("The body", "say its charset"))).toThrow(
    "The body is no utf-8 text at byte 2: say its charset.",
  );
});

test("only the mark of the encoding at the beginning of a text is left out", () => {
  const mark = hex("efbbbf 41 efbbbf");
  expect(decodeText(mark).text).toBe("A\ufeff");
  expect(decodeText(mark, undefined, { isWithin: true }).text).toBe("\ufeffA\ufeff");
  expect(decodeText(hex("84319533 41"), encodingNamed("gb18030")).text).toBe("\ufeffA");
  expect([
    markedEncoding(mark),
    markedEncoding(hex("fffe")),
    markedEncoding(hex("feff")),
    markedEncoding(hex("41")),
  ]).toEqual(["utf-8", "utf-16le", "utf-16be", undefined]);
  expect(() => requireMarkOf(hex("fffe4100"), encodingNamed("utf-8"), "The file")).toThrow(
    "The file begins with the mark of utf-16le, and is read as utf-8: name it by encoding=utf-16le.",
  );
});

test("lines are found by the bytes of a line feed, at whole code units", () => {
  for (const name of NAMES) {
    const { newline, unitBytes } = encodingNamed(name);
    expect(decodeText(newline, encodingNamed(name)).text).toBe("\n");
    expect(newline).toHaveLength(unitBytes);
  }
});

test("no sender's buffer is kept", () => {
  const stream = new TextStream();
  const buffer = Buffer.from([0x41, 0xc3]);
  expect(stream.take(buffer)).toBe("A");
  buffer.fill(0);
  expect(stream.take(Buffer.from([0xa9]))).toBe("é");
});

test.each(NAMES)("%s: random bytes are read as the runtime reads them, however they come in pieces", (name) => {
  const random = seededRandom(7);
  const encoding = encodingNamed(name);
  for (let round = 0; round < 700 * TIMES; round++) {
    const bytes = randomBytes(random, name);
    const whole = decodeText(bytes, encoding);
    const cuts = Array.from({ length: 3 }, () => Math.floor(random.next() * (bytes.length + 1)));
    expect(inPieces(bytes, encoding, cuts), told(bytes)).toEqual(whole);
    const read = asText(name, bytes, true);
    expect(whole.malformed === 0, told(bytes)).toBe(read !== undefined);
    // Runtimes differ in how many bytes of a table's encoding one malformed character takes.
    if (read !== undefined || !/^(gb|big5|shift|euc)/.test(name))
      expect(whole.text, told(bytes)).toBe(read ?? asText(name, bytes, false));
  }
});

/** The runtime reads whole texts of windows-1252 as Latin-1, and drops malformed bytes of GBK. Its GB18030 does not. */
function asText(name: string, bytes: Uint8Array, fatal: boolean): string | undefined {
  try {
    return new TextDecoder(name === "gbk" ? "gb18030" : name, { fatal }).decode(bytes, {
      stream: name === "windows-1252",
    });
  } catch {
    return undefined;
  }
}

function told(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** Some whole characters among bytes of any kind; the more of them, the likelier is a text without faults. */
function randomBytes(random: { next(): number }, name: string): Uint8Array {
  const isPlain = random.next() < 0.5;
  const samples = SAMPLES.filter(([of]) => of === name).map(([, bytes]) => hex(bytes));
  const parts = Array.from({ length: Math.floor(random.next() * 8) }, () => {
    const sample = samples[Math.floor(random.next() * samples.length)];
    if (sample !== undefined && (isPlain || random.next() < 0.5)) return sample;
    return Uint8Array.from({ length: 1 + Math.floor(random.next() * 4) }, () => Math.floor(random.next() * 256));
  });
  return Uint8Array.from(parts.flatMap((part) => [...part]).filter((byte) => !isReadOtherwise(name, byte)));
}

/** The runtime exchanges three control characters of Shift_JIS, and reads bytes that begin no character as controls. */
function isReadOtherwise(name: string, byte: number): boolean {
  if (name === "shift_jis") return [0x1a, 0x1c, 0x7f].includes(byte);
  if (name === "euc-jp" && (byte === 0x8e || byte === 0x8f)) return false;
  return /^(euc|big5)/.test(name) && ((byte >= 0x80 && byte <= 0xa0) || byte === 0xff);
}

function inPieces(bytes: Uint8Array, encoding: Encoding, cuts: readonly number[]): ReturnType<typeof decodeText> {
  const stream = new TextStream(encoding);
  const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
  let text = "";
  for (const [index, from] of places.entries()) text += stream.take(bytes.subarray(from, places[index + 1] ?? from));
  return { text: text + stream.end(), malformed: stream.malformed, places: stream.places };
}
