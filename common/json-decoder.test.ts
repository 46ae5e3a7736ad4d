import { describe, expect, test } from "vitest";
import { seededRandom } from "../test/helpers/time/clock.ts";
import { isAppError } from "./errors.ts";
import { HTTP_JSON_BOUNDS, JsonDecoder, type JsonBounds } from "./json-decoder.ts";
import { parseJson } from "./json.ts";

function decode(text: string, bounds: JsonBounds = HTTP_JSON_BOUNDS): unknown {
  const decoder = new JsonDecoder(text, bounds);
  while (!decoder.step());
  return decoder.value;
}

function steps(text: string): number {
  const decoder = new JsonDecoder(text);
  let count = 1;
  while (!decoder.step()) count += 1;
  return count;
}

function refused(text: string, bounds?: JsonBounds): string {
  try {
    decode(text, bounds);
    return "";
  } catch (error) {
    if (!isAppError(error)) throw error;
    return `${error.code}: ${error.message}`;
  }
}

const native = (text: string): unknown => JSON.parse(text);

function isRefused(by: (text: string) => unknown, text: string): boolean {
  try {
    by(text);
    return false;
  } catch {
    return true;
  }
}

describe("a text is what JSON.parse makes of it", () => {
  const random = seededRandom(7);
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random.next() * of.length)] as T;
  const STRINGS = [
    "",
    "a",
    "a longer string of text",
    'quo"te',
    "back\\slash",
    "\u0000\u001f",
    "é",
    "日本",
    "😀",
    "\ud800",
  ];
  const NUMBERS = ["0", "-0", "1", "-1.5", "1e3", "1E-7", "123456789012345", "0.1", "1e308", "9007199254740991"];
  const SPACES = ["", "", "", " ", "\n\t ", "\r\n"];
  const string = (): string => {
    const text = JSON.stringify(pick(STRINGS).repeat(1 + Math.floor(random.next() * 3)));
    return random.next() < 0.3 ? text.replace("a", "\\u0061").replace("é", "\\u00e9") : text;
  };
  const value = (depth: number): string => {
    const space = pick(SPACES);
    const kind = random.next();
    if (depth === 0 || kind < 0.4) return space + pick([string(), pick(NUMBERS), "true", "false", "null"]) + space;
    const parts = Array.from({ length: Math.floor(random.next() * 5) }, () => value(depth - 1));
    if (kind < 0.7) return `${space}[${parts.join(",")}${parts.length === 0 ? space : ""}]${space}`;
    return `${space}{${parts.map((part) => `${pick(SPACES)}${string()}${pick(SPACES)}:${part}`).join(",")}}${space}`;
  };

  test("for any value", () => {
    for (let round = 0; round < 2_000; round++) {
      const text = value(4);
      expect(decode(text), text).toEqual(native(text));
    }
  });

  test("and refused where that refuses it, for any text with a sign changed", () => {
    const SIGNS = [...'{}[],:"\\-+.eE0x \n\u0001tfn'];
    let refusals = 0;
    for (let round = 0; round < 5_000; round++) {
      const text = value(3);
      const at = Math.floor(random.next() * (text.length + 1));
      const changed = text.slice(0, at) + pick(SIGNS) + text.slice(at + Math.floor(random.next() * 2));
      const mustRefuse = isRefused(native, changed);
      if (mustRefuse) refusals += 1;
      expect(isRefused(decode, changed), changed).toBe(mustRefuse);
      if (!mustRefuse && !/\d{16}/.test(changed)) expect(decode(changed), changed).toEqual(native(changed));
    }
    expect(refusals).toBeGreaterThan(1_000);
  });

  test.each([
    "",
    " ",
    "tru",
    "nul",
    '"',
    '"\\',
    '"\\u00',
    "[1",
    "[1,",
    "[,1]",
    '{"a"',
    '{"a":',
    "{a:1}",
    "01",
    "1.",
    "-",
    "1 2",
  ])("%j is none", (text) => expect(refused(text)).toMatch(/^syntax: Not valid JSON: /));

  test("also a string longer than a piece, wherever an escape sequence stands", () => {
    for (let before = 262_135; before <= 262_150; before++) {
      const text = `"${"a".repeat(before)}\\u00e9\\n\\"${"b".repeat(10)}"`;
      expect(decode(text)).toBe(native(text));
    }
    const escapes = `"${"\\u0041\\ud83d\\ude00".repeat(40_000)}"`;
    expect(decode(escapes)).toBe(native(escapes));
  });
});

describe("a fault has its place, in a text that is decoded at once as in one that is decoded in pieces", () => {
  const placeOf = (by: (text: string) => unknown, text: string): unknown => {
    try {
      return by(text);
    } catch (error) {
      if (!isAppError(error, "syntax")) throw error;
      const { line, column } = error.details ?? {};
      expect(error.message).toMatch(
        new RegExp(`^Not valid JSON: .* at line ${String(line)} column ${String(column)}\\.$`),
      );
      return [line, column];
    }
  };

  test.each([
    ['{"a":1,}', [1, 8]],
    ['{\n  "a": nul\n}', [2, 8]],
    ['{\r\n"é😀": 1 2}', [2, 10]],
    ['{"a": 1', [1, 8]],
    ["", [1, 1]],
    ['["a\\q"]', [1, 4]],
    ['["\\\\q\\u12"]', [1, 6]],
    ['[\n"tab\there"]', [2, 5]],
    ["[1.]", [1, 2]],
    ["[1]\n]", [2, 1]],
  ] as const)("%j", (text, place) => {
    expect(placeOf(decode, text)).toEqual(place);
    expect(placeOf(parseJson, text)).toEqual(place);
  });

  test("behind a string of several pieces", () => {
    const text = `["${"a".repeat(300_000)}\\q"]`;
    expect(placeOf(decode, text)).toEqual([1, 300_003]);
  });
});

describe("where it differs", () => {
  test("a number beyond 2^53 without an exponent is its decimal text", () => {
    const text =
      "[9007199254740993,-9223372036854775808,9007199254740991,-9007199254740991,12345678901234567890.5,9007199254740993.0,1e30]";
    expect(decode(text)).toEqual([
      "9007199254740993",
      "-9223372036854775808",
      9007199254740991,
      -9007199254740991,
      "12345678901234567890.5",
      "9007199254740993",
      1e30,
    ]);
  });

  test("no member reaches a prototype", () => {
    const decoded = decode(
      '{"__proto__":{"polluted":1},"a":{"\\u005f_proto__":1,"constructor":{"prototype":{}},"b":2}}',
    );
    expect(JSON.stringify(decoded)).toBe('{"a":{"b":2}}');
    expect(Object.getPrototypeOf(decoded)).toBe(Object.prototype);
  });

  const small = (bound: Partial<Record<keyof JsonBounds, number>>): JsonBounds =>
    Object.fromEntries(
      Object.entries(HTTP_JSON_BOUNDS).map(([key, { name, max }]: [string, { name: string; max: number }]) => [
        key,
        { name, max: bound[key as keyof JsonBounds] ?? max },
      ]),
    ) as unknown as JsonBounds;

  test("what is beyond a bound is refused by its name and value", () => {
    expect(refused("[[[1]]]", small({ depth: 2 }))).toBe(
      "too_large: The JSON is nested deeper than 2 levels (HTTP_JSON_DEPTH_MAX).",
    );
    expect(decode("[[1]]", small({ depth: 2 }))).toEqual([[1]]);
    expect(refused('{"a":1,"b":{"c":1}}', small({ members: 2 }))).toBe(
      "too_large: The JSON has more than 2 members of objects (HTTP_JSON_MEMBERS_MAX).",
    );
    expect(refused("[1,[2]]", small({ elements: 2 }))).toMatch(
      "more than 2 elements of lists (HTTP_JSON_ELEMENTS_MAX)",
    );
    const long = "x".repeat(300_000);
    expect(refused(`["${long}"]`, small({ stringCharacters: 299_999 }))).toMatch("HTTP_JSON_STRING_MAX_CHARACTERS");
    expect(decode(`["${long}"]`, small({ stringCharacters: 300_000 }))).toEqual([long]);
    expect(refused(`{"${"k".repeat(20)}":1}`, small({ stringCharacters: 19 }))).toMatch("STRING_MAX_CHARACTERS");
  });
});

test("a text is decoded in pieces, none of which has much to do", () => {
  expect(steps(`[${"{},".repeat(10_000)}{}]`)).toBeGreaterThan(10);
  expect(steps(`{${Array.from({ length: 10_000 }, (_, at) => `"k${at}":${at}`).join()}}`)).toBeGreaterThan(10);
  expect(steps(`"${"a".repeat(1_000_000)}"`)).toBeGreaterThan(3);
});
