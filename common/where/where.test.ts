import { describe, expect, test } from "vitest";
import { WHERE_NESTING_MAX, WHERE_PARTS_MAX, WHERE_TEXT_MAX_CHARACTERS } from "../limits.ts";
import type { Value } from "../value.ts";
import { compileWhere, parseWhere } from "./index.ts";

const ITEM: Value = {
  id: "1",
  name: "web-1",
  size: 5,
  price: "12.5",
  zero: 0,
  empty: "",
  on: true,
  nothing: null,
  tags: ["red", "7", { deep: 1 }],
  config: { os: "linux", "a b": 1, true: 9, ports: [80, 443] },
};

function check(text: string, item: Value = ITEM): boolean {
  return compileWhere(parseWhere(text))(item);
}

describe("a condition holds", () => {
  test.each([
    // Types.
    "size = 5",
    "size == 5.0",
    "size = '5'",
    "price = 12.5",
    "price > 9",
    "'9' > '12.5'",
    "name = 'web-1'",
    'name = "web\\u002d1"',
    "on = true",
    "on = 'true'",
    "TRUE = on",
    "nothing = null",
    "missing = null",
    "config.missing.deeper = null",
    "nothing is missing",
    "size is 5",
    "size isnot '5'",
    "price isnot 12.5",
    "missing isnot 0",
    "name != 5",
    "tags != tags",
    "tags isnot tags",
    "size >= 5 && size <= 5",
    "'b' > 'a'",
    // Members.
    "config.os = 'linux'",
    "config.`a b` = 1",
    "config.true = 9",
    "config.ports.1 = 443",
    "tags.2.deep = 1",
    "name.length = null",
    "config.constructor = null",
    "`size` = 5",
    // Contains.
    "name contains 'eb'",
    "price contains '.'",
    "size contains 5",
    "tags contains 'red'",
    "tags contains 7",
    "config contains 'os'",
    // Patterns.
    "name ~= '^web-\\d$'",
    "size ~= '5'",
    "name !~= 'db'",
    "tags !~= 'red'",
    "missing !~= ''",
    // Precedence.
    "1 = 2 && 1 = 2 || 1 = 1",
    "1 = 1 || 1 = 2 && 1 = 2",
    "size - size = 0 && missing is null",
    "2 + 3 * 4 = 14",
    "(2 + 3) * 4 = 20",
    "2 ^ 3 ^ 2 = 512",
    "-2 ^ 2 = -4",
    "2 ^ -1 = 0.5",
    "7 % 4 * 2 = 6",
    "8 / 4 / 2 = 1",
    "8 - 4 - 2 = 2",
    "8/4=2",
    "size/5=1",
    "1--1=2",
    "1 - -1 = 2",
    "size+1>5",
    "name + '!' = 'web-1!'",
    "price * 2 = 25",
    "'1' + '2' = '12'",
    "(size = 5) = true",
    "(1 = 1) = (2 = 2)",
    // Values that are not numbers.
    "name * 2 is null",
    "1 / 0 is null",
    "10 ^ 400 is null",
    "name + 1 is null",
    "size + missing is null",
    // By itself.
    "on",
    "size",
    "name && 1",
    "SIZE is null",
  ])("%s", (text) => {
    expect(check(text)).toBe(true);
  });
});

describe("a condition does not hold", () => {
  test.each([
    "size = 6",
    "size = 'five'",
    "price is 12.5",
    "on = 1",
    "on = 'yes'",
    "missing > 0",
    "missing < 0",
    "missing = 0",
    "null >= null",
    "name > 1",
    "tags contains 'blue'",
    "tags contains 'deep'",
    "missing contains 'x'",
    "config contains 'linux'",
    "on contains 'true'",
    "name ~= '^eb'",
    "tags ~= 'red'",
    "size != '5'",
    "zero",
    "empty",
    "nothing",
    "missing",
    "false",
    "tags = tags",
  ])("%s", (text) => {
    expect(check(text)).toBe(false);
  });

  test("of what is no object every field is null", () => {
    for (const item of [null, 5, "text", [1]]) expect(check("size = null", item)).toBe(true);
  });
});

describe("what is refused says where and why", () => {
  test.each([
    ["", "at line 1 column 1: expected a field or a value but found the end"],
    ["size =", "column 7: expected a field or a value but found the end"],
    ["size = 5 6", 'column 10: expected an operator or the end but found "6"'],
    ["a = b = c", 'column 7: expected &&, || or brackets around the comparison but found "="'],
    ["a ~= 'x' ~= 'y'", "column 10: expected &&, || or brackets around the comparison"],
    ["(a = 1", "column 7: expected an operator or ) but found the end"],
    ["a &&\n  & b", 'line 2 column 3: expected a field, a value or an operator but found the character "&"'],
    ["name ~= pattern", 'column 9: expected a regular expression in quotes but found "pattern"'],
    ["name ~= '(?<=a)b'", "column 9"],
    ["name = 'open", "column 8: expected a closing '"],
    ["1e999 = 1", "column 1: expected a number that is not so large"],
    ["a.", "expected the name of a member"],
    ["a.1.5 = 1", 'expected the name of a member but found "1.5"'],
    ["a # comment", 'column 3: expected a field, a value or an operator but found the character "#"'],
    ["size = linux kernel", "expected an operator or the end"],
  ])("%s", (text, complaint) => {
    expect(() => parseWhere(text)).toThrow(complaint);
  });

  test.each([
    ["WHERE_TEXT_MAX_CHARACTERS", "a".repeat(1_000_000)],
    ["WHERE_TEXT_MAX_CHARACTERS", "(".repeat(WHERE_TEXT_MAX_CHARACTERS + 1)],
    ["WHERE_NESTING_MAX", "(".repeat(WHERE_TEXT_MAX_CHARACTERS)],
    ["WHERE_NESTING_MAX", "-".repeat(WHERE_TEXT_MAX_CHARACTERS)],
    ["WHERE_NESTING_MAX", `1${"^1".repeat(WHERE_NESTING_MAX + 1)}`],
    ["WHERE_NESTING_MAX", `a${".a".repeat(WHERE_NESTING_MAX + 1)}`],
    ["WHERE_PARTS_MAX", `1${"+1".repeat(WHERE_PARTS_MAX)}`],
    ["WHERE_PATTERNS_MAX", Array(17).fill("a ~= 'x'").join("||")],
  ])("%s", (limit, text) => {
    expect(() => parseWhere(text)).toThrow(refused(limit));
  });
});

test("brackets as deep, and as many values, as the limits allow are worked out", () => {
  const deep = WHERE_NESTING_MAX - 1;
  expect(check(`${"(".repeat(deep)}size${")".repeat(deep)} = 5`)).toBe(true);
  expect(check(`${"1+".repeat(WHERE_PARTS_MAX - 2)}1 = ${WHERE_PARTS_MAX - 1}`)).toBe(true);
});

test.each([
  ["a regular expression that begins a match at every character", "text ~= 'a+b'", 250_000],
  ["many of them", Array(16).fill("text ~= 'a+b'").join("||"), 4_000],
  ["a part that is looked for again and again", Array(400).fill("text contains 'b'").join("||"), 200_000],
  ["a text that is joined again and again", `text${"+text".repeat(400)} = 'b'`, 30_000],
])("an item for which a condition takes too long is refused: %s", (_, text, length) => {
  const item = { text: "a".repeat(length) };
  expect(() => check(text, item)).toThrow(refused("WHERE_ITEM_STEPS_MAX"));
});

function refused(limit: string): Error {
  const details = expect.objectContaining({ limit }) as unknown;
  return expect.objectContaining({ code: "too_large", details }) as Error;
}
