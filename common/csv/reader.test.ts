import Papa from "papaparse";
import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { type CsvForm, CsvReader, RFC_4180 } from "./reader.ts";

const TEXT = 'a,b\r\n"c\r\nd","e""f"\r\r\n\ng,""\n,\n"h",i "j"\r\nk,l';
const ROWS = [
  { number: 1, line: 1, values: ["a", "b"] },
  { number: 2, line: 2, values: ["c\r\nd", 'e"f'] },
  { number: 3, line: 4, values: [undefined] },
  { number: 4, line: 5, values: [undefined] },
  { number: 5, line: 6, values: ["g", ""] },
  { number: 6, line: 7, values: [undefined, undefined] },
  { number: 7, line: 8, values: ["h", 'i "j"'] },
  { number: 8, line: 9, values: ["k", "l"] },
];

/** Values of no characters without quotes are undefined. */
function read(pieces: readonly string[], form: CsvForm = RFC_4180) {
  const reader = new CsvReader(form);
  const rows = [...pieces.flatMap((piece) => reader.take(piece)), ...reader.end()];
  return rows.map(({ cells, ...row }) => ({
    ...row,
    values: cells.map(({ text, isQuoted }) => (text === "" && !isQuoted ? undefined : text)),
  }));
}

const valuesOf = (text: string, form: CsvForm) => read([text], form).map(({ values }) => values);

test("rows and their lines are the same wherever a text is cut, whatever ends its lines", () => {
  expect(read([TEXT])).toEqual(ROWS);
  for (let at = 0; at <= TEXT.length; at += 1)
    expect(read([TEXT.slice(0, at), TEXT.slice(at)]), `cut at ${at}`).toEqual(ROWS);
  expect(read(TEXT.split(""))).toEqual(ROWS);
});

test("a value of no characters is told from an empty text in quotes", () => {
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

test("separator, quote and escape are any characters, and an escape before others stays", () => {
  const form = { separator: ";", quote: "'", escape: "\\" };
  const text = "'it\\'s;';'a\\\\';'C:\\dir';\"b\"";
  const values = ["it's;", "a\\", "C:\\dir", '"b"'];
  expect(valuesOf(text, form)).toEqual([values]);
  expect(read(text.split(""), form)[0]?.values).toEqual(values);
  expect(valuesOf('a"b\t"c', { separator: "\t", quote: "", escape: "" })).toEqual([['a"b', '"c']]);
});

test("blanks behind a closing quote are a fault, or left out", () => {
  expect(read(['"a" ,b'])[0]?.fault).toContain("text follows");
  const blanks = { ...RFC_4180, allowsBlanks: true };
  expect(valuesOf('"a" ,b,"c"\t', blanks)).toEqual([["a", "b", "c"]]);
  expect(valuesOf('"" ,b', blanks)).toEqual([["", "b"]]);
  expect(read(['"a" "b",c'], blanks)[0]?.fault).toContain("text follows its closing quote");
});

test("a row has at most the characters and values of its bounds, whichever row it is", () => {
  const bounds = { characters: [4, "CHARACTERS"], cells: [2, "CELLS"] } as const;
  const taken = (text: string) => () => new CsvReader(RFC_4180, bounds).take(text).length;
  expect(taken("ab,cd\nab,cd\n")()).toBe(2);
  expect(taken("ab,cd\nab,cde\n")).toThrow("row 2: [Format] it has more than 4 characters");
  expect(taken("a,b\na,b,\n")).toThrow("row 2: [Format] it has more than 2 values");
});

test("random rows are read as papaparse reads them", () => {
  const random = seededRandom(35);
  const words = ["a", "bc", ",", ",", '"', '""', '"x"', " ", "\n", ";", "é"];
  let sound = 0;
  for (let round = 0; round < 5_000; round += 1) {
    const text = Array.from({ length: 8 }, () => words[Math.floor(random.next() * words.length)]).join("");
    const { data, errors } = Papa.parse<string[]>(text, { delimiter: ",", newline: "\n" });
    if (errors.length > 0) continue;
    sound += 1;
    const rows = read([text], { ...RFC_4180, allowsBlanks: true });
    const values = rows.map((row) => (row.fault === undefined ? row.values.map((value) => value ?? "") : row.fault));
    // A last line feed begins a row there.
    expect(values, JSON.stringify(text)).toEqual(text.endsWith("\n") ? data.slice(0, -1) : data);
  }
  expect(sound).toBeGreaterThan(1_000);
});
