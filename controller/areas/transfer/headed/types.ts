import type { Column } from "../../objects/index.ts";
import type { Place, TransferReport } from "../types.ts";

/** A value of a file. A cell without content is `undefined`; a cell with an empty text is a value. */
export interface HeadedCell {
  /** The value as text; times are in ISO 8601. */
  readonly text: string;
  /** `number` and `time` occur only in workbooks. All values of a CSV file are `text`. */
  readonly kind: "text" | "number" | "time";
  /** Reason why the content is not a value. */
  readonly fault?: string;
}

export interface HeadedRow {
  /** Number of the row, from 1. In most files, row 1 is the heading line. */
  readonly number: number;
  /** For CSV files only: number of the line in which the row begins. */
  readonly line?: number;
  readonly cells: readonly (HeadedCell | undefined)[];
  /** Reason why the row cannot be read; no further row follows. */
  readonly fault?: string;
}

/** A file whose first row with a value contains the headings. */
export interface HeadedSheet {
  /** The rows, the heading line first. Called several times. */
  rows(): AsyncIterable<HeadedRow>;
  place(row: HeadedRow, cell?: { readonly at: number; readonly heading: string }): Place;
  /** True if each row must have as many values as the heading line. */
  readonly isEven: boolean;
  /** The settings with which the file was read. */
  readonly read: { readonly delimiter?: string; readonly encoding?: string; readonly sheet?: string };
}

/** The target of a heading: a column of the class. Without `column`, it is an edge type or the id. */
export interface SheetTarget {
  readonly name: string;
  readonly column?: Column;
}

export interface SheetColumn {
  /** Index of the column in the sheet, from 0. */
  readonly at: number;
  readonly heading: string;
  /** Absent: this column of the sheet is ignored. */
  readonly target?: SheetTarget;
}

export interface SheetRequest {
  /** Path of the class. */
  readonly class: string;
  /** Column by heading. Empty or null: the column of the sheet is ignored. */
  readonly columns?: Readonly<Record<string, string | null>> | undefined;
  readonly delimiter?: string | undefined;
  readonly encoding?: string | undefined;
  readonly sheet?: string | undefined;
  /** True: reports the changes only, and writes nothing. */
  readonly plan?: boolean | undefined;
  readonly wait?: boolean | undefined;
  readonly signal?: AbortSignal;
}

export interface SheetFile {
  readonly path: string;
  readonly filename: string;
}

/** How a heading was interpreted. */
export interface ColumnReport {
  readonly heading: string;
  /** Name of the column; empty: the heading is ignored. */
  readonly column: string;
  readonly type?: string;
}

export interface RowPlan {
  readonly row: number;
  /** Absent: the id is generated when the object is written. */
  readonly id?: string;
  readonly action: "create" | "update";
}

/** Result of the import of a sheet, or of its plan. */
export interface SheetReport extends Omit<TransferReport, "state"> {
  readonly state: TransferReport["state"] | "planned";
  readonly columns: readonly ColumnReport[];
  readonly delimiter?: string;
  readonly encoding?: string;
  readonly sheet?: string;
  /** For plans only, like `updated` and `changes`: number of objects to create. */
  readonly created?: number;
  readonly updated?: number;
  /** The first `IMPORT_PLAN_SHOWN_MAX` changes. */
  readonly changes?: readonly RowPlan[];
}
