import { expect, test } from "vitest";
import { isAppError } from "../../../../common/errors.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { classView } from "../../../../test/helpers/mql/class-views.ts";
import { TIMES } from "../../../../test/helpers/time/times.ts";
import { Words } from "../../../../test/helpers/mql/words.ts";
import { checkRuleText, compileRule } from "../definitions/compile.ts";
import { compileGrok } from "../grok/grok.ts";
import { GROK_PATTERNS } from "../grok/known-patterns.ts";
import type { ParsedRecord, RawRecord } from "../types.ts";

const SEEDS = Array.from({ length: TIMES > 1 ? 20 : 2 }, (_, at) => at + 1);
const ROUNDS = 400;
const REFUSALS = ["invalid", "syntax", "unsupported", "too_large", "not_found"];
const CLASS = classView("/ns/access", {
  client: "varchar",
  verb: "varchar",
  status: "int",
  bytes: "bigint",
  seen: "timestamp",
  note: "map",
  tags: "list",
});

const RULES = [
  "--class=/ns/access\n--parser=csv\n--fields=client,verb,status\n--fields_type=STRING,STRING,INT\n",
  "--class=/ns/access\n--parser=csv\n--header\n--separator=;\n--quote='\n--escape=\\\n--null=-\n--comment_sign=#\n",
  "-- a rule\n--class: /ns/access\n--parser=json\n--var_note=x\n--ignore=false\n",
  "--class /ns/access\n--parser=text\n--fields=client\n",
  "--class=/ns/access/\n--parser=grok\n--pattern_1=%{IP:client} %{WORD:verb} %{INT:status:int}\n--pattern_2=(?<verb>\\w+)=%{GREEDYDATA:note}\n",
  "--class=/ns/access\n--parser=grok\n--fields=%{HOSTPORT:client} \\[%{HTTPDATE:seen}\\] %{NUMBER:bytes:float}\n",
];
const LINES = [
  "10.0.0.1 GET 200",
  "a,b,3",
  '"q ""x""",,7',
  '{"client":"a","status":1,"note":{"k":[1,{"x":null}]}}',
  "web:80 [10/Oct/2000:13:55:36 -0700] 12.5",
  "中=文 ；",
  "",
];
const WORDS_OF_RULES = [
  "--class=/ns/access",
  "--parser=",
  "json",
  "csv",
  "grok",
  "text",
  "--fields=",
  "--fields_type=",
  "--header=true",
  "--separator=",
  "--quote=none",
  "--null=",
  "--pattern_1=",
  "--var_client=",
  "--ignore",
  "\n",
  "=",
  ":",
  ",",
  "/",
  "INT",
  "lua()",
];
const WORDS_OF_GROK = [
  ...Object.keys(GROK_PATTERNS).map((name) => `%{${name}}`),
  "%{",
  "}",
  "%{IP:a:int}",
  "%{NONE}",
  "%{WORD:b:string}",
  "%{INT:constructor:float}",
  "(",
  ")",
  "[",
  "]",
  "(?<n>",
  "(?:",
  "(?=",
  "*",
  "+",
  "{2,9}",
  "{99999}",
  "|",
  "\\",
  "\\1",
  "^",
  "$",
  ".",
  " ",
  "é",
  "\u0000",
  "\ud800",
];
const WORDS_OF_LINES = [
  '"',
  "'",
  ",",
  "{",
  "}",
  "[",
  "]",
  ":",
  "\\",
  "\\u12",
  "null",
  "1e999",
  "-0",
  "9".repeat(40),
  "__proto__",
  "中",
  "\u0000",
  "\ud800",
  "\r",
  "\n",
  "\ufeff",
  " ",
];
const VOCABULARY = [...WORDS_OF_RULES, ...WORDS_OF_GROK, ...WORDS_OF_LINES];

/** `undefined` for a refusal whose code says that the text is at fault. */
function orRefused<T>(work: () => T, told: string): T | undefined {
  try {
    return work();
  } catch (error) {
    if (isAppError(error) && REFUSALS.includes(error.code)) return undefined;
    throw new Error(told, { cause: error });
  }
}

function raw(text: string): RawRecord {
  return { text, timeMs: 1_000, host: "web-1", source: "/var/log/a.log", groups: { site: "shop" } };
}

function changed(words: Words, texts: readonly string[]): string {
  return words.changed(words.of(texts).split(words.of([/(?<=[\s=:,}])/u, /(?:)/u]))).join("");
}

/** Each record is a row of columns of the class or has a reason, and stands for one of the lines. */
function expectRecords(records: readonly ParsedRecord[], lines: number, told: string): void {
  const ordinals = records.map(({ ordinal }) => ordinal);
  expect(ordinals, told).toEqual(
    [...new Set(ordinals)].filter((ordinal) => ordinal >= 0 && ordinal < lines).sort((a, b) => a - b),
  );
  for (const record of records) {
    if (!record.ok) expect(record.error, told).not.toBe("");
    else
      expect(
        Object.keys(record.values).filter((name) => !CLASS.column(name)),
        told,
      ).toEqual([]);
  }
}

test.each(SEEDS)(
  "a changed rule is refused, or makes of any lines rows of its class or errors, the same each time (seed %i)",
  (seed) => {
    const words = new Words(seededRandom(seed), VOCABULARY);
    let compiled = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const text = changed(words, RULES);
      const lines = [words.of(LINES), changed(words, LINES), words.stream(12).join("")];
      const told = `seed ${seed} round ${round}: ${JSON.stringify({ text, lines })}`;
      orRefused(() => checkRuleText(text), told);
      const rule = orRefused(() => compileRule(text, CLASS), told);
      if (!rule) continue;
      compiled += 1;
      const records = rule.parse(lines.map(raw));
      expectRecords(records, lines.length, told);
      expect(rule.parse(lines.map(raw)), told).toEqual(records);
    }
    // Both happen often enough to prove something.
    expect(compiled).toBeGreaterThan(ROUNDS / 10);
    expect(compiled).toBeLessThan(ROUNDS);
  },
);

test.each(SEEDS)("a grok expression of any words is refused, or finds under its own names only (seed %i)", (seed) => {
  const words = new Words(seededRandom(seed), WORDS_OF_GROK);
  let compiled = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const expression = words.stream(8).join("");
    const line = words.below(2) === 0 ? words.of(LINES) : changed(words, LINES);
    const told = `seed ${seed} round ${round}: ${JSON.stringify({ expression, line })}`;
    const grok = orRefused(() => compileGrok(expression), told);
    if (!grok) continue;
    compiled += 1;
    expect(Number.isFinite(grok.steps(line)), told).toBe(true);
    const found = grok.match(line) ?? {};
    expect(
      Object.keys(found).filter((name) => !grok.captures.includes(name)),
      told,
    ).toEqual([]);
  }
  expect(compiled).toBeGreaterThan(ROUNDS / 10);
  expect(compiled).toBeLessThan(ROUNDS);
});
