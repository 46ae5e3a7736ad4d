import { expect, test } from "vitest";
import { CsvReader } from "./csv.ts";

const TEXT = 'a,b\r\n"c\r\nd","e""f"\r\r\n\ng,""\n,\n"h",i "j"\r\nk,l';
const ROWS = [
  { number: 1, line: 1, values: ["a", "b"] },
  { number: 2, line: 2, values: ["c\r\nd", 'e"f'] },
  { number: 5, line: 6, values: ["g", ""] },
  { number: 7, line: 8, values: ["h", 'i "j"'] },
  { number: 8, line: 9, values: ["k", "l"] },
];

function read(pieces: readonly string[]) {
  const reader = new CsvReader(",");
  const rows = [...pieces.flatMap((piece) => reader.take(piece)), ...reader.end()];
  return rows.map(({ cells, ...row }) => ({ ...row, values: cells.map((cell) => cell?.text) }));
}

test("rows and their lines are the same wherever a text is cut, whatever ends its lines", () => {
  expect(read([TEXT])).toEqual(ROWS);
  for (let at = 0; at <= TEXT.length; at += 1)
    expect(read([TEXT.slice(0, at), TEXT.slice(at)]), `cut at ${at}`).toEqual(ROWS);
  expect(read(TEXT.split(""))).toEqual(ROWS);
});

test("a value of no characters is none, and in quotes an empty text", () => {
  expect(read(['a,,""'])).toEqual([{ number: 1, line: 1, values: ["a", undefined, ""] }]);
});

test("nothing is read behind a row that is broken", () => {
  expect(read(['a\n"b"c\nd\n'])).toEqual([
    { number: 1, line: 1, values: ["a"] },
    {
      number: 2,
      line: 2,
      values: [],
      fault: expect.stringContaining("value 1: text follows its closing quote") as string,
    },
  ]);
});
