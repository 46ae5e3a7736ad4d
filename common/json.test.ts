import { describe, expect, test } from "vitest";
import { seededRandom } from "../test/helpers/time/clock.ts";
import { looksLikeJson, parseJson } from "./json.ts";

/** By the definition of the language, member by member from the inside out. */
function byReviver(text: string): unknown {
  return JSON.parse(text, (key, value: unknown) => {
    const isConstructor = key === "constructor" && typeof value === "object" && value !== null && "prototype" in value;
    return key === "__proto__" || isConstructor ? undefined : value;
  });
}

describe("members of JSON that would reach a prototype", () => {
  test("are left out in every depth, however they are written, and nothing else is", () => {
    const text = String.raw`[{"__proto__":1},{"a":[{"\u005f_proto__":{"b":1},"c":{"constructor":{"prototype":2},"d":null}}]},
      {"constructor":{"name":1}},{"constructor":"a text"},["__proto__","constructor"]]`;
    expect(JSON.stringify(parseJson(text))).toBe(
      '[{},{"a":[{"c":{"d":null}}]},{"constructor":{"name":1}},{"constructor":"a text"},["__proto__","constructor"]]',
    );
    expect(Object.keys((parseJson(text) as object[])[0] ?? { left: true })).toEqual([]);
  });

  test("are those that a reviver leaves out", () => {
    const random = seededRandom(11);
    const pick = <T>(of: readonly T[]): T => of[Math.floor(random.next() * of.length)] as T;
    const NAMES = ['"__proto__"', '"constructor"', '"prototype"', '"a"', String.raw`"\u0063onstructor"`, '"0"'];
    const value = (depth: number): string => {
      if (depth === 0) return pick(["1", '"constructor"', "null", "{}"]);
      const members = Array.from({ length: Math.floor(random.next() * 4) }, () => value(depth - 1));
      if (random.next() < 0.3) return `[${members.join()}]`;
      return `{${members.map((member) => `${pick(NAMES)}:${member}`).join()}}`;
    };
    for (let round = 0; round < 500; round++) {
      const text = value(4);
      expect(JSON.stringify(parseJson(text)), text).toBe(JSON.stringify(byReviver(text)));
    }
  });
});

test("a text that begins with thousands of blanks is no JSON, and its blanks are not counted", () => {
  expect(looksLikeJson(`${" ".repeat(4_096)}{}`)).toBe(true);
  expect(looksLikeJson(`${" ".repeat(4_097)}{}`)).toBe(false);
});
