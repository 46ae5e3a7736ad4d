import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { LAYOUT_LETTERS, layoutOf, readTime, UTC } from "./index.ts";

const PAGE = readFileSync("deploy/docs/times.md", "utf8");
const CONTEXT = { zone: UTC, nearMs: Date.parse("2026-11-29T12:00:00Z") };

/** Rows of the tables with this head, without the marks of code. */
function rowsOf(head: string): readonly (readonly string[])[] {
  const lines = PAGE.split("\n");
  const from = lines.indexOf(head) + 2;
  expect(from, head).toBeGreaterThan(2);
  const end = lines.findIndex((line, at) => at > from && !line.startsWith("|"));
  return lines.slice(from, end).map((line) =>
    line
      .slice(2, -2)
      .split(" | ")
      .map((cell) => cell.replace(/^`(.*)`$/, "$1")),
  );
}

function read(text: string, layouts: readonly string[] = []): string {
  const time = readTime(text, { layouts: layouts.map(layoutOf) }, CONTEXT);
  return typeof time === "number" ? new Date(time).toISOString() : time.reason;
}

test.each(rowsOf("| Written by | Text | Read as |"))("%s writes %s", (_program, text = "", time) => {
  expect(read(text)).toBe(time);
});

test.each(rowsOf("| Refused | Why |"))("%s is refused", (text = "", reason) => {
  expect(read(text)).toBe(reason);
});

test.each(rowsOf("| Layout | Text | Read as |"))("%s reads %s", (layout = "", text = "", time) => {
  expect(read(text, [layout])).toBe(time);
});

/** Layouts that some letters need beside them, with a text for each, by the first letter. */
const BESIDE: Readonly<Record<string, readonly [layout: string, text: string]>> = {
  d: ["M-", "1-"],
  Y: ["ww-", "48-"],
  w: ["YYYY-", "2026-"],
  e: ["YYYY-ww-", "2026-48-"],
  h: ["a-", "AM-"],
  a: ["h-", "1-"],
  m: ["H-", "1-"],
  s: ["H-m-", "1-1-"],
  S: ["H-m-s-", "1-1-1-"],
  f: ["H-m-s-", "1-1-1-"],
};
const FRACTIONS = Array.from({ length: 9 }, (_, at) => "S".repeat(at + 1));

test("every letter of a layout is listed, with an example that it reads", () => {
  const rows = rowsOf("| Letters | Read | Example |").map(([cell = "", , example = ""]): [string[], string] => [
    cell.startsWith("S` to") ? FRACTIONS : [cell],
    example,
  ]);
  expect(rows.flatMap(([letters]) => letters).sort()).toEqual([...LAYOUT_LETTERS].sort());
  for (const [letters, example] of rows) {
    const one = letters.find(({ length }) => letters.length === 1 || length === example.length) ?? "";
    const [layout, text] = BESIDE[one.slice(0, 1)] ?? ["", ""];
    expect(layoutOf(layout + one).read(text + example), `${one} ${example}`).not.toHaveProperty("reason");
  }
});
