import { AppError } from "../../../common/errors.ts";
import { listed } from "../../../common/text/listed.ts";
import { meant } from "../../../common/text/nearest.ts";
import type { ClassCatalog, ClassView } from "../objects/index.ts";
import { classAccess, FIELDS_OF_ALL, type Principal } from "../permissions/index.ts";
import { namedColumns } from "./compile.ts";
import type { GroupEdit } from "./types.ts";

interface Known {
  readonly principal: Principal;
  readonly catalog: Pick<ClassCatalog, "get" | "tree" | "edgeTypes">;
}

/**
 * Looks whether the classes and columns that an edit names exist. Answers a warning for each class that does not, as it
 * may be made later. `AppError("invalid")` for a column that neither the class nor one below it has: a rule with a typo
 * would leave open what it is to close.
 */
export function checkClasses(edit: GroupEdit, known: Known): readonly string[] {
  const named = namedColumns(edit);
  const paths = [...(edit.readonly ?? []), ...(edit.writable ?? []), ...named.flatMap(({ path }) => path ?? [])];
  const missing = new Set(paths.map(normal).filter((path) => path !== "/" && known.catalog.get(path) === undefined));
  for (const { path, columns, where } of named) {
    const views = path === undefined ? [] : known.catalog.tree(normal(path));
    // A condition without a path is asked of classes that have its fields, now or later.
    if (views.length > 0) for (const column of columns) checkColumn(column, views, { ...known, where });
  }
  const all = known.catalog.tree("/").filter((view) => classAccess(known.principal, view).readable);
  return [...missing].map(
    (path) =>
      `There is no class ${path} now${meant(
        path,
        all.map((view) => view.path),
      )}`,
  );
}

function checkColumn(
  column: string,
  views: readonly ClassView[],
  { where, principal, catalog }: Known & { readonly where: string },
): void {
  const name = column.toLowerCase();
  const has = (one: string): boolean => one.toLowerCase() === name;
  if (FIELDS_OF_ALL.has(name) || catalog.edgeTypes().some((type) => has(type.name))) return;
  if (views.some((view) => view.columns.some((one) => has(one.name)))) return;
  const seen = views.flatMap((view) => {
    const { readable, hidden } = classAccess(principal, view);
    return readable ? view.columns.map((one) => one.name).filter((one) => !hidden.has(one)) : [];
  });
  throw new AppError("invalid", `${where}: there is no column ${column}${meant(column, new Set(seen))}`);
}

/** Throws `AppError("invalid")` for members, as in `U/plant/ann`, whose users do not exist. */
export function requireUsers(missing: readonly string[]): void {
  if (missing.length === 0) return;
  throw new AppError("invalid", `member: there is no user ${listed(missing.map((member) => member.slice(1)))}.`);
}

/** The last part of the full name in a member finds its user. */
export function usernameOf(member: string): string {
  return member.slice(member.lastIndexOf("/") + 1);
}

function normal(path: string): string {
  return path.trim().replace(/(?<=.)\/+$/, "");
}
