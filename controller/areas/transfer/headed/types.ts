import type { Column } from "../../objects/index.ts";
import type { Place, TransferReport } from "../types.ts";

/** A value as it stands in a file. A cell without a content is `undefined`, other than one with an empty text. */
export interface HeadedCell {
  /** Of a time in ISO 8601. */
  readonly text: string;
  /** `number` and `time` as a workbook has them; all values of a CSV file are texts. */
  readonly kind: "text" | "number" | "time";
  /** The reason why the content is no value. */
  readonly fault?: string;
}

export interface HeadedRow {
  /** From 1, which is the heading line of most files. */
  readonly number: number;
  /** Of a CSV file: the line in which the row begins. */
  readonly line?: number;
  readonly cells: readonly (HeadedCell | undefined)[];
  /** The reason why the row cannot be read; it is the last one. */
  readonly fault?: string;
}

/** A file whose first row that is not empty names what stands below. */
export interface HeadedSheet {
  /** The heading line first. Called several times. */
  rows(): AsyncIterable<HeadedRow>;
  place(row: HeadedRow, cell?: { readonly at: number; readonly heading: string }): Place;
  /** Each row has as many values as the heading line. */
  readonly isEven: boolean;
  /** How the file was read. */
  readonly read: { readonly delimiter?: string; readonly encoding?: string; readonly sheet?: string };
}

/** A column of the class; an edge type or the id when it has no `column`. */
export interface SheetTarget {
  readonly name: string;
  readonly column?: Column;
}

export interface SheetColumn {
  /** From 0. */
  readonly at: number;
  readonly heading: string;
  /** Absent: what stands below it is left out. */
  readonly target?: SheetTarget;
}

export interface SheetRequest {
  /** Path of the class. */
  readonly class: string;
  /** Names of columns by heading; empty or null: what stands below it is left out. */
  readonly columns?: Readonly<Record<string, string | null>> | undefined;
  readonly delimiter?: string | undefined;
  readonly encoding?: string | undefined;
  readonly sheet?: string | undefined;
  /** Only tells what would be done. */
  readonly plan?: boolean | undefined;
  readonly wait?: boolean | undefined;
  readonly signal?: AbortSignal;
}

export interface SheetFile {
  readonly path: string;
  readonly filename: string;
}

/** How a heading was understood. */
export interface ColumnReport {
  readonly heading: string;
  /** Empty: left out. */
  readonly column: string;
  readonly type?: string;
}

export interface RowPlan {
  readonly row: number;
  /** Absent: it is made up with the object. */
  readonly id?: string;
  readonly action: "create" | "update";
}

/** What the import of a sheet did, or would do. */
export interface SheetReport extends Omit<TransferReport, "state"> {
  readonly state: TransferReport["state"] | "planned";
  readonly columns: readonly ColumnReport[];
  readonly delimiter?: string;
  readonly encoding?: string;
  readonly sheet?: string;
  /** Of a plan, as `changes`. */
  readonly created?: number;
  readonly updated?: number;
  /** The first `IMPORT_PLAN_SHOWN_MAX`. */
  readonly changes?: readonly RowPlan[];
}
