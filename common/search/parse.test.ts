import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { AppError } from "../errors.ts";
import { SEARCH_PARTS_MAX, SEARCH_TEXT_MAX_CHARACTERS } from "../limits.ts";
import { parseSearch, printSearch } from "./index.ts";

function failure(text: string): AppError {
  try {
    parseSearch(text);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error(`parsed: ${text}`);
}

/** The tree without positions. */
function bare(text: string): unknown {
  return JSON.parse(JSON.stringify(parseSearch(text), (key, value: unknown) => (key === "span" ? undefined : value)));
}

test("a class with its sign, with or without subclasses, ended by a colon, a line or a blank", () => {
  for (const text of ["#/ns/box/: | a=1", "#/ns/box/ | a=1", "#/ns/box/:a=1", " # /ns/box/ : a=1", "#/ns/box/ a=1"]) {
    expect(printSearch(parseSearch(text)), text).toBe("#/ns/box/: | a = 1");
  }
  expect(parseSearch("/磁盘/box")).toMatchObject({
    current: false,
    debug: false,
    class: { path: "/磁盘/box", subtree: false },
    segments: [],
  });
  expect(parseSearch("debug>#/ns/")).toMatchObject({
    debug: true,
    current: true,
    class: { path: "/ns", subtree: true },
  });
  expect(parseSearch("ERROR | top 2")).toMatchObject({
    class: undefined,
    segments: [{ kind: "match" }, { kind: "top", count: 2 }],
  });
});

test("words, quoted ones too, and conditions; a value without quotes goes on to the next separator", () => {
  expect(
    parseSearch('ERROR *disk* "a | b*" host = web 1;vtime>=2017-11-18 12:30 ； tags!="x;y"').segments,
  ).toMatchObject([
    {
      alternatives: [
        {
          words: [{ text: "ERROR", quoted: false }, { text: "*disk*" }, { text: "a | b*", quoted: true }],
          test: { field: { parts: ["host"] }, operator: "=", value: { text: "web 1", quoted: false } },
        },
        { words: [], test: { operator: ">=", value: { text: "2017-11-18 12:30" } } },
        { words: [], test: { field: { parts: ["tags"] }, operator: "!=", value: { text: "x;y", quoted: true } } },
      ],
    },
  ]);
});

test("words of the language are words of the text where nothing fits them, in quotes, and names before an operator", () => {
  expect(
    parseSearch("delete failed | week of | 'top' | top=5 | a today;last week of").segments.map(({ kind }) => kind),
  ).toEqual(Array(5).fill("match"));
});

test.each([
  "#/ns/box/: | a = 1; b != 'x'; c > 5 | ERROR; WARN* x = 'y'",
  "top -1 | sort f desc, config.os | print a, b.c as d | uniq a, b | group x",
  "today | top 1",
  "last week for firstoccurrence",
  "nearest 15 minute | delete",
  "at 2017-11-18 12:30:00.000",
  "at 2017-11-18 | within 5 minute for ctime",
  "window 2017-11-18 12:30:00.000 to 2017-11-19 for ctime",
  'call tree {"parent":"/a}","fields":["x|y"],"n":{"m":[]}}',
  "lua f=<lua>return a | b</lua> | top 1",
  "debug> #it''s 'a''b' x = y's",
  "| debug > * as for",
  "#| #a | a; delete",
])("prints as it is written: %s", (text) => {
  expect(printSearch(parseSearch(text))).toBe(text);
  expect(bare(printSearch(parseSearch(text)))).toEqual(bare(text));
});

test("spellings of times, orders and units", () => {
  const same = (one: string, other: string) => expect(bare(one), one).toEqual(bare(other));
  same("SORT BY f ASC, g Desc", "sort f, g desc");
  same("group by f", "group f");
  same("nearest 1day", "nearest 1 day");
  same("15 minutes", "nearest 15 minutes");
  same("1day | top 2", "nearest 1 day | top 2");
  same("2 hours for seen", "nearest 2 hours for seen");
  same("ERROR | 30seconds", "ERROR | nearest 30 seconds");
  same("at 2017-11-18 12:30 within 5min", "at '2017-11-18 12:30:00' within 5 minutes");
  same('"last week"', "LAST  week");
  same("within 1month | at 1510965000000", "within 1 month | at 2017-11-18 00:30:00.000");
  same("|| a |", "a");
});

test.each([
  ["/ns/a-b", 1, 6, '":", "|" or a blank after the class'],
  ["a | top x", 1, 9, "expected a number of rows, or -1 for all"],
  ["a\n| nearest 3 lightyears", 2, 11, "a length of time such as 15 minutes"],
  ["at home", 1, 4, 'expected a time as YYYY-MM-DD HH:mm:ss but found "home"'],
  ["at 2017-02-30", 1, 4, "expected a time"],
  ["window 2017-01-01 2017-01-02", 1, 19, "expected TO"],
  ["top 1 | top 2", 1, 9, "only one top"],
  ["today | nearest 1 day", 1, 9, "only one"],
  ["today | at 2017-01-01", 1, 9, "only one at"],
  ["sort f up", 1, 8, 'expected "|" or the end but found "up"'],
  ["print a as", 1, 11, "expected a field but found the end"],
  ["delete; b", 1, 7, '"|" or the end'],
  ["host=", 1, 6, "a value"],
  ["a=b c=d", 1, 5, '"|" between two conditions'],
  ["a='b' c", 1, 7, '";", "|" or the end after the value'],
  ["'abc", 1, 1, "a closing '"],
  [";a", 1, 1, "a word or a condition"],
  ["call {}", 1, 6, "a name"],
  ['call tree {"a":', 1, 11, "a closing }"],
  ["call tree {a}", 1, 11, "a JSON object"],
  ["lua f=<lua>x", 1, 1, "</lua>"],
])("a text that does not parse is an error with its place: %s", (text, line, column, complaint) => {
  const error = failure(text);
  expect(error.message).toContain(complaint);
  expect(error.code).toBe("syntax");
  expect(error.details).toEqual({ line, column });
});

test("length and number of parts are bounded", () => {
  expect(failure("a".repeat(SEARCH_TEXT_MAX_CHARACTERS + 1))).toMatchObject({
    code: "too_large",
    details: { limit: "SEARCH_TEXT_MAX_CHARACTERS" },
  });
  expect(failure("a ".repeat(SEARCH_PARTS_MAX + 1))).toMatchObject({
    code: "too_large",
    details: { limit: "SEARCH_PARTS_MAX" },
  });
});

const PIECES = [
  "#",
  "/ns/box",
  "/",
  ":",
  "|",
  "| ",
  ";",
  "；",
  " ",
  " ",
  "\n",
  "a",
  "host",
  "磁盘",
  "=",
  "!=",
  ">=",
  "<",
  "*",
  "'",
  '"',
  "\\",
  "''",
  "top 3",
  "sort",
  " desc",
  " by ",
  ",",
  "print",
  " as ",
  "uniq",
  "group",
  "at",
  "2017-11-18",
  "12:30",
  "within",
  "5min",
  "nearest",
  "15 minutes",
  "1day",
  "window",
  " to ",
  "today",
  "last week",
  " for ",
  "delete",
  "call tree",
  "{",
  "}",
  '{"a":"}"}',
  "lua x=<lua>",
  "</lua>",
  "debug>",
  "-1",
  ".",
  "12",
  "\u0000",
  "\ud800",
  "（",
];

const SEEDS = [1, 2, 3, 4, 5, 6, 7];

test.each(SEEDS)("whatever is put together parses to what it prints, or is an error with a place (seed %i)", (seed) => {
  const random = seededRandom(seed);
  let parsed = 0;
  for (let round = 0; round < 2_000; round += 1) {
    const text = Array.from(
      { length: 1 + Math.floor(random.next() * 12) },
      () => PIECES[Math.floor(random.next() * PIECES.length)],
    ).join("");
    try {
      const printed = printSearch(parseSearch(text));
      parsed += 1;
      expect(bare(printed), `${JSON.stringify(text)} printed as ${JSON.stringify(printed)}`).toEqual(bare(text));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      expect(error, JSON.stringify(text)).toMatchObject({
        code: "syntax",
        details: { line: expect.any(Number) as number, column: expect.any(Number) as number },
      });
    }
  }
  expect(parsed).toBeGreaterThan(200);
});
