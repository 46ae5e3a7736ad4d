import { AppError } from "../../../../common/errors.ts";
import { SHEET_COLUMNS_MAX, SHEET_ROW_MAX_CHARACTERS, SHEET_ROWS_MAX } from "../../../../common/limits.ts";
import type { Archive } from "./archive.ts";
import type { Book, SheetName } from "./book.ts";
import { attributeOf, CellText, textOfCell, type Markup } from "../../../../common/text/markup.ts";
import { letters } from "./names.ts";

export interface SheetCell {
  readonly text: string;
  /** True for a number. In a column of times, the number may count days. */
  readonly isNumber: boolean;
  /** True for a number that the sheet shows as a time. */
  readonly isTime: boolean;
  /** Reason why the content is not a value, such as a formula or an error. */
  readonly fault?: string;
}

export interface SheetRow {
  /** Number of the row, from 1. */
  readonly number: number;
  /** Cells by column, from 0; cells without content are missing. */
  readonly cells: ReadonlyMap<number, SheetCell>;
}

/** The rows of a sheet, one after the other. Formulas are not evaluated, so a formula is a fault of its cell. */
export async function* rowsOf(archive: Archive, sheet: SheetName, book: Book): AsyncGenerator<SheetRow> {
  const reader = new RowReader(sheet.name, book);
  for await (const some of archive.read(sheet.part)) {
    for (const markup of some) {
      const row = reader.take(markup);
      if (row) yield row;
    }
  }
}

class RowReader {
  readonly #sheet: string;
  readonly #book: Book;
  readonly #text = new CellText();
  #number = 0;
  #cells = new Map<number, SheetCell>();
  #column = -1;
  #type = "n";
  #style = 0;
  #hasContent = false;
  #isFormula = false;
  #characters = 0;

  constructor(sheet: string, book: Book) {
    this.#sheet = sheet;
    this.#book = book;
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
    else if (name === "f") this.#isFormula = true;
    else if (name === "v" || name === "is") this.#hasContent = true;
  }

  #openRow(attributes: string): void {
    const number = Number(attributeOf(attributes, "r") ?? this.#number + 1);
    if (!(Number.isInteger(number) && number > this.#number && number <= SHEET_ROWS_MAX))
      throw this.#fault("the numbers of the rows are not in order");
    this.#number = number;
    this.#cells = new Map();
    this.#column = -1;
    this.#characters = 0;
  }

  #openCell(attributes: string): void {
    const place = /^([A-Z]+)/.exec(attributeOf(attributes, "r") ?? "")?.[1];
    const column = place === undefined ? this.#column + 1 : columnOf(place);
    if (!(column > this.#column && column < SHEET_COLUMNS_MAX))
      throw this.#fault("the cells of a row are not in order");
    this.#column = column;
    this.#type = attributeOf(attributes, "t") ?? "n";
    this.#style = Number(attributeOf(attributes, "s") ?? "0");
    this.#hasContent = false;
    this.#isFormula = false;
    this.#text.begin();
  }

  #closeCell(): void {
    const { text } = this.#text;
    const fault = this.#contentFault(text);
    const isNumber = this.#type === "n";
    if (fault === undefined && (!this.#hasContent || (isNumber && text === ""))) return;
    const isTime = isNumber && this.#book.timeStyles.has(this.#style);
    const read = fault === undefined ? { text: this.#value(text) } : { text, fault };
    this.#cells.set(this.#column, { ...read, isNumber, isTime });
    // Count the characters for each cell, because many cells may refer to one long text.
    this.#characters += read.text.length;
    if (this.#characters > SHEET_ROW_MAX_CHARACTERS)
      throw this.#fault(`its row has more than ${SHEET_ROW_MAX_CHARACTERS} characters`, "SHEET_ROW_MAX_CHARACTERS");
  }

  #contentFault(text: string): string | undefined {
    if (this.#isFormula) return "a formula is not taken in: put its value there";
    return this.#type === "e" && this.#hasContent ? `the error ${text} is no value` : undefined;
  }

  #value(text: string): string {
    if (this.#type === "b") return text === "1" ? "true" : "false";
    if (this.#type !== "s") return textOfCell(text);
    const shared = this.#book.shared[Number(text)];
    if (shared === undefined) throw this.#fault("the text of a cell is missing");
    return shared;
  }

  #fault(what: string, limit?: string): AppError {
    return new AppError(
      limit === undefined ? "invalid" : "too_large",
      `sheet ${this.#sheet} cell ${letters(Math.max(0, this.#column))}${this.#number}: [Format] ${what}.`,
      limit === undefined ? {} : { details: { limit } },
    );
  }
}

function columnOf(place: string): number {
  let column = 0;
  for (const letter of place.slice(0, 8)) column = column * 26 + letter.charCodeAt(0) - 64;
  return column - 1;
}
