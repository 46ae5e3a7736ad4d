import { expect, test } from "vitest";
import { checkRows, merged, type TableRow } from "./rows.ts";

const row = (key: string | number | undefined | null, n: number): TableRow => (key === undefined ? { n } : { key, n });

test("given rows stand where the first of their key stood, all of which go, or at the end", () => {
  const rows = [row("a", 1), row("b", 2), row(undefined, 3), row("a", 4), row("c", 5)];
  expect(merged(rows, [row("a", 10), row("d", 11), row("a", 12), row(undefined, 13), row("d", 14)])).toEqual([
    row("a", 10),
    row("a", 12),
    row("b", 2),
    row(undefined, 3),
    row("c", 5),
    row("d", 11),
    row(undefined, 13),
    row("d", 14),
  ]);
});

test("a number is the key that its digits are, an empty text is a key, null is none", () => {
  expect(merged([row(5, 1), row("", 2), row(null, 3)], [row("5", 4), row("", 5), row(null, 6)])).toEqual([
    row("5", 4),
    row("", 5),
    row(null, 3),
    row(null, 6),
  ]);
  expect(merged([], [row("a", 1)])).toEqual([row("a", 1)]);
  expect(merged([row("a", 1)], [])).toEqual([row("a", 1)]);
  expect(merged([row("constructor", 1)], [row("__proto__", 2)])).toEqual([row("constructor", 1), row("__proto__", 2)]);
});

test("many rows of one key are put together in linear time", () => {
  const many = Array.from({ length: 20_000 }, (_, n) => row("same", n));
  expect(merged(many, many)).toEqual(many);
});

test("a key that is no text and no number is refused by its row", () => {
  for (const key of [true, {}, []])
    expect(() => checkRows([{ key: "a" }, {}, { key: null }, { key }])).toThrow(
      "The key of row 4 is neither a text nor a number.",
    );
});
