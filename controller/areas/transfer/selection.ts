import { AppError } from "../../../common/errors.ts";
import { type ClassCatalog, type ClassView, type Column, readablePaths, unknownClass } from "../objects/index.ts";
import { classAccess, type Principal, RAW_BYTES_FIELD } from "../permissions/index.ts";
import type { ExportedClass, ExportRequest } from "./types.ts";

/** Every class inherits this column from the root class of its tenant. */
const TAGS_COLUMN = "tags";

/**
 * The classes of an export, sorted by path, so that every class comes after its superclass. The superclasses of the
 * selected class are exported without objects. Classes of the platform exist in every installation, so they are
 * exported only if selected by name.
 */
export function selectClasses(
  request: ExportRequest,
  principal: Principal,
  catalog: ClassCatalog,
): readonly ExportedClass[] {
  const { path, isTree } = rootOf(request, principal);
  const root = catalog.get(path);
  if (!root || !classAccess(principal, root).readable) throw unknownClass(path, readablePaths(principal, catalog));
  const wanted = (isTree ? catalog.tree(path) : [root]).filter((view) => isWanted(view, { root, request, principal }));
  const above = lineage(root, catalog).filter((view) => classAccess(principal, view).readable);
  const ordered = [...above, ...wanted].sort((a, b) => (a.path < b.path ? -1 : 1));
  const selected: ExportedClass[] = [];
  const printed = new Map<string, ClassView>();
  for (const view of ordered) {
    selected.push(
      exportedClass(view, { request, principal, catalog, parents: printed, hasRows: wanted.includes(view) }),
    );
    printed.set(view.path, view);
  }
  return selected.filter(
    ({ view, ownColumns, hasRows }) => hasRows || view.path !== principal.ospace || ownColumns.length > 0,
  );
}

function rootOf(request: ExportRequest, principal: Principal): { readonly path: string; readonly isTree: boolean } {
  const given = request.class?.trim() ?? "";
  const path = given.replace(/\/+$/, "");
  if (path === "") return { path: principal.ospace, isTree: true };
  return { path, isTree: request.recursive === true || given.endsWith("/") };
}

interface Asked {
  readonly request: ExportRequest;
  readonly principal: Principal;
}

function isWanted(view: ClassView, { root, request, principal }: Asked & { readonly root: ClassView }): boolean {
  if (!classAccess(principal, view).readable) return false;
  if (view.system && !root.system) return false;
  return !(request.ignoredClasses ?? []).some((path) => view.path === path || view.path.startsWith(`${path}/`));
}

/** All superclasses of the class, the outermost first. */
function lineage(view: ClassView, catalog: ClassCatalog): readonly ClassView[] {
  const parent = view.parent === undefined ? undefined : catalog.get(view.parent);
  return parent ? [...lineage(parent, catalog), parent] : [];
}

interface Wanted extends Asked {
  readonly catalog: ClassCatalog;
  readonly parents: ReadonlyMap<string, ClassView>;
  readonly hasRows: boolean;
}

function exportedClass(view: ClassView, wanted: Wanted): ExportedClass {
  const { request, principal, catalog, parents, hasRows } = wanted;
  const { hidden } = classAccess(principal, view);
  const ignored = new Set(request.ignoredFields);
  const key = view.keys.find((name) => ignored.has(name));
  if (key !== undefined)
    throw new AppError("invalid", `[Valid] ${key} is a key of ${view.path} and cannot be left out.`);
  const columns = view.columns.filter(
    (column) => !column.sealed && !hidden.has(column.name) && !ignored.has(column.name),
  );
  const relations = new Set(catalog.edgeTypes().map(({ name }) => name.toLowerCase()));
  // The raw bytes of a record contain the values of all its columns, so they are left out with any of them.
  const leftOut = view.columns.some(({ name }) => ignored.has(name)) ? [...ignored, RAW_BYTES_FIELD] : [...ignored];
  const recordColumns = (view.recordColumns ?? []).filter(
    ({ name }) => !hidden.has(name) && !leftOut.includes(name) && !relations.has(name),
  );
  const parent = parents.get(view.parent ?? "");
  const visible = new Set(columns.map(({ name }) => name));
  return {
    view,
    columns,
    recordColumns,
    ownColumns: columns.filter((column) => column.name !== TAGS_COLUMN && !parents.has(column.definedBy)),
    ownKeys: view.keys.filter((name) => visible.has(name) && !parent?.keys.includes(name)),
    ownIndexes: columns.filter((column) => isOwnIndex(column, parent)).map(({ name }) => name),
    hasRows,
  };
}

function isOwnIndex(column: Column, parent: ClassView | undefined): boolean {
  return column.indexed && column.name !== TAGS_COLUMN && parent?.column(column.name)?.indexed !== true;
}
