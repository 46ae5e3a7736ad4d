import type { ClassCatalog, ObjectRow } from "../objects/index.ts";
import { classAccess, type Principal } from "../permissions/index.ts";
import { scopeOf, visibility } from "./plan/scope.ts";

/** The objects of one class that a principal may see by other ways than a query: the same as by a query. */
export interface RowFilter {
  /** Columns that do not exist for the principal. */
  readonly hidden: ReadonlySet<string>;
  /** Whether there is such an object for the principal. False for a class that it may not read. */
  sees(object: Omit<ObjectRow, "class">): boolean;
}

/** `AppError("internal")` when the row condition among the rights cannot be used. */
export function rowFilter(principal: Principal, catalog: ClassCatalog, path: string): RowFilter {
  const { readable, where, hidden } = classAccess(principal, path);
  if (!readable) return { hidden, sees: () => false };
  if (where === undefined) return { hidden, sees: () => true };
  const view = catalog.get(path);
  // A class that is not known here yet has no columns the condition could be asked of.
  if (view === undefined) return { hidden, sees: () => false };
  const visible = visibility(scopeOf(principal, catalog, { path, subtree: false, alias: undefined }));
  return { hidden, sees: (object) => visible({ ...object, class: view }) === true };
}
