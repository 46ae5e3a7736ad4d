import type { CellChoice } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { ReadRequest } from "../types.ts";
import { CREATED_CELL, hasElementCells } from "../values/celllayout.ts";
import type { Narrowing } from "./narrowing.ts";

/**
 * Names of the columns that a read needs: those that its caller uses, and the column of the union, by which the results
 * of its finds are told apart. Absent: all columns, as for words, which may be in any column.
 */
export function columnsRead(
  { columns }: ReadRequest,
  narrowing?: Pick<Narrowing, "union" | "words">,
): ReadonlySet<string> | undefined {
  const union = narrowing?.union;
  if (columns === undefined || (narrowing?.words.length ?? 0) > 0 || (union && union.column === undefined))
    return undefined;
  return new Set(union?.column === undefined ? columns : [...columns, union.column.name]);
}

/** The cells of the columns in the objects of these classes. */
export function cellsOf(views: readonly LoadedClass[], columns: ReadonlySet<string>): CellChoice {
  const keys = new Set([CREATED_CELL]);
  const prefixes = new Set<string>();
  for (const name of columns) {
    for (const view of views) {
      const column = view.column(name);
      if (column === undefined) continue;
      keys.add(column.cellKey);
      if (hasElementCells(column)) prefixes.add(`${column.cellKey}/`);
    }
  }
  return { keys: [...keys], prefixes: [...prefixes] };
}
