import type { ClassCatalog, ObjectRow, VisibleClass } from "../../objects/index.ts";
import { classAccess, type HiddenColumns, type Principal, rowLimit } from "../../permissions/index.ts";
import { cellsOf, scopeOf, visibility } from "../plan/names/scope.ts";

type Seen = Omit<ObjectRow, "class">;

/** `AppError("internal")` when the row condition is invalid. */
export function visibleClass(principal: Principal, catalog: ClassCatalog, path: string): VisibleClass {
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
  const rowOf = (object: Seen): ObjectRow => ({ ...object, class: view });
  const sees = (object: Seen | undefined): boolean => object === undefined || visible(rowOf(object)) === true;
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
