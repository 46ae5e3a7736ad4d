import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { withoutFirstSpread } from "./spread.ts";

test("a literal that begins with a spread and has more members begins with ...null, also inside another one", () => {
  expect(withoutFirstSpread("f({ ...a, b: { ...c, ...d } }, {\n  // Why.\n  ...e,\n  get g() { return 1; } })")).toBe(
    "f({ ...null, ...a, b: { ...null, ...c, ...d } }, {\n  // Why.\n  ...null, ...e,\n  get g() { return 1; } })",
  );
});

test("all other texts stay as they are", () => {
  const texts = [
    "const a = { ...b };",
    "const a = { b: 1, ...c };",
    "const { ...rest } = a; const { b, ...others } = a;",
    "f(...a, { b }); const c = [...a, 1];",
    "const text = '{ ...a, b }'; // { ...a, b }\nconst template = `{ ...a, b }`;",
  ];
  expect(texts.map(withoutFirstSpread)).toEqual(texts);
});

test("the value of a literal does not change", () => {
  const source =
    "(({ a, b }) => [{ ...a, x: 1 }, { ...a, ...b }, { ...undefined, y: 2 }, { ...(b && { z: 3 }), x: 4 }])";
  const parts = { a: { x: 0, w: 5 }, b: { w: 6 } };
  const made = (text: string): unknown => (eval(text) as (given: typeof parts) => unknown)(parts);
  expect(made(withoutFirstSpread(source))).toEqual(made(source));
  expect(withoutFirstSpread(source)).not.toBe(source);
});

test("objects of one literal share their hidden class", () => {
  const source = `const base = { a: 1, b: 2, c: 3 };
    const made = (n) => ({ ...base, n });
    for (let n = 0; n < 100; n += 1) made(n);
    console.log(%HaveSameMap(made(1), made(2)));`;
  // V8's test functions are not known to the parser of TypeScript.
  const text = withoutFirstSpread(source.replace("%", "")).replace("HaveSameMap", "%HaveSameMap");
  expect(execFileSync(process.execPath, ["--allow-natives-syntax", "-e", text], { encoding: "utf8" })).toBe("true\n");
});
