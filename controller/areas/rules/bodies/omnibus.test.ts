import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Value } from "../../../../common/value.ts";
import { bundle } from "../../../../test/helpers/programs/bundle.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { ThreadScripts } from "../../../scripting/index.ts";
import { RULE_FRAMES } from "./frames.ts";
import { OMNIBUS_HOST_OBJECT } from "./omnibus.ts";

let scripts: ThreadScripts;

beforeAll(async () => {
  const file = await bundle("controller/script-worker.ts", `omnibus-${process.pid}.mjs`);
  // The frame takes the host object of rules, which no text here calls.
  const functions = () => [{ object: "record", name: "lookup" }];
  scripts = new ThreadScripts({ ...testRuntime(realClock), file, languages: ["lua", "javascript"], functions });
});
afterAll(() => scripts.close());

const RUN_MAX_MS = 60_000;
const LANGUAGES = ["lua", "javascript"] as const;
type Language = (typeof LANGUAGES)[number];

/** The value that a body sets for a record `a,1`. */
async function setBy(language: Language, source: string): Promise<Value> {
  const record = ["a,1", "web-1", "/var/log/a", 0, "19700101000000000", {}];
  const [outcome] = await scripts.runEach(
    {
      tenant: "matrix",
      kind: "rule",
      user: "anna",
      language,
      name: "/matrix/rules/body",
      source,
      frame: RULE_FRAMES[language],
      each: [{ OBJECT: { name: "a", n: 1 }, RECORD: record }],
      results: ["RESULT"],
      timeoutMs: RUN_MAX_MS,
      stepsMax: 1_000,
      outputMaxCharacters: 1_000_000,
    },
    { call: () => Promise.reject(new Error("nothing is called")) },
  );
  if (outcome === undefined || outcome instanceof Error) throw outcome ?? new Error("It did not run.");
  const { rows } = outcome.results["RESULT"] as unknown as { readonly rows: readonly { readonly set: Value }[] };
  return rows[0]?.set ?? null;
}

const SHOWN: Readonly<Record<string, Value>> = {
  length: { n: 3 },
  lower: { note: "web-1" },
  upper: { note: "WEB-1" },
  trim: { note: "a b" },
  ltrim: { note: "a b  " },
  rtrim: { note: "  a b" },
  substr: { note: "bcd" },
  replace: { note: "a+b+c" },
  match: { note: true },
  nmatch: { note: true },
  contains: { note: true },
  extract: { note: "ann" },
  int: { n: 7 },
  real: { note: 7.5 },
};

/** The answer of each call, in both languages. */
const ANSWERS: readonly (readonly [call: string, answer: Value | undefined])[] = [
  ['omnibus.trim("")', ""],
  ['omnibus.trim("  ")', ""],
  ['omnibus.rtrim("  ")', ""],
  ['omnibus.ltrim("  ")', ""],
  ['omnibus.substr("abcd", 3)', "cd"],
  ['omnibus.substr("abcd", 0, 2)', "a"],
  ['omnibus.substr("abcd", -5, 2)', ""],
  ['omnibus.substr("abcd", 9)', ""],
  ['omnibus.substr("abcd", 2, 0)', ""],
  ['omnibus.replace("aXbX", "X", "")', "ab"],
  ['omnibus.replace("ab", "", "-")', "ab"],
  ['omnibus.replace("a.b", ".", "%")', "a%b"],
  ['omnibus.contains("a.b", "..")', false],
  ['omnibus.contains("ab", "")', true],
  ['omnibus.nmatch("ab", "abc")', false],
  ['omnibus.match("a", "b")', false],
  ['omnibus.extract("abc", "b")', "b"],
  ['omnibus.extract("abc", "x(.)")', undefined],
  ['omnibus.int("-7.9")', -7],
  ['omnibus.int(" 7 ")', 7],
  ['omnibus.int("")', undefined],
  ['omnibus.int("7x")', undefined],
  ['omnibus.real("1e400")', undefined],
  ['omnibus.real("nan")', undefined],
  ["omnibus.real(1.5)", 1.5],
  ["omnibus.length(100)", 3],
  ["omnibus.upper(100)", "100"],
];

describe.each(LANGUAGES)("omnibus in %s", (language) => {
  test.each(OMNIBUS_HOST_OBJECT.functions.map(({ name, example }) => [name, example] as const))(
    "%s does what its example shows",
    async (name, example) => {
      const split = { note: language === "lua" ? "a" : "b" };
      expect(await setBy(language, example)).toEqual(name === "split" ? split : SHOWN[name]);
    },
  );

  test("has the functions that are declared", async () => {
    const listed =
      language === "lua"
        ? 'local names = {} for _, name in ipairs(NAMES) do if type(omnibus[name]) == "function" then table.insert(names, name) end end setvar("names", names)'
        : 'setvar("names", Object.keys(omnibus))';
    const declared = OMNIBUS_HOST_OBJECT.functions.map(({ name }) => name);
    const names = `NAMES = {${declared.map((name) => `"${name}"`).join(",")}} `;
    const found = (await setBy(language, (language === "lua" ? names : "") + listed)) as {
      readonly names: readonly string[];
    };
    expect([...found.names].sort()).toEqual([...declared].sort());
  });

  test("answers at the edges what it answers in the other language", async () => {
    const set = (await setBy(language, ANSWERS.map(([call], at) => `setvar("x${at}", ${call})`).join("\n"))) as Record<
      string,
      Value
    >;
    expect(ANSWERS.map(([call], at) => [call, set[`x${at}`]])).toEqual(ANSWERS);
  });

  test("a text of a million spaces is gone through once", async () => {
    const begin = {
      lua: 'local blank = (" "):rep(1e6) local text = blank .. "x" .. blank',
      javascript: 'var blank = " ".repeat(1e6), text = blank + "x" + blank;',
    };
    const body = `${begin[language]}
      setvar("trimmed", omnibus.trim(text))
      setvar("left", omnibus.length(omnibus.rtrim(text)))
      setvar("nothing", omnibus.rtrim(blank))`;
    expect(await setBy(language, body)).toEqual({ trimmed: "x", left: 1_000_001, nothing: "" });
  });
});
