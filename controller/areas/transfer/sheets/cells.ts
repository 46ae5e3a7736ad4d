import { AppError } from "../../../../common/errors.ts";
import { SHEET_COLUMNS_MAX, SHEET_ROWS_MAX, SHEET_SHARED_MAX_CHARACTERS } from "../../../../common/limits.ts";
import type { Archive } from "./archive.ts";
import { attributeOf, textOfCell, type Markup } from "./markup.ts";
import { letters } from "./names.ts";

export interface SheetCell {
  readonly text: string;
  /** A number as such: where a time is meant it is days since 1900. */
  readonly isNumber: boolean;
}

export interface SheetRow {
  /** From 1. */
  readonly number: number;
  /** By column from 0; cells without a content are left out. */
  readonly cells: ReadonlyMap<number, SheetCell>;
}

export interface SheetName {
  readonly name: string;
  readonly part: string;
}

/** In the order of the workbook. */
export async function sheetsOf(archive: Archive): Promise<readonly SheetName[]> {
  const targets = new Map<string, string>();
  for await (const tag of tags(archive, "xl/_rels/workbook.xml.rels", "Relationship")) {
    const target = attributeOf(tag, "Target") ?? "";
    targets.set(attributeOf(tag, "Id") ?? "", target.startsWith("/") ? target.slice(1) : `xl/${target}`);
  }
  const sheets: SheetName[] = [];
  for await (const tag of tags(archive, "xl/workbook.xml", "sheet")) {
    const part = targets.get(attributeOf(tag, "r:id") ?? attributeOf(tag, "id") ?? "");
    if (part !== undefined) sheets.push({ name: attributeOf(tag, "name") ?? "", part });
  }
  return sheets;
}

/** Texts that cells refer to by number. */
export async function sharedTexts(archive: Archive): Promise<readonly string[]> {
  const part = "xl/sharedStrings.xml";
  if (!archive.has(part)) return [];
  const texts: string[] = [];
  const reader = new TextReader();
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
        );
      texts.push(textOfCell(reader.text));
    }
  }
  return texts;
}

/** The rows of a sheet as they come. A formula is refused: it is not evaluated here. */
export async function* rowsOf(archive: Archive, sheet: SheetName, shared: readonly string[]): AsyncGenerator<SheetRow> {
  const reader = new RowReader(sheet.name, shared);
  for await (const some of archive.read(sheet.part)) {
    for (const markup of some) {
      const row = reader.take(markup);
      if (row) yield row;
    }
  }
}

/** The texts of `t` inside an element, without those that give the pronunciation. */
class TextReader {
  text = "";
  #isText = false;
  #phonetic = false;

  begin(): void {
    this.text = "";
  }

  take(markup: Markup): void {
    if (markup.kind === "text") {
      if (this.#isText && !this.#phonetic) this.text += markup.text;
    } else if (markup.name === "rPh") this.#phonetic = markup.kind === "open";
    else if (markup.name === "t" || markup.name === "v") this.#isText = markup.kind === "open";
  }
}

class RowReader {
  readonly #sheet: string;
  readonly #shared: readonly string[];
  readonly #text = new TextReader();
  #number = 0;
  #cells = new Map<number, SheetCell>();
  #column = -1;
  #type = "n";
  #hasContent = false;

  constructor(sheet: string, shared: readonly string[]) {
    this.#sheet = sheet;
    this.#shared = shared;
  }

  take(markup: Markup): SheetRow | undefined {
    if (markup.kind === "open") this.#open(markup.name, markup.attributes);
    this.#text.take(markup);
    if (markup.kind !== "close") return undefined;
    if (markup.name === "c") this.#closeCell();
    return markup.name === "row" ? { number: this.#number, cells: this.#cells } : undefined;
  }

  #open(name: string, attributes: string): void {
    if (name === "row") this.#openRow(attributes);
    else if (name === "c") this.#openCell(attributes);
    else if (name === "f") throw this.#fault("a formula is not taken in: put its value there");
    else if (name === "v" || name === "is") this.#hasContent = true;
  }

  #openRow(attributes: string): void {
    const number = Number(attributeOf(attributes, "r") ?? this.#number + 1);
    if (!(Number.isInteger(number) && number > this.#number && number <= SHEET_ROWS_MAX))
      throw this.#fault("the numbers of the rows are not in order");
    this.#number = number;
    this.#cells = new Map();
    this.#column = -1;
  }

  #openCell(attributes: string): void {
    const place = /^([A-Z]+)/.exec(attributeOf(attributes, "r") ?? "")?.[1];
    const column = place === undefined ? this.#column + 1 : columnOf(place);
    if (!(column > this.#column && column < SHEET_COLUMNS_MAX))
      throw this.#fault("the cells of a row are not in order");
    this.#column = column;
    this.#type = attributeOf(attributes, "t") ?? "n";
    this.#hasContent = false;
    this.#text.begin();
  }

  #closeCell(): void {
    if (!this.#hasContent) return;
    const { text } = this.#text;
    if (this.#type === "e") throw this.#fault(`the error ${text} is no value`);
    if (this.#type === "n" && text === "") return;
    this.#cells.set(this.#column, { text: this.#value(text), isNumber: this.#type === "n" });
  }

  #value(text: string): string {
    if (this.#type === "b") return text === "1" ? "true" : "false";
    if (this.#type !== "s") return textOfCell(text);
    const shared = this.#shared[Number(text)];
    if (shared === undefined) throw this.#fault("the text of a cell is missing");
    return shared;
  }

  #fault(what: string): AppError {
    return new AppError(
      "invalid",
      `sheet ${this.#sheet} cell ${letters(Math.max(0, this.#column))}${this.#number}: [Format] ${what}.`,
    );
  }
}

async function* tags(archive: Archive, part: string, name: string): AsyncGenerator<string> {
  for await (const some of archive.read(part)) {
    for (const markup of some) if (markup.kind === "open" && markup.name === name) yield markup.attributes;
  }
}

function columnOf(place: string): number {
  let column = 0;
  for (const letter of place.slice(0, 8)) column = column * 26 + letter.charCodeAt(0) - 64;
  return column - 1;
}
