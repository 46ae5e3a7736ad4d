import type { ClassCatalog, ObjectRow } from "../objects/index.ts";
import { classAccess, type HiddenColumns, type Principal, rowLimit } from "../permissions/index.ts";
import { cellsOf, scopeOf, visibility } from "./plan/scope.ts";

type Filtered = Omit<ObjectRow, "class">;

/**
 * The rights of a principal on the objects of one class, for code that reads objects without a query. They are the same
 * as in a query.
 */
export interface RowFilter {
  /** Columns that are hidden from the principal in all objects. */
  readonly hidden: HiddenColumns;
  /** True if the object exists for the principal. False for a class that it may not read. */
  sees(object: Filtered): boolean;
  /** Columns of that object that do not exist for the principal, or are unset for it. */
  hiddenIn(object: Filtered): HiddenColumns;
  /** True if a statement of the principal could write these columns of the object. */
  mayWrite(columns: readonly string[], change: FilteredChange): boolean;
}

/** An object before a write (absent: an insert) and after it (absent: a removal). */
export interface FilteredChange {
  readonly before?: Filtered;
  readonly after?: Filtered;
}

/** `AppError("internal")` when the row condition is invalid. */
export function rowFilter(principal: Principal, catalog: ClassCatalog, path: string): RowFilter {
  const view = catalog.get(path);
  const { readable, writable, where, hidden, parts } = classAccess(principal, view ?? path);
  const hiddenIn = (): HiddenColumns => hidden;
  const none = { hidden, hiddenIn, sees: () => false, mayWrite: () => false };
  if (!readable) return none;
  const opens = (columns: readonly string[]): boolean => writable && !columns.some((name) => hidden.has(name));
  const isLimited = rowLimit(principal, view) !== undefined;
  if (where === undefined && parts.length === 1 && !isLimited)
    return { hidden, hiddenIn, sees: () => true, mayWrite: opens };
  // The class is unknown here, so the row condition cannot be checked.
  if (view === undefined) return none;
  const scope = scopeOf(principal, catalog, { path, subtree: false, alias: undefined });
  const visible = visibility(scope);
  const cells = cellsOf(scope);
  const rowOf = (object: Filtered): ObjectRow => ({ ...object, class: view });
  const sees = (object: Filtered | undefined): boolean => object === undefined || visible(rowOf(object)) === true;
  return {
    hidden,
    sees,
    mayWrite: (columns, { before, after }) => {
      if (!opens(columns) || !sees(before) || !sees(after)) return false;
      const change = { before: before && rowOf(before), after: after && rowOf(after) };
      return cells?.mayWrite(view, columns, change) ?? true;
    },
    hiddenIn: (object) => cells?.hiddenIn({ ...object, class: view }) ?? hidden,
  };
}
