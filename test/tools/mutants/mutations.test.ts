import { describe, expect, it } from "vitest";
import { mutated, mutationsOf } from "./mutations.ts";

function variants(source: string): readonly string[] {
  return mutationsOf(source).map((mutation) => mutated(source, mutation));
}

describe("changes that a near test should notice", () => {
  it("take a guard away, and let it always hold", () => {
    expect(variants("if (a) return;")).toEqual(["if (false) return;", "if (true) return;"]);
  });

  it("leave one side of a condition", () => {
    expect(variants("const x = a && !b;")).toEqual(["const x = (a);", "const x = (!b);", "const x = a && b;"]);
  });

  it("leave out what is spread, but do not spread what is undefined", () => {
    expect(variants("const x = { ...(a && { a }) };")).toEqual(["const x = { ...((a)) };"]);
  });

  it("move a bound by one and turn a comparison round", () => {
    expect(variants("const x = a < b;")).toEqual(["const x = a <= b;"]);
    expect(variants("const x = a === b;")).toEqual(["const x = a !== b;"]);
  });

  it("leave out a call made for its effect, but no log line", () => {
    expect(variants("await this.file.sync();")).toEqual([";"]);
    expect(variants("this.#log.warn('x');")).toEqual([]);
  });

  it("turn truth values, not types", () => {
    expect(variants("const x: true | false = true;")).toEqual(["const x: true | false = false;"]);
  });

  it("tell the line", () => {
    const around = { start: 2, end: 10, isStatement: true, isAtLoad: true };
    expect(mutationsOf("\n\nstart();")).toEqual([
      { start: 2, end: 10, text: ";", line: 3, before: "start();", after: ";", around },
    ]);
  });

  it("tell which code runs once, when its file is loaded", () => {
    const atLoad = (source: string) => mutationsOf(source).map(({ around }) => around.isAtLoad);
    expect(atLoad("const A = b === c; class D { static e = true; }")).toEqual([true, true]);
    expect(atLoad("const a = () => b === c; class D { e = true; f() { return true; } }")).toEqual([
      false,
      false,
      false,
    ]);
  });
});
