import { CsvReader, type CsvRow, RFC_4180 } from "../../../../common/csv/reader.ts";
import { AppError } from "../../../../common/errors.ts";
import { SHEET_COLUMNS_MAX, SHEET_ROW_MAX_CHARACTERS } from "../../../../common/limits.ts";
import type { Encoding } from "../../../../common/text/encodings.ts";
import { Archive } from "../sheets/archive.ts";
import { bookOf, type Book, type SheetName } from "../sheets/book.ts";
import { rowsOf, type SheetCell } from "../sheets/cells.ts";
import { timeOfDays } from "../sheets/days.ts";
import { letters, unmarkedText } from "../sheets/names.ts";
import { foundDelimiter, headingLine, namedDelimiter, shownDelimiter } from "./delimiter.ts";
import { decodedFile, encodingOf, firstBytes } from "./encoding.ts";
import type { HeadedCell, HeadedRow, HeadedSheet, SheetFile, SheetRequest } from "./types.ts";

const ZIP = "504b0304";
/** First bytes of a workbook in the old format xls (before 2007). */
const OLD_WORKBOOK = "d0cf11e0";

type How = Pick<SheetRequest, "delimiter" | "encoding" | "sheet">;

/** Opens a CSV file or a sheet of a workbook. The first bytes of the file decide which one it is. */
export async function openSheet({ path }: SheetFile, how: How): Promise<HeadedSheet> {
  const kind = Buffer.from(await firstBytes(path, 4)).toString("hex");
  if (kind === OLD_WORKBOOK)
    throw new AppError("unsupported", "[Format] Workbooks in the form of xls are not read: save it as xlsx or CSV.");
  if (kind === ZIP) {
    refuse(how, ["delimiter", "encoding"], "a CSV file, and this is a workbook");
    return openWorkbook(path, how.sheet);
  }
  refuse(how, ["sheet"], "a workbook, and this is a CSV file");
  return openCsv(path, how);
}

function refuse(how: How, names: readonly (keyof How)[], of: string): void {
  const given = names.find((name) => how[name] !== undefined);
  if (given !== undefined) throw new AppError("invalid", `[Valid] ${given}= is for ${of}.`);
}

async function openCsv(path: string, how: How): Promise<HeadedSheet> {
  const encoding = await encodingOf(path, how.encoding);
  const heading = await headingOf(path, encoding);
  const delimiter = how.delimiter === undefined ? foundDelimiter(heading) : namedDelimiter(how.delimiter);
  return {
    isEven: true,
    read: { delimiter: shownDelimiter(delimiter), encoding: encoding.name },
    async *rows() {
      const reader = new CsvReader({ ...RFC_4180, separator: delimiter }, ROW_BOUNDS);
      for await (const piece of decodedFile(path, encoding)) yield* csvRows(reader.take(piece));
      yield* csvRows(reader.end());
    },
    place: csvPlace,
  };
}

const ROW_BOUNDS = {
  characters: [SHEET_ROW_MAX_CHARACTERS, "SHEET_ROW_MAX_CHARACTERS"],
  cells: [SHEET_COLUMNS_MAX, "SHEET_COLUMNS_MAX"],
} as const;

/** The rows that have a value. An empty cell has no value; an empty text in quotes is a value. */
function* csvRows(rows: readonly CsvRow[]): Generator<HeadedRow> {
  for (const { cells, ...row } of rows) {
    const headed = cells.map(({ text, isQuoted }): HeadedCell | undefined =>
      text === "" && !isQuoted ? undefined : { text, kind: "text" },
    );
    if (row.fault !== undefined || headed.some((cell) => cell !== undefined)) yield { ...row, cells: headed };
  }
}

function csvPlace({ number, line }: HeadedRow, cell?: { readonly at: number; readonly heading: string }): string {
  const row = line === undefined || line === number ? `row ${number}` : `row ${number} (line ${line})`;
  if (cell === undefined) return row;
  return cell.heading === "" ? `${row} value ${cell.at + 1}` : `${row} column ${JSON.stringify(cell.heading)}`;
}

async function headingOf(path: string, encoding: Encoding): Promise<string> {
  let text = "";
  for await (const piece of decodedFile(path, encoding)) {
    text += piece;
    const heading = headingLine(text, false);
    if (heading !== undefined) return readable(heading);
  }
  return readable(headingLine(text, true) ?? "");
}

function readable(heading: string): string {
  if (!heading.includes("\0")) return heading;
  throw new AppError(
    "invalid",
    "[Format] The heading line has characters of the code 0: name the encoding of the file by encoding=, such as utf-16le.",
  );
}

async function openWorkbook(path: string, named: string | undefined): Promise<HeadedSheet> {
  const sheet = await chosenSheet(path, named);
  return {
    isEven: false,
    read: { sheet },
    async *rows() {
      await using archive = await Archive.open(path);
      const book = await bookOf(archive);
      const chosen = book.sheets.find(({ name }) => name === sheet);
      if (chosen) yield* sheetRows(archive, chosen, book);
    },
    place: ({ number }, cell) =>
      `sheet ${sheet} ${cell === undefined ? `row ${number}` : `cell ${letters(cell.at)}${number}`}`,
  };
}

/** Name of the sheet to read: the named one, or the only one that has a row. */
async function chosenSheet(path: string, named: string | undefined): Promise<string> {
  await using archive = await Archive.open(path);
  const book = await bookOf(archive);
  const names = book.sheets.map(({ name }) => name).join(", ");
  if (named !== undefined) {
    if (book.sheets.some(({ name }) => name === named)) return named;
    throw new AppError("invalid", `[Valid] sheet=${named}: the workbook has ${names}.`);
  }
  const filled: string[] = [];
  for (const sheet of book.sheets) if (await hasRow(archive, sheet, book)) filled.push(sheet.name);
  const [only, second] = filled;
  if (only === undefined) throw new AppError("invalid", "[Format] The workbook has no row in it.");
  if (second === undefined) return only;
  throw new AppError("invalid", `[Valid] Several sheets have rows: name one of ${filled.join(", ")} by sheet=.`);
}

async function hasRow(archive: Archive, sheet: SheetName, book: Book): Promise<boolean> {
  const rows = sheetRows(archive, sheet, book);
  const { done } = await rows.next();
  await rows.return(undefined);
  return done !== true;
}

async function* sheetRows(archive: Archive, sheet: SheetName, book: Book): AsyncGenerator<HeadedRow> {
  for await (const { number, cells } of rowsOf(archive, sheet, book)) {
    const row: (HeadedCell | undefined)[] = [];
    for (const [at, cell] of cells) row[at] = headedCell(cell, book.is1904);
    if (cells.size > 0) yield { number, cells: Array.from(row) };
  }
}

function headedCell({ text, isNumber, isTime, fault }: SheetCell, is1904: boolean): HeadedCell {
  if (fault !== undefined) return { text, kind: "text", fault };
  if (!isNumber) return { text: unmarkedText(text), kind: "text" };
  if (!isTime) return { text, kind: "number" };
  const timeMs = timeOfDays(Number(text), is1904);
  const shown = timeMs === undefined ? Number.NaN : new Date(timeMs).getTime();
  if (Number.isNaN(shown)) return { text, kind: "text", fault: "it shows a time that is on no day" };
  return { text: new Date(shown).toISOString().replace("T00:00:00.000Z", ""), kind: "time" };
}
