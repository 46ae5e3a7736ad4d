import { expect, test } from "vitest";
import { memberOf, setMember } from "./members.ts";

test("members are those that were set, whatever they are called", () => {
  const members: Record<string, number> = {};
  for (const [at, name] of ["a", "__proto__", "constructor"].entries()) setMember(members, name, at);
  expect(Object.keys(members)).toEqual(["a", "__proto__", "constructor"]);
  expect(Object.getPrototypeOf(members)).toBe(Object.prototype);
  expect(["a", "__proto__", "constructor", "toString", "b"].map((name) => memberOf(members, name))).toEqual([
    0,
    1,
    2,
    undefined,
    undefined,
  ]);
  expect(JSON.stringify(members)).toBe('{"a":0,"__proto__":1,"constructor":2}');
});
