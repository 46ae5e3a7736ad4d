import { expect, test } from "vitest";
import { isAppError } from "../../common/errors.ts";
import { RECORD_MAX_BYTES } from "../../common/limits.ts";
import type { Random } from "../../common/time.ts";
import { compileRule, checkRuleText } from "../../controller/areas/rules/definitions/compile.ts";
import { compileGrok } from "../../controller/areas/rules/grok/grok.ts";
import type { ParsedRecord } from "../../controller/areas/rules/types.ts";
import { ruleWarnings } from "../../controller/areas/rules/definitions/warnings.ts";
import type { ClassView, Column } from "../../controller/areas/objects/index.ts";
import { seededRandom } from "../helpers/time/clock.ts";

const columns = (["varchar", "int", "map"] as const).map(
  (type, number): Column => ({ name: `c${number}`, type, number, definedBy: "/ns/a", indexed: false, key: false }),
);
const view: ClassView = {
  cid: 7,
  path: "/ns/a",
  label: "a",
  parent: "/ns",
  kind: "record",
  columns,
  keys: [],
  modifiedAtMs: 0,
  system: false,
  guard: undefined,
  options: {
    keyMode: "uuid",
    ttlSeconds: undefined,
    version: false,
    versionTtlSeconds: undefined,
    timeZone: undefined,
    autosearch: false,
    alias: undefined,
    nickname: undefined,
    remedy: undefined,
    hints: {},
  },
  column: (name) => columns.find((column) => column.name === name),
};

function parse(rule: string, texts: readonly string[]): readonly ParsedRecord[] {
  return compileRule(rule, view).parse(texts.map((text) => ({ text, timeMs: 0, host: "h", source: "s", groups: {} })));
}

const PIECES = [
  "--class=/ns/a",
  "--parser=json",
  "--parser=csv",
  "--parser=grok",
  "--fields=c0,c1",
  "--fields=%{IP:c0}",
  "--fields_type=INT",
  "--pattern_1=%{WORD:c0}",
  "--pattern_2=(?<c1>a+)+",
  "--var_c0=join a,b",
  "--var_c2=map k:a,l:b",
  "--var_c1='x'",
  "--ignore",
  "--forward=x",
  "-- a comment",
  "--[[",
  "--",
  "=",
  ":",
  "%{",
  "}",
  "(",
  "\\",
  "'",
  ",",
  " ",
  "\n",
  "\r\n",
  "\0",
  "é",
  "😀",
  "__proto__",
  "--var___proto__=field a",
  "constructor",
  "return 1",
];

const JSON_PIECES = [
  "{",
  "}",
  "[",
  "]",
  ":",
  ",",
  '"',
  '"c0"',
  '"c2"',
  '"__proto__"',
  '"constructor"',
  "1",
  "1e999",
  "-0",
  "null",
  "true",
  "\\u0000",
  " ",
  "é",
];

test("whatever a rule's text is, it is taken or refused with a reason, and its warnings are told", () => {
  const random = seededRandom(1);
  let taken = 0;
  for (let round = 0; round < 5_000; round++) {
    const text = `${round % 2 === 0 ? "--class=/ns/a\n--parser=csv\n" : ""}${pieces(random, PIECES, 14)}`;
    try {
      checkRuleText(text);
      ruleWarnings(text);
      parse(text, ["a,1", "{}", ""]);
      taken += 1;
    } catch (error) {
      expect(
        isAppError(error, "invalid", "syntax", "unsupported", "not_found", "too_large"),
        `${JSON.stringify(text)}: ${String(error)}`,
      ).toBe(true);
    }
  }
  expect(taken).toBeGreaterThan(100);
});

test("patterns that name each other end, in a circle, deep or many times over", () => {
  expect(() => compileGrok("%{A}", { A: "%{B}", B: "%{A}" })).toThrow(/in a circle/);
  const doubling = Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`P${at}`, `%{P${at + 1}}`.repeat(10)]));
  expect(() => compileGrok("%{P0}", { ...doubling, P16: "a" })).toThrow(/more than \d+ (characters|deep)/);
  expect(() => compileGrok("%{COMBINEDAPACHELOG}".repeat(12_000))).toThrow(/more than \d+ characters/);
  expect(() => compileGrok("%{__proto__}")).toThrow(/no grok pattern/);
  expect(() => compileGrok("%{constructor}")).toThrow(/no grok pattern/);
});

test.each(["json", "csv", "text", "grok"])(
  "no record stops a %s rule: each is a row or an error with its reason",
  (parser) => {
    const random = seededRandom(2);
    const rule = `--class=/ns/a\n--parser=${parser}\n--var_c0=join c0,c1,c2\n${parser === "grok" ? "--pattern_1=%{WORD:c0},%{GREEDYDATA:c1}\n" : ""}`;
    const deep = (open: string, close: string, depth: number): string =>
      `{"c0":1,"c2":${open.repeat(depth)}1${close.repeat(depth)}}`;
    const hostile = [
      deep("[", "]", 50),
      deep("[", "]", 100_000),
      deep('{"a":', "}", 40_000),
      "[".repeat(RECORD_MAX_BYTES),
      '{"a":'.repeat(50_000),
      JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`k${at}`, at]))),
      '{"__proto__":{"c0":"x"},"c1":1}',
      '{"constructor":{"prototype":{"c0":"x"}},"c1":1}',
      "a,".repeat(RECORD_MAX_BYTES / 2),
      '"'.repeat(RECORD_MAX_BYTES),
      '"a\nb",1',
      'a,"b',
      "\0",
      "\ud800",
      "\ufeff{}",
    ];
    const texts = [...hostile, ...Array.from({ length: 2_000 }, () => pieces(random, JSON_PIECES, 20))];
    const parsed = parse(rule, texts);
    for (const record of parsed) {
      if (record.ok) expect(() => JSON.stringify(record.values)).not.toThrow();
      else expect(record.error).not.toBe("");
    }
    expect(Object.prototype).not.toHaveProperty("c0");
    // Only blank texts are left out.
    expect(parsed).toHaveLength(texts.filter((text) => text.trim() !== "").length);
  },
);

function pieces(random: Random, from: readonly string[], most: number): string {
  return Array.from(
    { length: 1 + Math.floor(random.next() * most) },
    () => from[Math.floor(random.next() * from.length)] ?? "",
  ).join("");
}
