import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as limits from "../../common/limits.ts";

const PAGE = "deploy/docs/scripts.md";
const BOUNDS = 21;

test("the page for authors states the bounds as they are", () => {
  const stated = [...readFileSync(PAGE, "utf8").matchAll(/^\| `([\w.]+)` \| ([\d,]+) \|/gm)];
  const known = limits as unknown as Readonly<Record<string, unknown>>;
  for (const [, path = "", value = ""] of stated) {
    const [name = "", language] = path.split(".");
    const bound = language === undefined ? known[name] : (known[name] as Readonly<Record<string, number>>)[language];
    expect([path, bound]).toEqual([path, Number(value.replaceAll(",", ""))]);
  }
  expect(stated).toHaveLength(BOUNDS);
});
