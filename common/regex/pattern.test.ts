import { describe, expect, it } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { searchesOf } from "../../test/helpers/mql/searches.ts";
import { expectWithin } from "../../test/helpers/time/times.ts";
import { isAppError } from "../errors.ts";
import { PATTERN_BACKTRACKING_MAX_CHARACTERS, PATTERN_STEPS_MAX, RECORD_MAX_BYTES } from "../limits.ts";
import type { Random } from "../time.ts";
import { compilePattern, type Pattern } from "./pattern.ts";

const compilers: readonly (readonly [string, (source: string) => Pattern])[] = [
  ["as most patterns run", (source) => compilePattern(source)],
  ["in re2js", (source) => compilePattern(source, { ignoreCase: true })],
];

describe.each(compilers)("a user's pattern %s", (_name, compile) => {
  it("finds named groups, first match at or after the place asked for", () => {
    const pattern = compile("(?<key>\\w+)=(?<value>\\d+)?");
    expect(pattern.groupNames).toEqual(["key", "value"]);
    expect(pattern.exec("a=1 bb= c=3")).toEqual({ start: 0, end: 3, text: "a=1", groups: { key: "a", value: "1" } });
    expect(pattern.exec("a=1 bb= c=3", 3)).toEqual({ start: 4, end: 7, text: "bb=", groups: { key: "bb" } });
    expect(pattern.exec("nothing")).toBeUndefined();
    expect(pattern.test("x=1")).toBe(true);
  });

  it.each(["^(a+)+$", "^(a{1,30})+$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"])(
    "%s ends in linear time on a text made to explode it",
    (source) => {
      const pattern = compile(source);
      // A backtracking engine would take longer than the age of the universe.
      expect(pattern.test(`${"a".repeat(5_000)}!`)).toBe(false);
      expect(pattern.test(`${"x".repeat(5_000)}!`)).toBe(false);
    },
  );

  it.each(["(", "a(?=b)", "(a)\\1", "(?<g>(a)\\1)", "[z-a]", "a{2,1}"])("%s is refused with its reason", (source) => {
    expect(() => compile(source)).toThrow(/The regular expression .* is not usable: /);
  });

  it("is refused when its repeats multiply", () => {
    expect(() => compile("((((a{30}){30}){30}){30})|b{1,2}")).toThrow(/not usable|too large/);
  });
});

it("runs natively what V8 can bound, and in re2js what it cannot", () => {
  expect(compilePattern("(?<a>\\d+) .*").engine).toBe("native");
  expect(compilePattern("a{1,30}").engine).toBe("re2");
});

describe.each(compilers)("however a text is made, a pattern %s", (_name, compile) => {
  // One expression of each kind that makes a backtracking engine begin again at each character, or try each end of a
  // loop.
  it.each([
    ["a+b", "a"],
    ["a*b", "a"],
    ["a+a+b", "a"],
    ["(?:aa)+b", "a"],
    ["a*?b", "a"],
    ["[a-z]+ x", "a"],
    ["^a*a*b", "a"],
    [".*.*.*x", "a"],
    ["(a|b|c)*d", "a"],
    ["(\\w+\\s*)+:", "a "],
    ["\\d+-\\d+-x", "1-"],
    ["(?:[0-9A-Fa-f]*:){2,7}x", "1:"],
    ['"(?:\\\\.|[^\\\\"])*" x', '"\\'],
  ])("%s, looks once through 256 KB of %j, in a linear engine", (source, piece) => {
    const text = piece.repeat(RECORD_MAX_BYTES / piece.length);
    const { characters, backtracking } = searchesOf(() => {
      const pattern = compile(source);
      const before = process.cpuUsage();
      expect(pattern.fits(text) ? pattern.test(text) : false).toBe(false);
      // Quadratic time would take minutes.
      expectWithin(process.cpuUsage(before).user, 1_000_000);
    });
    expect(backtracking).toEqual([]);
    expect(characters).toBeLessThan(2 * text.length);
  });
});

describe.each(compilers)("a text too long for a pattern %s", (_name, compile) => {
  it("is refused before it is searched, with the length that is not", () => {
    const pattern = compile("[a-z]?".repeat(500));
    const text = "x".repeat(PATTERN_STEPS_MAX / 200);
    expect(pattern.fits(text)).toBe(false);
    for (const search of [() => pattern.test(text), () => pattern.exec(text), () => pattern.captures(text)]) {
      expect(search).toThrow(/has \d+ characters; the regular expression searches at most \d+\./);
    }
  });
});

it("finds in a short text and in a long one what JavaScript finds", () => {
  const random = seededRandom(7);
  let native = 0;
  for (let round = 0; round < 600; round++) {
    const source = randomSource(random, 3);
    const pattern = compilePattern(source);
    if (pattern.engine !== "native") continue;
    native += 1;
    const short = randomText(random, 12);
    for (const text of [short, `${short}\n${"~".repeat(PATTERN_BACKTRACKING_MAX_CHARACTERS)}`]) {
      const expected = new RegExp(source).exec(text);
      expect([...(pattern.captures(text) ?? [])], `/${source}/ on ${JSON.stringify(short)}`).toEqual([
        ...(expected ?? []),
      ]);
    }
  }
  expect(native).toBeGreaterThan(300);
});

it("either compiles or refuses whatever is written", () => {
  const random = seededRandom(11);
  const signs = [..."()[]{}*+?|^$.\\ab1,-:<>=!é😀", "\\p{L}", "(?:", "(?<n>"];
  for (let round = 0; round < 3_000; round++) {
    const source = Array.from({ length: 1 + Math.floor(random.next() * 12) }, () => oneOf(random, signs)).join("");
    try {
      compilePattern(source).test("ab1😀-:(");
    } catch (error) {
      expect(isAppError(error, "invalid"), `/${source}/ ${String(error)}`).toBe(true);
    }
  }
});

function oneOf<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random.next() * list.length)] as T;
}

function randomText(random: Random, most: number): string {
  return Array.from({ length: Math.floor(random.next() * most) }, () =>
    oneOf(random, ["a", "b", "c", " ", "1", "\n", "é"]),
  ).join("");
}

/** Repeats apply to single characters only, because engines differ in the contents of groups after empty iterations. */
function randomSource(random: Random, depth: number): string {
  const inner = (): string => randomSource(random, depth - 1);
  if (depth === 0) return oneOf(random, ["a", "b", "c", ".", "\\w", "\\s", "[ab]", "[^a]", "\\b", "1", " "]);
  switch (Math.floor(random.next() * 5)) {
    case 0:
      return `${inner()}|${inner()}`;
    case 1:
      return `(${inner()})`;
    case 2:
      return `(?:${randomSource(random, 0)})${oneOf(random, ["*", "+", "*?", "{1,3}"])}`;
    default:
      return `${inner()}${inner()}`;
  }
}
