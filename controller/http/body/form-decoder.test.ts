import { expect, test, vi } from "vitest";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { addField, type Fields } from "./fields.ts";
import { encodingNamed } from "../../../common/text/encodings.ts";
import { FormDecoder, parseUrlEncoded } from "./form-decoder.ts";

/** By the definition of URL-encoded forms, byte by byte. */
function reference(text: string): Fields {
  const fields = new Map<string, unknown[]>();
  for (const field of text.split("&").filter((part) => part !== "")) {
    const at = field.includes("=") ? field.indexOf("=") : field.length;
    addField(fields, unescaped(field.slice(0, at)), unescaped(field.slice(at + 1)));
  }
  return fields;
}

function unescaped(text: string): string {
  const bytes: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const plain = /^[a-z]+/.exec(text.slice(at, at + 70_000))?.[0] ?? "";
    for (const sign of Buffer.from(plain)) bytes.push(sign);
    at += plain.length;
    if (at >= text.length) break;
    const code = /^%[0-9a-f]{2}/i.exec(text.slice(at, at + 3))?.[0].slice(1);
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    if (code === undefined) bytes.push(...Buffer.from(character === "+" ? " " : character));
    else bytes.push(Number.parseInt(code, 16));
    at += code === undefined ? character.length - 1 : 2;
  }
  return new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(Uint8Array.from(bytes));
}

/** `undefined` where a field is no UTF-8. */
function referenceOf(text: string): unknown {
  try {
    return [...reference(text)];
  } catch {
    return undefined;
  }
}

function decode(text: string): { readonly fields: unknown; readonly steps: number } {
  const decoder = new FormDecoder(text);
  let steps = 1;
  while (!decoder.step()) steps += 1;
  return { fields: [...decoder.fields], steps };
}

test("the fields are those that the definition of such forms says, for any text", () => {
  const random = seededRandom(3);
  const PARTS = [
    "a",
    "=",
    "&",
    "+",
    "%41",
    "%",
    "%4",
    "%zz",
    "%C3%A9",
    "%C3",
    "é",
    "😀",
    "[",
    "]",
    "[]",
    "x",
    "%EF%BB%BF",
    "\ufeff",
  ];
  for (let round = 0; round < 5_000; round++) {
    const length = Math.floor(random.next() * 12);
    const text = Array.from({ length }, () => PARTS[Math.floor(random.next() * PARTS.length)]).join("");
    const expected = referenceOf(text);
    if (expected === undefined) expect(() => decode(text), JSON.stringify(text)).toThrow("is no utf-8 text");
    else expect(decode(text).fields, JSON.stringify(text)).toEqual(expected);
  }
});

test("a long value is decoded in pieces that cut no character, wherever one stands", () => {
  for (const sign of ["%C3%A9", "😀", "%F0%9F%98%80", "+", "%"])
    for (let before = 65_532; before <= 65_536; before++) {
      const text = `a=1&b=${"x".repeat(before)}${sign}${"y".repeat(70_000)}&c=${sign}`;
      const { fields, steps } = decode(text);
      expect(fields).toEqual([...reference(text)]);
      expect(steps).toBeGreaterThan(3);
    }
});

test("a form in another charset is decoded by its bytes, escaped or not, in pieces too", () => {
  const gbk = encodingNamed("gbk");
  const bytesOf = (text: string): string => text.replace("编", "\xb1\xe0");
  for (const value of ["%B1%E0%C2%EB", "%81A%81%41", "编%c2\xeb", "a+编", "%2B", "plain"]) {
    const expected = { "%B1%E0%C2%EB": "编码", "%81A%81%41": "丄丄", "编%c2\xeb": "编码", "a+编": "a 编", "%2B": "+" }[
      value
    ];
    expect([...parseUrlEncoded(`%B1%E0=${bytesOf(value)}`, gbk)], value).toEqual([["编", [expected ?? value]]]);
  }
  for (let before = 65_532; before <= 65_536; before++) {
    const text = `a=${"x".repeat(before)}%81A${"y".repeat(70_000)}`;
    expect([...parseUrlEncoded(text, gbk)]).toEqual([["a", [`${"x".repeat(before)}丄${"y".repeat(70_000)}`]]]);
  }
  expect(() => parseUrlEncoded("a=%B1", gbk)).toThrow("A form or query field is no gbk text at byte 1");
});

test("bytes that are no UTF-8 are refused, in a name, a value and at the end of a long one", () => {
  for (const bytes of ["%C3", "%FF", "%ED%A0%80", "%C3x", "%A9"])
    for (const text of [`a=${bytes}`, `${bytes}=a`, `b=1&a=x${bytes}&c=2`, `a=${"x".repeat(70_000)}${bytes}`])
      expect(() => decode(text), text.slice(-20)).toThrow("A form or query field is no utf-8 text at byte");
});

test("more fields than there may be are refused before any is decoded", () => {
  expect(() => new FormDecoder("a=1&".repeat(2_001))).toThrow(/More than 2000/);
});

test("fields without an equals sign are not searched for one again and again", () => {
  const indexOf = vi.spyOn(String.prototype, "indexOf");
  const lastIndexOf = vi.spyOn(String.prototype, "lastIndexOf");
  try {
    decode(`${"a&".repeat(1_999)}b=${"+".repeat(1_000_000)}`);
    expect(indexOf.mock.calls.filter(([sign]) => sign === "=")).toHaveLength(1);
    expect(lastIndexOf).not.toHaveBeenCalled();
  } finally {
    indexOf.mockRestore();
    lastIndexOf.mockRestore();
  }
});
