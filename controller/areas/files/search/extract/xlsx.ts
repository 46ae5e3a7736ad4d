import { AppError } from "../../../../../common/errors.ts";
import {
  FILE_LINE_MAX_CHARACTERS,
  FILE_SHARED_TEXTS_MAX,
  FILE_SHARED_TEXTS_MAX_CHARACTERS,
} from "../../../../../common/limits.ts";
import { attributeOf, CellText, textOfCell, type Markup } from "../../../../../common/text/markup.ts";
import type { DocumentParts } from "./parts.ts";
import type { PassageCutter } from "./passages.ts";

export const XLSX_PART = "xl/workbook.xml";
const SHARED_PART = "xl/sharedStrings.xml";
const RELATIONS_PART = "xl/_rels/workbook.xml.rels";

/** Adds the sheets of an xlsx in their order: the name of each as a line, then its rows, whose cells are divided by tabs. */
export async function addXlsxLines(parts: DocumentParts, into: PassageCutter): Promise<void> {
  const shared = await sharedTexts(parts);
  const reader = new RowReader(shared, into);
  for (const { name, part } of await sheetsOf(parts)) {
    reader.beginSheet(name);
    for await (const some of parts.read(part)) {
      for (const markup of some) reader.take(markup);
      if (into.isFull) return;
    }
  }
}

interface Sheet {
  readonly name: string;
  readonly part: string;
}

async function sheetsOf(parts: DocumentParts): Promise<readonly Sheet[]> {
  const targets = new Map<string, string>();
  for await (const attributes of tagsOf(parts, RELATIONS_PART, "Relationship")) {
    const target = attributeOf(attributes, "Target") ?? "";
    targets.set(attributeOf(attributes, "Id") ?? "", target.startsWith("/") ? target.slice(1) : `xl/${target}`);
  }
  const sheets: Sheet[] = [];
  for await (const attributes of tagsOf(parts, XLSX_PART, "sheet")) {
    const part = targets.get(attributeOf(attributes, "r:id") ?? attributeOf(attributes, "id") ?? "");
    if (part !== undefined) sheets.push({ name: attributeOf(attributes, "name") ?? "", part });
  }
  return sheets;
}

async function* tagsOf(parts: DocumentParts, part: string, name: string): AsyncGenerator<string> {
  for await (const some of parts.read(part)) {
    for (const markup of some) if (markup.kind === "open" && markup.name === name) yield markup.attributes;
  }
}

async function sharedTexts(parts: DocumentParts): Promise<readonly string[]> {
  const texts: string[] = [];
  const cell = new CellText();
  let characters = 0;
  for await (const some of parts.read(SHARED_PART)) {
    for (const markup of some) {
      if (markup.kind === "open" && markup.name === "si") cell.begin();
      cell.take(markup);
      if (markup.kind !== "close" || markup.name !== "si") continue;
      characters += cell.text.length;
      if (texts.length >= FILE_SHARED_TEXTS_MAX || characters > FILE_SHARED_TEXTS_MAX_CHARACTERS)
        throw new AppError(
          "too_large",
          `The spreadsheet shares more than ${FILE_SHARED_TEXTS_MAX} texts, or ${FILE_SHARED_TEXTS_MAX_CHARACTERS} characters of them.`,
        );
      texts.push(textOfCell(cell.text));
    }
  }
  return texts;
}

class RowReader {
  readonly #shared: readonly string[];
  readonly #into: PassageCutter;
  readonly #cell = new CellText();
  #type = "n";
  #line = "";
  #number = 0;

  constructor(shared: readonly string[], into: PassageCutter) {
    this.#shared = shared;
    this.#into = into;
  }

  beginSheet(name: string): void {
    this.#number += 1;
    this.#into.addLine(name, this.#number);
  }

  take(markup: Markup): void {
    if (markup.kind === "open" && markup.name === "c") {
      this.#type = attributeOf(markup.attributes, "t") ?? "n";
      this.#cell.begin();
    }
    this.#cell.take(markup);
    if (markup.kind !== "close") return;
    if (markup.name === "c") this.#addCell();
    else if (markup.name === "row") this.#endRow();
  }

  #addCell(): void {
    const { text } = this.#cell;
    const value = this.#type === "s" ? (this.#shared[Number(text)] ?? "") : textOfCell(text);
    if (value === "") return;
    this.#line += this.#line === "" ? value : `\t${value}`;
    // Many cells may refer to one long text.
    if (this.#line.length <= FILE_LINE_MAX_CHARACTERS) return;
    this.#into.addLine(this.#line, this.#number + 1);
    this.#line = "";
  }

  #endRow(): void {
    this.#number += 1;
    this.#into.addLine(this.#line, this.#number);
    this.#line = "";
  }
}
