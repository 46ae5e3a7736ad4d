import { AppError } from "../../../../common/errors.ts";
import {
  NOWHERE,
  parseScript,
  printStatement,
  type AlterClass,
  type ClassAlteration,
  type ClassOption,
  type ColumnDefinition,
} from "../../../../common/mql/index.ts";

/**
 * Rows at the beginning of a sheet, which holds one class. Column A names the content of each row: `class` and its
 * path; `keys`, `indexes` and `options`, one per cell; `name`, `title` and `type` of the columns, from column B on.
 * Below these rows, each row is one object, with its id in A. A column of type `relation` stands for an edge type.
 */
export const HEAD_ROWS = ["class", "keys", "indexes", "options", "name", "title", "type"] as const;
export type HeadRow = (typeof HEAD_ROWS)[number];
export const RELATION = "relation";
/** Content of cell A1 in the sheet of edge types. The rows below have the name in column A and the remark in B. */
export const EDGE_TYPES = "edge types";

const CLASS = { kind: "class", path: "/x", subtree: false, alias: undefined, span: NOWHERE } as const;

/** The column type in the syntax of `CREATE CLASS`. */
export function typeText(column: ColumnDefinition): string {
  const text = alteration({ kind: "addColumn", column: { ...column, name: "x", title: undefined }, span: NOWHERE });
  return text.slice("ADD COLUMN x ".length);
}

export function parseType(text: string): Pick<ColumnDefinition, "type" | "elements" | "details"> {
  const read = parseAlteration(`ADD COLUMN x ${text}`);
  if (read?.kind === "addColumn" && read.column.title === undefined) return read.column;
  throw new AppError("invalid", `[Format] ${JSON.stringify(text)} is no column type.`);
}

export function optionText(option: ClassOption): string {
  return alteration({ kind: "setOptions", options: [option], span: NOWHERE }).slice("SET ".length);
}

export function parseOption(text: string): ClassOption {
  const read = parseAlteration(`SET ${text}`);
  const [option, second] = read?.kind === "setOptions" ? read.options : [];
  if (option && !second) return option;
  throw new AppError("invalid", `[Format] ${JSON.stringify(text)} is no option of a class.`);
}

function alteration(changed: ClassAlteration): string {
  return printStatement({ kind: "alterClass", class: CLASS, alteration: changed, span: NOWHERE }).slice(
    `ALTER CLASS ${CLASS.path} `.length,
  );
}

function parseAlteration(text: string): AlterClass["alteration"] | undefined {
  const [first, second] = parseScript(`ALTER CLASS ${CLASS.path} ${text}`).statements;
  return first?.kind === "alterClass" && !second ? first.alteration : undefined;
}

/** Cell content for the empty text. It is needed because spreadsheet programs drop cells with an empty text. */
const EMPTY_MARK = '""';
/** Texts of two or more quotes and nothing else. They get one more quote in a cell, so that none equals the mark. */
const QUOTES = /^""+$/;

/** The cell content for a text of a column. */
export function markedText(text: string): string {
  if (text === "") return EMPTY_MARK;
  return QUOTES.test(text) ? `${text}"` : text;
}

export function unmarkedText(cell: string): string {
  if (cell === EMPTY_MARK) return "";
  return QUOTES.test(cell) ? cell.slice(1) : cell;
}

/** Letters of a column of a sheet: `A` for 0, `AA` for 26. */
export function letters(column: number): string {
  const rest = Math.floor(column / 26);
  return (rest > 0 ? letters(rest - 1) : "") + String.fromCharCode(65 + (column % 26));
}
