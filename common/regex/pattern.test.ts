import v8 from "node:v8";
import { beforeAll, describe, expect, it } from "vitest";
import { compilePattern, REGEXP_V8_FLAGS, type Pattern } from "./pattern.ts";

const compilers: readonly (readonly [string, (source: string) => Pattern])[] = [
  ["as most patterns run", (source) => compilePattern(source)],
  ["in re2js", (source) => compilePattern(source, { ignoreCase: true })],
];

beforeAll(() => {
  for (const flag of REGEXP_V8_FLAGS) v8.setFlagsFromString(flag);
});

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
      // A backtracking engine needs longer than the age of the universe for this.
      expect(pattern.test(`${"a".repeat(5_000)}!`)).toBe(false);
      expect(pattern.test(`${"x".repeat(5_000)}!`)).toBe(false);
    },
  );

  it.each(["(", "a(?=b)", "(a)\\1", "[z-a]", "a{2,1}"])("%s is refused with its reason", (source) => {
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
