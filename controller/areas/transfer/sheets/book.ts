import { AppError } from "../../../../common/errors.ts";
import { SHEET_SHARED_MAX_CHARACTERS } from "../../../../common/limits.ts";
import type { Archive } from "./archive.ts";
import { attributeOf, CellText, textOfCell } from "../../../../common/text/markup.ts";

export interface SheetName {
  readonly name: string;
  readonly part: string;
}

/** The sheets of a workbook, and the tables to which their cells refer. */
export interface Book {
  /** Sheets in the order of the workbook. */
  readonly sheets: readonly SheetName[];
  /** Texts that cells refer to by index. */
  readonly shared: readonly string[];
  /** Indexes of the cell styles that show a number as a time. */
  readonly timeStyles: ReadonlySet<number>;
  /** True if day numbers count from 1904; false if they count from 1900. */
  readonly is1904: boolean;
}

export async function bookOf(archive: Archive): Promise<Book> {
  const targets = new Map<string, string>();
  for await (const { attributes } of tags(archive, "xl/_rels/workbook.xml.rels", ["Relationship"])) {
    const target = attributeOf(attributes, "Target") ?? "";
    targets.set(attributeOf(attributes, "Id") ?? "", target.startsWith("/") ? target.slice(1) : `xl/${target}`);
  }
  const sheets: SheetName[] = [];
  let is1904 = false;
  for await (const { name, attributes } of tags(archive, "xl/workbook.xml", ["sheet", "workbookPr"])) {
    if (name === "workbookPr") is1904 = ["1", "true"].includes(attributeOf(attributes, "date1904") ?? "");
    const part = targets.get(attributeOf(attributes, "r:id") ?? attributeOf(attributes, "id") ?? "");
    if (name === "sheet" && part !== undefined) sheets.push({ name: attributeOf(attributes, "name") ?? "", part });
  }
  return { sheets, is1904, shared: await sharedTexts(archive), timeStyles: await timeStyles(archive) };
}

async function sharedTexts(archive: Archive): Promise<readonly string[]> {
  const part = "xl/sharedStrings.xml";
  if (!archive.has(part)) return [];
  const texts: string[] = [];
  const reader = new CellText();
  let characters = 0;
  for await (const some of archive.read(part)) {
    for (const markup of some) {
      if (markup.kind === "open" && markup.name === "si") reader.begin();
      reader.take(markup);
      if (markup.kind !== "close" || markup.name !== "si") continue;
      characters += reader.text.length;
      if (characters > SHEET_SHARED_MAX_CHARACTERS)
        throw new AppError(
          "too_large",
          `[Format] The spreadsheet shares more than ${SHEET_SHARED_MAX_CHARACTERS} characters of text.`,
          { details: { limit: "SHEET_SHARED_MAX_CHARACTERS" } },
        );
      texts.push(textOfCell(reader.text));
    }
  }
  return texts;
}

/** Ids of built-in number formats for dates and times (ECMA-376 part 1, 18.8.30). */
const TIME_FORMATS: readonly (readonly [first: number, last: number])[] = [
  [14, 22],
  [27, 36],
  [45, 47],
  [50, 58],
];

async function timeStyles(archive: Archive): Promise<ReadonlySet<number>> {
  const part = "xl/styles.xml";
  const styles = new Set<number>();
  if (!archive.has(part)) return styles;
  const formats = new Map<number, boolean>();
  let next = 0;
  let isInCells = false;
  for await (const some of archive.read(part)) {
    for (const markup of some) {
      if (markup.kind === "text") continue;
      if (markup.name === "cellXfs") isInCells = markup.kind === "open";
      if (markup.kind === "close") continue;
      const format = Number(attributeOf(markup.attributes, "numFmtId") ?? "0");
      if (markup.name === "numFmt")
        formats.set(format, isTimeFormat(attributeOf(markup.attributes, "formatCode") ?? ""));
      if (markup.name !== "xf" || !isInCells) continue;
      if (formats.get(format) ?? TIME_FORMATS.some(([first, last]) => format >= first && format <= last))
        styles.add(next);
      next += 1;
    }
  }
  return styles;
}

/**
 * True if a custom format shows a time: it has letters for date or time outside of quotes, escaped characters and
 * brackets.
 */
function isTimeFormat(code: string): boolean {
  return /[ymdhs]/i.test(code.replace(/"[^"]*"|\\.|_.|\*.|\[[^\]]*\]/g, "").replace(/general/gi, ""));
}

interface Tag {
  readonly name: string;
  readonly attributes: string;
}

async function* tags(archive: Archive, part: string, names: readonly string[]): AsyncGenerator<Tag> {
  for await (const some of archive.read(part)) {
    for (const markup of some) if (markup.kind === "open" && names.includes(markup.name)) yield markup;
  }
}
