import type { Column } from "../../objects/index.ts";
import type { Place, TransferReport } from "../types.ts";

/** A value of a file. `undefined` for a cell without content; a cell with an empty text is a value. */
export interface HeadedCell {
  /** The value as text; a time is in ISO 8601. */
  readonly text: string;
  /** `number` and `time` occur in workbooks only; all values of a CSV file are texts. */
  readonly kind: "text" | "number" | "time";
  /** Reason why the content is not a value. */
  readonly fault?: string;
}

export interface HeadedRow {
  /** Row number, starting at 1, which is the heading line of most files. */
  readonly number: number;
  /** CSV files only: the line in which the row begins. */
  readonly line?: number;
  readonly cells: readonly (HeadedCell | undefined)[];
  /** Reason why the row cannot be read; no row follows it. */
  readonly fault?: string;
}

/** A file whose first non-empty row contains the headings. */
export interface HeadedSheet {
  /** The rows, heading line first. Called several times. */
  rows(): AsyncIterable<HeadedRow>;
  place(row: HeadedRow, cell?: { readonly at: number; readonly heading: string }): Place;
  /** True if each row must have as many values as the heading line. */
  readonly isEven: boolean;
  /** Settings with which the file was read. */
  readonly read: { readonly delimiter?: string; readonly encoding?: string; readonly sheet?: string };
}

/** A column of the class. Without `column` it is an edge type or the id. */
export interface SheetTarget {
  readonly name: string;
  readonly column?: Column;
}

export interface SheetColumn {
  /** Index of the column, starting at 0. */
  readonly at: number;
  readonly heading: string;
  /** Absent: the column of the sheet is ignored. */
  readonly target?: SheetTarget;
}

export interface SheetRequest {
  /** Path of the class. */
  readonly class: string;
  /** Maps headings to columns. Empty or null: the column of the sheet is ignored. */
  readonly columns?: Readonly<Record<string, string | null>> | undefined;
  readonly delimiter?: string | undefined;
  readonly encoding?: string | undefined;
  readonly sheet?: string | undefined;
  /** True: only reports the changes, writes nothing. */
  readonly plan?: boolean | undefined;
  readonly wait?: boolean | undefined;
  readonly signal?: AbortSignal;
}

export interface SheetFile {
  readonly path: string;
  readonly filename: string;
}

/** The interpretation of a heading. */
export interface ColumnReport {
  readonly heading: string;
  /** Empty: ignored. */
  readonly column: string;
  readonly type?: string;
}

export interface RowPlan {
  readonly row: number;
  /** Absent: generated with the object. */
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
  /** Plan only, as `changes`: number of objects to create and to update. */
  readonly created?: number;
  readonly updated?: number;
  /** The first `IMPORT_PLAN_SHOWN_MAX` changes. */
  readonly changes?: readonly RowPlan[];
}
