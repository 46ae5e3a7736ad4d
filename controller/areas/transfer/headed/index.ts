import { AppError } from "../../../../common/errors.ts";
import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import {
  type ClassCatalog,
  type ClassView,
  type Column,
  type Objects,
  readablePaths,
  unknownClass,
} from "../../objects/index.ts";
import { classAccess, type Principal } from "../../permissions/index.ts";
import type { Slices } from "../../query/index.ts";
import type { NotedRow } from "../check.ts";
import type { ScriptPart } from "../source.ts";
import { openSheet } from "./file.ts";
import { mapHeadings, targetsOf } from "./mapping.ts";
import { headedParts } from "./parts.ts";
import { RowTally } from "./tally.ts";
import type {
  ColumnReport,
  HeadedRow,
  HeadedSheet,
  SheetColumn,
  SheetFile,
  SheetReport,
  SheetRequest,
} from "./types.ts";

export type { SheetFile, SheetReport, SheetRequest } from "./types.ts";

/** A sheet whose headings are mapped to columns of a class. */
export interface MappedSheet {
  /** The sheet as a script, one part for each row. Called several times. */
  parts(): AsyncIterable<ScriptPart>;
  /** Call it for each row when the row is checked. */
  note(row: NotedRow): Promise<void>;
  /** How the headings and the file were interpreted, for the report. */
  readonly told: Pick<SheetReport, "columns" | "delimiter" | "encoding" | "sheet">;
  /** The changes for the report of a plan. Call it when all rows are checked. */
  changes(): Promise<Pick<SheetReport, "created" | "updated" | "changes">>;
}

interface MappingContext {
  readonly principal: Principal;
  readonly objects: Pick<Objects, "catalog" | "visible">;
  readonly slices: Slices;
}

/** Maps the heading line of a sheet. The other rows are read and checked when the caller iterates over the parts. */
export async function mapSheet(file: SheetFile, request: SheetRequest, context: MappingContext): Promise<MappedSheet> {
  const { principal, objects, slices } = context;
  const catalog = await objects.catalog(principal);
  const view = classOf(request.class, principal, catalog);
  const sheet = await openSheet(file, request);
  const targets = targetsOf(view, principal, catalog);
  const columns = mapHeadings((await headingRow(sheet)).cells, { view, targets, given: request.columns });
  const tally = new RowTally({ objects, principal, view, isPlan: request.plan === true });
  return {
    parts: () => headedParts({ path: view.path, sheet, columns, slices }),
    async note(row) {
      tally.note(row);
      await tally.lookUp(OBJECT_PAGE_MAX);
    },
    told: { columns: columns.filter(({ heading }) => heading !== "").map(columnReport), ...sheet.read },
    async changes() {
      await tally.lookUp();
      return { created: tally.created, updated: tally.updated, changes: tally.changes() };
    },
  };
}

function classOf(given: string, principal: Principal, catalog: ClassCatalog): ClassView {
  const path = given.trim().replace(/(?<=.)\/+$/, "");
  const view = catalog.get(path);
  if (!view || !classAccess(principal, view).readable) throw unknownClass(path, readablePaths(principal, catalog));
  if (!view.system) return view;
  throw new AppError("unsupported", `[Valid] ${path} is kept by the platform: its endpoints take its objects.`);
}

async function headingRow(sheet: HeadedSheet): Promise<HeadedRow> {
  for await (const row of sheet.rows()) {
    if (row.fault === undefined) return row;
    throw new AppError("invalid", `${sheet.place(row)}: [Format] ${row.fault}.`);
  }
  throw new AppError("invalid", "[Format] The file has no heading line.");
}

function columnReport({ heading, target }: SheetColumn): ColumnReport {
  if (!target) return { heading, column: "" };
  const { name, column } = target;
  return { heading, column: name, type: column ? typeOf(column) : name === "id" ? "id" : "relation" };
}

function typeOf({ type, elements }: Column): string {
  return elements === undefined ? type : `${type}<${elements.join(",")}>`;
}
