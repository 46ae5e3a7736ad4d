import { AppError } from "../../../common/errors.ts";
import { suggestion } from "../../../common/text/nearest.ts";
import { column, isRow, rowsOf, viewOf, type Column, type Row, type View } from "./columns.ts";
import { csvOf } from "./csv.ts";
import type { Format } from "./names.ts";
import type { Paint } from "./paint.ts";
import { printable, printableJson, printableLines } from "./printable.ts";
import { sheet, table, tableTexts, type TableOptions, type TableTexts } from "./table.ts";
import type { Offsets } from "./times.ts";
import { yamlOf } from "./yaml.ts";

export interface Rendering {
  readonly format: Format;
  /** Members to show, in this order; `undefined`: those of the view, or all. */
  readonly fields?: readonly string[] | undefined;
  /** Columns of the terminal; `undefined`: the output is no terminal. */
  readonly width?: number | undefined;
  /** True: the rows are a part of a list whose fields were checked. */
  readonly isPart?: boolean;
  readonly paint: Paint;
  /** Zone of the times of tables; absent: UTC. */
  readonly zone?: Offsets;
  /** Present time, by which tables on a terminal show near times. */
  readonly nowMs?: number;
}

/** A list of things, one thing, or a text, in the wanted format. Ends with a line break. */
export function rendered(answer: unknown, rendering: Rendering, view?: View): string {
  if (Array.isArray(answer)) return renderedRows(rowsOf(answer), answer, { rendering, view });
  if (isRow(answer)) return renderedOne(answer, rendering, view);
  const { format } = rendering;
  if (format === "json") return `${printableJson(answer, 2)}\n`;
  if (format === "yaml") return yamlOf(answer);
  return `${printableLines(String(answer)).trimEnd()}\n`;
}

interface Showing {
  readonly rendering: Rendering;
  readonly view: View | undefined;
}

function renderedRows(rows: readonly Row[], answer: readonly unknown[], { rendering, view }: Showing): string {
  const { format, fields, width } = rendering;
  const headings = view?.columns ?? [];
  if (fields && rows.length > 0 && rendering.isPart !== true) requireKnown(fields, rows, headings);
  const chosen = fields ? rows.map((row) => only(row, fields, headings)) : answer;
  if (format === "json") return `${printableJson(chosen, 2)}\n`;
  if (format === "yaml") return rows.length === 0 ? "[]\n" : yamlOf(chosen);
  const { columns, name } = view ?? viewOf(rows);
  if (format === "name") return rows.map((row) => `${nameOf(row, name)}\n`).join("");
  const shown = columnsFor(columns, rendering);
  if (format === "csv") {
    const heading = shown.map((one) => one.name);
    return csvForOutput(
      csvOf(
        heading,
        rows.map((row) => shown.map(({ of }) => of(row))),
      ),
      width !== undefined,
    );
  }
  return table(rows, tableOptions(shown, rendering));
}

/** The table of a list of which these rows are the first ones. */
export function renderedTable(first: readonly Row[], rendering: Rendering, view: View): TableTexts {
  return tableTexts(first, tableOptions(columnsFor(view.columns, rendering), rendering));
}

function tableOptions(columns: readonly Column[], { format, width, paint, zone, nowMs }: Rendering): TableOptions {
  const isWide = format === "wide";
  return { columns, width, isWide, paint, zone, nowMs: isWide ? undefined : nowMs };
}

function renderedOne(row: Row, rendering: Rendering, view: View | undefined): string {
  const { format, fields, width, paint, zone } = rendering;
  const headings = view?.columns ?? [];
  if (fields) requireKnown(fields, [row], headings);
  const chosen = fields ? only(row, fields, headings) : row;
  if (format === "json") return `${printableJson(chosen, 2)}\n`;
  if (format === "yaml") return yamlOf(chosen);
  const times = new Set(view?.columns.flatMap(({ name, member = name, isTime }) => (isTime === true ? [member] : [])));
  const whole = viewOf([row], times);
  if (format === "name") return `${nameOf(row, view?.name ?? whole.name)}\n`;
  const all = fields ? [...headings, ...whole.columns] : whole.columns;
  if (format === "csv") return renderedRows([row], [row], { rendering, view: { ...whole, columns: all } });
  const columns = fields ? columnsFor(all, rendering) : all;
  return sheet(row, { columns, width, isWide: format === "wide", paint, zone });
}

/** The columns of a format: those of the fields, or those of the view. */
function columnsFor(columns: readonly Column[], { fields, format }: Rendering): readonly Column[] {
  if (fields) return fields.map((field) => columnOf(field, columns));
  return format === "table" ? columns.filter(({ isWide }) => isWide !== true) : columns;
}

function columnOf(field: string, columns: readonly Column[]): Column {
  const found = columns.find(({ name }) => name === field) ?? columns.find(({ member }) => member === field);
  return found === undefined ? column(field) : { ...found, name: field };
}

/** The fields of a row: members by their names, or columns by their headings. */
function only(row: Row, fields: readonly string[], headings: readonly Column[]): Row {
  return Object.fromEntries(
    fields.flatMap((field) => {
      if (Object.hasOwn(row, field)) return [[field, row[field]]];
      const heading = headings.find(({ name }) => name === field);
      return heading === undefined ? [] : [[field, heading.of(row)]];
    }),
  );
}

/** `AppError("invalid")` for a field that is neither a member of a row nor a heading. */
export function requireKnown(fields: readonly string[], rows: readonly Row[], headings: readonly Column[] = []): void {
  const known = new Set([...rows.flatMap((row) => Object.keys(row)), ...headings.map(({ name }) => name)]);
  const unknown = fields.find((name) => !known.has(name));
  if (unknown === undefined) return;
  const members = [...known].sort().join(", ");
  throw new AppError("invalid", `There is no field ${unknown}${suggestion(unknown, known)} Fields: ${members}.`);
}

function nameOf(row: Row, member: string): string {
  const value = row[member];
  return printable(typeof value === "string" ? value : JSON.stringify(value ?? ""));
}

/** CSV keeps the values as they are, unless a terminal would obey them. */
function csvForOutput(text: string, isTerminal: boolean): string {
  return isTerminal ? printableLines(text) : text;
}
