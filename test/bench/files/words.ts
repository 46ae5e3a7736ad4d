import { buffer } from "node:stream/consumers";
import { zipStream } from "../../../controller/archives/zip-writing.ts";
import { pdfPages } from "../../helpers/runs/pdf.ts";
import { seededRandom } from "../../helpers/time/clock.ts";

const VOCABULARY = 20_000;
const WORDS_PER_LINE = 12;
const LINES_PER_PAGE = 40;
const random = seededRandom(29);

/** A random word. Few words are frequent, most are rare. */
export function word(): string {
  return wordOf(Math.floor(VOCABULARY ** random.next()));
}

function wordOf(rank: number): string {
  return `${((rank * 7_919) % 46_656).toString(36).padStart(3, "x")}${rank}`;
}

/** Lines of random words with at least that many characters together. */
export function lines(characters: number): readonly string[] {
  const made: string[] = [];
  for (let length = 0; length < characters; ) {
    const line = Array.from({ length: WORDS_PER_LINE }, word).join(" ");
    made.push(line);
    length += line.length + 1;
  }
  return made;
}

/** Documents of the formats that are searched, with as many characters of text in each. */
export async function documents(characters: number): Promise<ReadonlyMap<string, Buffer>> {
  const text = lines(characters);
  return new Map([
    ["txt", Buffer.from(text.join("\n"))],
    ["docx", await packed({ "word/document.xml": docxOf(text) })],
    ["xlsx", await packed(xlsxOf(text))],
    ["pdf", pdfOf(text)],
  ]);
}

function packed(parts: Readonly<Record<string, string>>): Promise<Buffer> {
  const modified = new Date(2024, 0, 1);
  const files = Object.entries(parts).map(([path, xml]) => ({ path, modified, content: { open: () => [xml] } }));
  return buffer(zipStream(files));
}

function docxOf(text: readonly string[]): string {
  const paragraphs = text.map((line) => `<w:p><w:r><w:t>${line}</w:t></w:r></w:p>`).join("");
  return `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>${paragraphs}</w:body></w:document>`;
}

/** Each line is a row, each word a cell of its own text. */
function xlsxOf(text: readonly string[]): Readonly<Record<string, string>> {
  const rows = text.map((line, at) => {
    const cell = (one: string, column: number): string =>
      `<c r="${String.fromCharCode(65 + column)}${at + 1}" t="inlineStr"><is><t>${one}</t></is></c>`;
    return `<row r="${at + 1}">${line.split(" ").map(cell).join("")}</row>`;
  });
  return {
    "xl/workbook.xml": '<workbook><sheets><sheet name="Words" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels":
      '<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/></Relationships>',
    "xl/worksheets/sheet1.xml": `<worksheet><sheetData>${rows.join("")}</sheetData></worksheet>`,
  };
}

function pdfOf(text: readonly string[]): Buffer {
  const pages: string[] = [];
  for (let at = 0; at < text.length; at += LINES_PER_PAGE) {
    const shown = text.slice(at, at + LINES_PER_PAGE).map((line) => `(${line}) Tj 0 -18 Td`);
    pages.push(`BT /F1 12 Tf 50 780 Td ${shown.join(" ")} ET`);
  }
  return pdfPages(pages);
}
