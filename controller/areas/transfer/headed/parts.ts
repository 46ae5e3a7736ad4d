import { AppError, isAppError } from "../../../../common/errors.ts";
import { SHEET_IMPORT_MAX_ROWS } from "../../../../common/limits.ts";
import { NOWHERE, printStatement, type Insert, type ValueNode } from "../../../../common/mql/index.ts";
import { counted } from "../../../../common/text/counted.ts";
import type { Slices } from "../../query/index.ts";
import type { FaultPlace, ScriptPart } from "../source.ts";
import type { HeadedRow, HeadedSheet, SheetColumn } from "./types.ts";
import { cellNode } from "./values.ts";

interface Mapped {
  readonly path: string;
  readonly sheet: HeadedSheet;
  readonly columns: readonly SheetColumn[];
  /** Pauses the conversion from time to time, because many short rows may arrive at once. */
  readonly slices: Slices;
}

/** Converting a row takes as long as reading this many rows. */
const ROW_WORK = 4;

/** Converts a sheet to a script: each row becomes an INSERT of one object. */
export async function* headedParts(mapped: Mapped): AsyncGenerator<ScriptPart> {
  let rows = 0;
  for await (const row of mapped.sheet.rows()) {
    // The first row is the heading line.
    if (rows > 0) yield partOf(row, mapped);
    if (mapped.slices.isOver(ROW_WORK)) await mapped.slices.pause();
    rows += 1;
    if (rows > SHEET_IMPORT_MAX_ROWS + 1)
      throw new AppError(
        "too_large",
        `[Format] The sheet has more than ${SHEET_IMPORT_MAX_ROWS} rows: import it by parts.`,
        { details: { limit: "SHEET_IMPORT_MAX_ROWS" } },
      );
  }
  if (rows <= 1) throw new AppError("invalid", "[Format] The file has no row below its heading line.");
}

function partOf(row: HeadedRow, mapped: Mapped): ScriptPart {
  const { path, sheet, columns } = mapped;
  const faults = rowFaults(row, mapped).map(
    (reason) => new AppError("invalid", `${sheet.place(row)}: [Format] ${reason}.`),
  );
  const nodes: (readonly [name: string, node: ValueNode])[] = [];
  for (const { at, heading, target } of row.fault === undefined ? columns : []) {
    const cell = row.cells[at];
    const take = (): void => {
      if (target && !(target.name === "id" && cell === undefined)) nodes.push([target.name, cellNode(target, cell)]);
      if (heading === "" && cell !== undefined) throw new AppError("invalid", "[Format] it stands below no heading.");
    };
    const fault = faultIn(take, () => sheet.place(row, { at, heading }));
    if (fault) faults.push(fault);
  }
  if (nodes.length === 0 && faults.length === 0)
    faults.push(new AppError("invalid", `${sheet.place(row)}: [Valid] it has no id, and no other value is mapped.`));
  const insert: Insert = {
    kind: "insert",
    class: { kind: "class", path, subtree: false, alias: undefined, span: NOWHERE },
    form: "set",
    columns: nodes.map(([name]) => name),
    rows: [nodes.map(([, node]) => node)],
    at: undefined,
    span: NOWHERE,
  };
  const place = ({ field }: FaultPlace): string => {
    const column = field === undefined ? undefined : columns.find(({ target }) => target?.name === field);
    return sheet.place(row, column);
  };
  return { text: faults.length > 0 ? "" : printStatement(insert), faults, row: row.number, place };
}

/** Reasons why a row as a whole is refused. */
function rowFaults({ cells, fault }: HeadedRow, { sheet, columns }: Mapped): readonly string[] {
  if (fault !== undefined) return [fault];
  const stray = cells.findIndex((cell, at) => at >= columns.length && cell !== undefined);
  const isShort = sheet.isEven && cells.length < columns.length;
  if (stray === -1 && !isShort) return [];
  const values = counted(cells.length, "value");
  return [`it has ${values} where the heading line has ${columns.length}`];
}

function faultIn(work: () => void, place: () => string): AppError | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return new AppError(error.code, `${place()}: ${error.message}`, { cause: error });
  }
}
