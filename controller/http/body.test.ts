import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { slicesOfOneStep } from "../../test/helpers/slices.ts";
import { readText } from "./body.ts";

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
  return { seen, text: readText(sourceOf(bytes), { contentType, bound: BOUND, memory, slices }) };
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
