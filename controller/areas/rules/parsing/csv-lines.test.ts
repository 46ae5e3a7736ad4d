import { expect, test, vi } from "vitest";
import { CsvReader } from "../../../../common/csv/reader.ts";
import {
  CHANGE_BATCH_MAX,
  CSV_JOINED_LINES_MAX,
  CSV_TURN_CHARACTERS,
  RECORD_MAX_BYTES,
} from "../../../../common/limits.ts";
import { joinedLines } from "./csv-lines.ts";
import { CsvRows } from "./csv.ts";

const ROWS = new CsvRows(
  {
    form: { separator: ",", quote: '"', escape: '"', allowsBlanks: true },
    hasHeader: false,
    isW3c: false,
    none: undefined,
    comment: "#",
  },
  ["a"],
);

async function joined(...pieces: readonly (readonly string[])[]): Promise<readonly string[]> {
  const made: string[] = [];
  for await (const piece of joinedLines(pieces, ROWS)) {
    expect(piece.length).toBeLessThanOrEqual(CHANGE_BATCH_MAX);
    made.push(...piece);
  }
  return made;
}

test("a value in quotes goes over lines, which keep their numbers and their ends", async () => {
  const lines = ["a,b\r", 'c,"d\r', "\r", 'e ""f""",g\r', "h,i"];
  const made = ["a,b", 'c,"d\r\n\r\ne ""f""",g', "", "", "h,i"];
  expect(await joined(lines)).toEqual(made);
  expect(await joined(...lines.map((line) => [line]))).toEqual(made);
});

test("a stray quote costs the line that has it, and no other", async () => {
  for (const lines of [
    ['a,"b', "c,d", "e,f"],
    ['a,"b', 'c,"d', "e,f"],
    ['a,"b" c', "c,d"],
    ['# "it', "a,b"],
  ])
    expect(await joined(lines)).toEqual(lines);
  expect(await joined(['a,"b', 'c,"d', 'e",f'])).toEqual(['a,"b', 'c,"d\ne",f', ""]);
});

test("lines that are too long for one turn of the event loop let others run, and are joined all the same", async () => {
  const long = "x".repeat(CSV_TURN_CHARACTERS / 4);
  const row = [`a,"${long}`, long, `${long}",b`];
  const others = vi.fn();
  setImmediate(others);
  expect(await joined([...row, ...row, "f"])).toEqual([row.join("\n"), "", "", row.join("\n"), "", "", "f"]);
  expect(others).toHaveBeenCalled();
});

test("quotes that stay open for too long are given up, and what is behind them is read", async () => {
  const filler = Array.from({ length: CSV_JOINED_LINES_MAX - 2 }, () => "x");
  const fits = ['a,"', ...filler, '"'];
  expect(await joined(fits)).toEqual([fits.join("\n"), ...filler.map(() => ""), ""]);
  const many = ['a,"', ...filler, "x", '"', 'b,"', 'c"'];
  expect(await joined(many)).toEqual([...many.slice(0, -3), '"\nb,"', "", 'c"']);
  const long = ['a,"', "x".repeat(RECORD_MAX_BYTES), '"'];
  expect(await joined(long)).toEqual(long);
});

test("lines that each leave their quotes open are read a few times each, and are rows by themselves", async () => {
  const open = '","'.repeat(60);
  const lines = Array.from({ length: 2 * CSV_JOINED_LINES_MAX }, (_, at) => (at % 7 === 3 ? "a,b" : `${at}","${open}`));
  const reads = vi.spyOn(CsvReader.prototype, "take");
  try {
    expect(await joined(lines)).toEqual(lines);
    expect(reads.mock.calls.length).toBeLessThan(4 * lines.length);
  } finally {
    reads.mockRestore();
  }
});
