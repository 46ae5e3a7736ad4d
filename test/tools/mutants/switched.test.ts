import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { mutationsOf } from "./mutations.ts";
import { SWITCH, switched } from "./switched.ts";

/** Results of a function with this body: as it is, and then with each of its changes. */
function results(body: string): readonly unknown[] {
  const source = `function f() { ${body} }`;
  const changes = mutationsOf(source).map((mutation, at) => ({ number: at + 1, mutation }));
  const text = `${switched(source, changes)} f();`;
  return [0, ...changes.map(({ number }) => number)].map((on) =>
    runInNewContext(text, { [SWITCH]: (number: number) => number === on }),
  );
}

describe("a source with switches", () => {
  it("behaves as it is while none is on, and makes one change while its number is on", () => {
    expect(results("return 1 < 1;")).toEqual([false, true]);
    expect(results("if (2 === 2) return 'yes'; return 'no';")).toEqual(["yes", "no", "yes", "no"]);
  });

  it("makes changes inside one another", () => {
    // The literal, one side, the other side, the comparison.
    expect(results("return true && 1 === 1;")).toEqual([true, false, true, true, false]);
    // The whole, a literal, one side, the other side, the negation inside, its literal.
    expect(results("return !(false || !true);")).toEqual([true, false, false, true, true, false, false]);
  });

  it("leaves out a statement, also one that has no braces", () => {
    const body = "const said = []; if (said) said.push(1); else said.push(2); return said.join();";
    expect(results(body)).toEqual(["1", "2", "1", "", "1"]);
  });
});
