import type { Readable } from "node:stream";
import { AppError } from "../../../../common/errors.ts";
import { EXPORT_PIECE_CHARACTERS, SHEET_NAME_MAX_CHARACTERS, SHEET_ROWS_MAX } from "../../../../common/limits.ts";
import { cellText } from "../../../../common/text/markup.ts";
import { zipStream, type ZipPart, type ZipPartContent } from "../../../archives/zip-writing.ts";
import { letters } from "./names.ts";

/** Content of a cell. A text is always written as text, so it never becomes a formula. */
export type Cell = string | number | boolean | undefined;

export interface SheetContent {
  /** Preferred name of the sheet. It is shortened and made unique in the workbook. */
  readonly name: string;
  rows(): AsyncIterable<readonly Cell[]>;
}

const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships";
const OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const CONTENT = "application/vnd.openxmlformats-officedocument.spreadsheetml";
/** Maximum number of characters of a sheet name. The limit is in UTF-16 units, and a character has up to two. */
const NAME_CHARACTERS = Math.floor(SHEET_NAME_MAX_CHARACTERS / 2);
/** Metadata of each part of the file. It is constant, so that the same content gives the same bytes. */
const PART = { modified: new Date(2000, 0, 1), isPlainTime: true };

/** A workbook as a stream. Writes one sheet after the other and holds one piece at a time in memory. */
export function workbookBytes(sheets: readonly SheetContent[]): Readable {
  const part = (path: string, open: ZipPartContent["open"]): ZipPart => ({ path, ...PART, content: { open } });
  const text = (path: string, xml: string): ZipPart => part(path, () => [HEAD + xml]);
  return zipStream([
    text("[Content_Types].xml", contentTypes(sheets.length)),
    text(
      "_rels/.rels",
      `<Relationships xmlns="${RELATIONS}"><Relationship Id="rId1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
    ),
    text("xl/workbook.xml", workbook(sheetNames(sheets))),
    text("xl/_rels/workbook.xml.rels", workbookRelations(sheets.length)),
    ...sheets.map((sheet, at) => part(`xl/worksheets/sheet${at + 1}.xml`, () => sheetXml(sheet))),
  ]);
}

function contentTypes(count: number): string {
  const sheets = numbered(
    count,
    (n) => `<Override PartName="/xl/worksheets/sheet${n}.xml" ContentType="${CONTENT}.worksheet+xml"/>`,
  );
  const relations =
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>';
  const book = `<Override PartName="/xl/workbook.xml" ContentType="${CONTENT}.sheet.main+xml"/>`;
  return `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">${relations}${book}${sheets}</Types>`;
}

function workbook(names: readonly string[]): string {
  const sheets = names
    .map((name, at) => `<sheet name="${cellText(name)}" sheetId="${at + 1}" r:id="rId${at + 1}"/>`)
    .join("");
  return `<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheets>${sheets}</sheets></workbook>`;
}

function workbookRelations(count: number): string {
  const sheets = numbered(
    count,
    (n) => `<Relationship Id="rId${n}" Type="${OFFICE}/worksheet" Target="worksheets/sheet${n}.xml"/>`,
  );
  return `<Relationships xmlns="${RELATIONS}">${sheets}</Relationships>`;
}

function numbered(count: number, text: (n: number) => string): string {
  return Array.from({ length: count }, (_, at) => text(at + 1)).join("");
}

/** Names of the sheets: short enough, and unique if upper and lower case are ignored. */
function sheetNames(sheets: readonly SheetContent[]): readonly string[] {
  const taken = new Set<string>();
  return sheets.map(({ name }) => {
    for (let copy = 1; ; copy += 1) {
      const end = copy === 1 ? "" : ` ${copy}`;
      const unique =
        Array.from(name)
          .slice(0, NAME_CHARACTERS - end.length)
          .join("") + end;
      if (taken.has(unique.toLowerCase())) continue;
      taken.add(unique.toLowerCase());
      return unique;
    }
  });
}

async function* sheetXml(sheet: SheetContent): AsyncGenerator<string> {
  let piece = `${HEAD}<worksheet xmlns="${MAIN}"><sheetData>`;
  let number = 0;
  for await (const row of sheet.rows()) {
    number += 1;
    if (number > SHEET_ROWS_MAX)
      throw new AppError(
        "too_large",
        `[Exec] ${sheet.name} has more than the ${SHEET_ROWS_MAX} rows of a sheet: export it as mql.`,
      );
    piece += rowXml(number, row);
    if (piece.length < EXPORT_PIECE_CHARACTERS) continue;
    yield piece;
    piece = "";
  }
  yield `${piece}</sheetData></worksheet>`;
}

function rowXml(number: number, row: readonly Cell[]): string {
  const cells = row.map((cell, at) => (cell === undefined ? "" : cellXml(`${letters(at)}${number}`, cell)));
  return `<row r="${number}">${cells.join("")}</row>`;
}

function cellXml(place: string, cell: string | number | boolean): string {
  if (typeof cell === "number") return `<c r="${place}"><v>${cell}</v></c>`;
  if (typeof cell === "boolean") return `<c r="${place}" t="b"><v>${cell ? 1 : 0}</v></c>`;
  return `<c r="${place}" t="inlineStr"><is><t xml:space="preserve">${cellText(cell)}</t></is></c>`;
}
