import type { OutputFile } from "esbuild";
import { expect, test } from "vitest";
import { PARAMETERS, partsOf } from "./parts.ts";

function partOf(text: string): string {
  const file = { path: "/out/a-1.js", text } as OutputFile;
  return partsOf([file])["./a-1.js"] ?? "";
}

/** Runs a part whose imports are these. */
function exportsOf(text: string, modules: Readonly<Record<string, object>>): Readonly<Record<string, unknown>> {
  // oxlint-disable-next-line typescript/no-implied-eval -- Parts are texts.
  const run = new Function(...PARAMETERS, partOf(text)) as (...words: unknown[]) => Record<string, unknown>;
  return run(
    (name: string) => modules[name],
    (name: string) => `later ${name}`,
  );
}

test("a part gets what it imports, and returns what it exports", () => {
  const text =
    'import{a,b as c}from"./b-2.js";import"./c-3.js";var d=a+c;import{once as once2}from"node:events";' +
    'var e=()=>import("./d-4.js"),f=()=>import("node:fs");export{d,once2 as once,e as default,f};\n';
  const found = exportsOf(text, { "./b-2.js": { a: 1, b: 2 }, "node:events": { once: "once" } });
  expect(found).toMatchObject({ d: 3, once: "once" });
  const later = found as { readonly default: () => string; readonly f: () => string };
  expect([later.default(), later.f()]).toEqual(["later ./d-4.js", "later node:fs"]);
});

test.each(['import*as a from"node:fs";', 'import a from"ws";', "var a=import.meta.url;", 'export*from"./b-2.js";a()'])(
  "the build fails for a form that it does not know: %s",
  (text) => {
    expect(() => partOf(text)).toThrow("The form of the part ./a-1.js is not known.");
  },
);
