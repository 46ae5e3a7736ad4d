import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { slicesOfOneStep } from "../../../test/helpers/time/slices.ts";
import { readBody } from "./body.ts";
import { parseUrlEncoded } from "./form-decoder.ts";

const CHUNKS = 50;
const BOUND = { name: "HTTP_BODY_MAX_BYTES", max: 1_000_000 };
const memory = { hold: () => undefined } as never;

/** As a socket gives it: cut without regard to characters. */
function sourceOf(bytes: Buffer): Readable {
  const size = Math.ceil(bytes.length / CHUNKS);
  return Readable.from(Array.from({ length: CHUNKS }, (_, at) => bytes.subarray(at * size, (at + 1) * size)));
}

const read = (bytes: Buffer, contentType = "text/plain") => {
  const { seen, slices } = slicesOfOneStep();
  return {
    seen,
    text: readBody(sourceOf(bytes), { contentType, isForm: false, bound: BOUND, memory, slices }).then(
      ({ text }) => text,
    ),
  };
};

test.each([
  ["utf-8", "text/plain", "x\u{1f600}ä主".repeat(503), (text: string) => Buffer.from(text)],
  ["UTF-16", "text/plain; charset=utf-16le", "xä主".repeat(503), (text: string) => Buffer.from(text, "utf16le")],
] as const)(
  "a long body in %s is decoded with a pause before each of its pieces",
  async (_name, type, text, encode) => {
    const { seen, text: decoded } = read(encode(text), type);
    expect(await decoded).toBe(text);
    expect(seen.pauses).toBe(CHUNKS);
  },
);

test("a long body that ends within a character is no text", async () => {
  const whole = Buffer.from("主".repeat(500));
  await expect(read(whole.subarray(0, -1)).text).rejects.toMatchObject({ code: "invalid" });
});

test("the mark at the beginning of a long body is no part of it", async () => {
  expect(await read(Buffer.from(`\ufeff${"a".repeat(500)}`)).text).toBe("a".repeat(500));
});

test.each([
  ["a text", Buffer.from("x\u{1f600}主"), "x\u{1f600}主"],
  ["a text behind the mark of UTF-8", Buffer.from("\ufeffa\ufeff"), "a\ufeff"],
  ["nothing", Buffer.alloc(0), ""],
])("a body in one piece is read as one in many: %s", async (_name, bytes, text) => {
  const options = { contentType: "text/plain", isForm: false, bound: BOUND, memory, slices: slicesOfOneStep().slices };
  const pieces = bytes.length === 0 ? [] : [bytes];
  expect(await readBody(Readable.from(pieces), options)).toEqual({ text, form: undefined });
  await expect(readBody(Readable.from([Buffer.of(0x61, 0xff)]), options)).rejects.toMatchObject({ code: "invalid" });
});

const form = async (bytes: Buffer, contentType = "application/x-www-form-urlencoded") => {
  const { slices } = slicesOfOneStep();
  const read = await readBody(sourceOf(bytes), { contentType, isForm: true, bound: BOUND, memory, slices });
  return Object.fromEntries(parseUrlEncoded(read.form?.bytes ?? read.text, read.form?.encoding));
};

test("a form is read in the charset of its type, else in that of its field _charset_, else as UTF-8", async () => {
  const type = "application/x-www-form-urlencoded; charset=GBK";
  expect(await form(Buffer.from("a=%B1%E0&b=\xc2\xeb", "latin1"), type)).toEqual({ a: ["编"], b: ["码"] });
  expect(await form(Buffer.from("a=%B1%E0&_charset_=gb2312"))).toEqual({ a: ["编"], _charset_: ["gb2312"] });
  expect(await form(Buffer.from("a=%B1%E0&_charset_=utf-8"), type)).toMatchObject({ a: ["编"] });
  const wide = "application/x-www-form-urlencoded; charset=utf-16le";
  expect(await form(Buffer.from("a=%E7%BC%96&b=码", "utf16le"), wide)).toEqual({ a: ["编"], b: ["码"] });
  for (const absent of ["", "undefined", "null"])
    expect(await form(Buffer.from(`a=%E7%BC%96&_charset_=${absent}`))).toEqual({ a: ["编"], _charset_: [absent] });
  await expect(form(Buffer.from("a=%B1%E0"))).rejects.toThrow("no utf-8 text at byte 1");
});

test("a form that declares Latin-1 is read as UTF-8 where its escaped bytes are, as Java clients send it", async () => {
  for (const name of ["ISO-8859-1", "US-ASCII", "windows-1252"]) {
    const type = `application/x-www-form-urlencoded; charset=${name}`;
    expect(await form(Buffer.from("a=%E7%BC%96+%41&b=100%"), type)).toEqual({ a: ["编 A"], b: ["100%"] });
    expect(await form(Buffer.from("a=%E9t%e9&b=%E7%BC%96"), type)).toEqual({ a: ["été"], b: ["ç¼–"] });
    expect(await form(Buffer.from("a=%E7A%BC"), type)).toEqual({ a: ["çA¼"] });
    expect(await form(Buffer.from("a=%E7\xbc\x96", "latin1"), type)).toEqual({ a: ["ç¼–"] });
  }
});

test("a charset that is not read here is refused before the body is", async () => {
  for (const type of ["text/plain; charset=klingon", "application/json;charset='iso-2022-jp'", "a/b; charset=@8"]) {
    const source = sourceOf(Buffer.from("a"));
    const { slices } = slicesOfOneStep();
    const options = { contentType: type, isForm: false, bound: BOUND, memory, slices };
    await expect(readBody(source, options)).rejects.toThrow("is no encoding that is read here");
    expect(source.readableDidRead).toBe(false);
  }
  await expect(form(Buffer.from("_charset_=klingon"))).rejects.toThrow('_charset_="klingon" is no encoding');
});

test.each([
  ["gbk", "b1e0", "编"],
  ["big5", "bd73", "編"],
  ["shift_jis", "95b6", "文"],
  ["windows-1252", "80", "€"],
])("a body in %s is read, wherever it is cut", async (charset, hex, text) => {
  const bytes = Buffer.from(hex.repeat(301), "hex");
  expect(await read(bytes, `text/plain; charset="${charset}"`).text).toBe(text.repeat(301));
});
