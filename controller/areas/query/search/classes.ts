import { AppError } from "../../../../common/errors.ts";
import type { Search } from "../../../../common/search/index.ts";
import type { ClassCatalog, ClassView, ReadRequest } from "../../objects/index.ts";
import { classAccess, type Principal } from "../../permissions/index.ts";
import { Scope, scopeOf } from "../plan/names/scope.ts";
import { relationsOf, VisibleTree } from "../plan/names/tree.ts";

export type ReadTarget = Pick<ReadRequest, "class" | "subtree">;

/**
 * The named class, or all classes with `autosearch`. With `ofState`, the latter only if they keep versions.
 * `AppError("not_found")` when there is none.
 */
export function searchScope(
  search: Search,
  { principal, catalog }: { readonly principal: Principal; readonly catalog: ClassCatalog },
  ofState: boolean,
): Scope {
  if (search.class) return scopeOf(principal, catalog, { ...search.class, alias: undefined });
  const isWanted = (view: ClassView): boolean => view.options.autosearch && (!ofState || keepsVersions(view));
  const found = catalog.tree("/").filter((view) => isWanted(view) && classAccess(principal, view).readable);
  if (found.length > 0) {
    const content = { found, relations: relationsOf(catalog) };
    return new Scope(
      principal,
      undefined,
      new VisibleTree(principal, { path: principal.ospace, subtree: true }, content),
    );
  }
  const options = ofState ? "autosearch=true and version=true" : "autosearch=true";
  throw new AppError(
    "not_found",
    `[NotExist] There is no class to search in: name one, or let a class be searched by itself with ${options}.`,
  );
}

/** True if the class keeps earlier versions of its objects. */
export function keepsVersions(view: ClassView): boolean {
  return view.options.version && view.kind === "entity" && !view.system;
}

/** The smallest number of reads that together cover just these classes, each once. */
export function coverOf(views: readonly ClassView[], catalog: ClassCatalog): readonly ReadTarget[] {
  const chosen = new Set(views.map((view) => view.path));
  const known = new Map<string, boolean>();
  const isWhole = (path: string): boolean => {
    let whole = known.get(path);
    if (whole === undefined)
      known.set(path, (whole = chosen.has(path) && catalog.children(path).every((child) => isWhole(child.path))));
    return whole;
  };
  const tops = views.filter((view) => !isWhole(view.path) || view.parent === undefined || !isWhole(view.parent));
  return tops.map((view) => ({
    class: view.path,
    subtree: isWhole(view.path) && catalog.children(view.path).length > 0,
  }));
}
