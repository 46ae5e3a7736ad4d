import { CLI_CELL_MAX_COLUMNS, CLI_CELL_MIN_COLUMNS, CLI_WIDE_CELL_MAX_COLUMNS } from "../../../common/limits.ts";
import type { Column, Row } from "./columns.ts";
import { UTC } from "../../../common/times/index.ts";
import { printable } from "./printable.ts";
import type { Paint } from "./paint.ts";
import { distanceText, timeText, type Offsets } from "./times.ts";
import { columnsOf, cutTo, padTo } from "./width.ts";

export interface TableOptions {
  readonly columns: readonly Column[];
  /** Columns of the terminal; `undefined`: not known, so lines may have any length. */
  readonly width?: number | undefined;
  /** True: cells are hardly cut. */
  readonly isWide: boolean;
  readonly paint: Paint;
  /** Zone of the shown times; absent: UTC. */
  readonly zone?: Offsets | undefined;
  /** Present time, for times that are shown by their distance; absent: these are shown by date and time. */
  readonly nowMs?: number | undefined;
}

const GAP = "  ";

/** The texts of a table, whose columns have the widths of its first rows. */
export interface TableTexts {
  /** The heading, and the first rows. */
  readonly first: string;
  /** Further rows. A cell that is wider than its column is cut if the lines have to fit a width; it moves the rest otherwise. */
  further(rows: readonly Row[]): string;
  /** Names the columns that have no room; often empty. */
  readonly end: string;
}

/**
 * Rows as a table with a heading. It fits the width if that is known, and each row is on a line of its own. Columns that
 * have no room are named below.
 */
export function table(rows: readonly Row[], options: TableOptions): string {
  if (options.columns.length === 0 || rows.length === 0) return "no rows\n";
  const { first, end } = tableTexts(rows, options);
  return first + end;
}

/** The table of which these rows, at least one, are the first ones. */
export function tableTexts(rows: readonly Row[], options: TableOptions): TableTexts {
  const { columns, width, isWide, paint } = options;
  const max = isWide ? CLI_WIDE_CELL_MAX_COLUMNS : (width ?? CLI_CELL_MAX_COLUMNS);
  const heading = columns.map(({ name }) => printable(name));
  const cellsOf = (row: Row): readonly string[] => columns.map((column) => cutTo(cellOf(column, row, options), max));
  const cells = rows.map(cellsOf);
  const natural = heading.map((name, index) =>
    cells.reduce((widest, row) => Math.max(widest, columnsOf(row[index] ?? "")), columnsOf(name)),
  );
  const isFitted = !isWide && width !== undefined;
  const widths = isFitted ? fitted(natural, columns, width) : natural;
  const line = (texts: readonly string[], isHeading = false): string =>
    `${widths
      .map((width, index) =>
        padded(texts[index] ?? "", { width, isFitted, isLast: index === widths.length - 1 }, isHeading, paint),
      )
      .join(GAP)
      .trimEnd()}\n`;
  const rule = `${widths.map((columns) => "-".repeat(columns)).join(GAP)}\n`;
  return {
    first: [line(heading, true), rule, ...cells.map((row) => line(row))].join(""),
    further: (others) => others.map((row) => line(cellsOf(row))).join(""),
    end: hiddenLine(heading.slice(widths.length), width)
      .map((text) => `${text}\n`)
      .join(""),
  };
}

/** Names the columns that have no room, or their number if the names have none. */
function hiddenLine(names: readonly string[], width = Infinity): readonly string[] {
  if (names.length === 0) return [];
  const named = `(${names.join(", ")}: with -o wide)`;
  return [columnsOf(named) <= width ? named : cutTo(`(${names.length} more: -o wide)`, width)];
}

/** Names and values of one thing, a line for each. */
export function sheet(row: Row, options: TableOptions): string {
  const { columns, width, isWide, paint } = options;
  const names = columns.map(({ name }) => printable(name));
  const widest = Math.max(0, ...names.map(columnsOf));
  const max =
    isWide || width === undefined
      ? CLI_WIDE_CELL_MAX_COLUMNS
      : Math.max(CLI_CELL_MIN_COLUMNS, width - widest - GAP.length);
  return columns
    .map((column, index) => {
      const value = cutTo(cellOf(column, row, options), max);
      return `${paint.heading(padTo(names[index] ?? "", widest))}${GAP}${paint.value(value)}`.trimEnd() + "\n";
    })
    .join("");
}

interface Place {
  readonly width: number;
  /** True: a longer text is cut. */
  readonly isFitted: boolean;
  readonly isLast: boolean;
}

function padded(text: string, { width, isFitted, isLast }: Place, isHeading: boolean, paint: Paint): string {
  const cut = isFitted ? cutTo(text, width) : text;
  const painted = isHeading ? paint.heading(cut) : paint.value(cut);
  return isLast ? painted : painted + padTo(cut, width).slice(cut.length);
}

/**
 * Widths that fit the terminal: the widest columns give way first, down to `CLI_CELL_MIN_COLUMNS` and whole ones not at
 * all. If that is not enough, the last columns are left out.
 */
function fitted(natural: readonly number[], columns: readonly Column[], width: number): readonly number[] {
  const least = natural.map((own, at) => (columns[at]?.isWhole === true ? own : Math.min(own, CLI_CELL_MIN_COLUMNS)));
  let shown = natural.length;
  while (shown > 1 && total(least.slice(0, shown)) > width) shown--;
  const widths = natural.slice(0, shown);
  for (let excess = total(widths) - width; excess > 0; excess--) {
    const shrinkable = widths.map((own, at) => (own > (least[at] ?? 0) ? own : 0));
    const widest = Math.max(...shrinkable);
    if (widest === 0) break;
    const at = shrinkable.lastIndexOf(widest);
    widths[at] = widest - 1;
  }
  return widths;
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, columns) => sum + columns, GAP.length * (widths.length - 1));
}

type TimeOptions = Pick<TableOptions, "zone" | "nowMs">;

function cellOf({ of, isTime, isNear }: Column, row: Row, options: TimeOptions): string {
  const value = of(row);
  if (value === undefined || value === null) return "";
  if (isTime === true && isTimes(value))
    return [value]
      .flat()
      .map((timeMs) => timeOf(timeMs, isNear, options))
      .join(", ");
  const text = typeof value === "string" ? value : (plainList(value) ?? JSON.stringify(value));
  // A long text is cut before it is searched.
  const beginning =
    text.length > CLI_WIDE_CELL_MAX_COLUMNS * 16 ? `${text.slice(0, CLI_WIDE_CELL_MAX_COLUMNS * 16)}…` : text;
  return printable(beginning.replaceAll(/\s+/g, " "));
}

/** A list of texts as it is read by people. */
function plainList(value: unknown): string | undefined {
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? value.join(", ") : undefined;
}

function isTimes(value: unknown): value is number | readonly number[] {
  return typeof value === "number" || (Array.isArray(value) && value.every((one) => typeof one === "number"));
}

function timeOf(timeMs: number, isNear: boolean | undefined, { zone = UTC, nowMs }: TimeOptions): string {
  if (timeMs === 0) return "";
  return isNear === true && nowMs !== undefined ? distanceText(timeMs, zone, nowMs) : timeText(timeMs, zone);
}
