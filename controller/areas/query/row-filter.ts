import type { ClassCatalog, ObjectRow } from "../objects/index.ts";
import { classAccess, type HiddenColumns, type Principal, rowLimit } from "../permissions/index.ts";
import { cellsOf, scopeOf, visibility } from "./plan/scope.ts";

type Filtered = Omit<ObjectRow, "class">;

/** The objects of one class that a principal may see by other ways than a query: the same as by a query. */
export interface RowFilter {
  /** Columns that do not exist for the principal, in no object. */
  readonly hidden: HiddenColumns;
  /** Whether there is such an object for the principal. False for a class that it may not read. */
  sees(object: Filtered): boolean;
  /** Columns of that object that do not exist for the principal, or are unset for it. */
  hiddenIn(object: Filtered): HiddenColumns;
}

/** `AppError("internal")` when the row condition among the rights cannot be used. */
export function rowFilter(principal: Principal, catalog: ClassCatalog, path: string): RowFilter {
  const view = catalog.get(path);
  const { readable, where, hidden, parts } = classAccess(principal, view ?? path);
  const hiddenIn = (): HiddenColumns => hidden;
  if (!readable) return { hidden, hiddenIn, sees: () => false };
  const isLimited = rowLimit(principal, view) !== undefined;
  if (where === undefined && parts.length === 1 && !isLimited) return { hidden, hiddenIn, sees: () => true };
  // A class that is not known here yet has no columns the condition could be asked of.
  if (view === undefined) return { hidden, hiddenIn, sees: () => false };
  const scope = scopeOf(principal, catalog, { path, subtree: false, alias: undefined });
  const visible = visibility(scope);
  const cells = cellsOf(scope);
  return {
    hidden,
    sees: (object) => visible({ ...object, class: view }) === true,
    hiddenIn: (object) => cells?.hiddenIn({ ...object, class: view }) ?? hidden,
  };
}
