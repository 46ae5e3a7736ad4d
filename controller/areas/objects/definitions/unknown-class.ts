import type { AppError } from "../../../../common/errors.ts";
import { withNearest } from "../../../../common/text/nearest.ts";
import { classAccess, type Principal } from "../../permissions/index.ts";
import type { ClassCatalog } from "../types.ts";
import { classNotFound } from "./views.ts";

/**
 * The error about a class that does not exist for a principal. `among` are names of classes that it may read
 * (`readablePaths`), so the error is the same for a class that does not exist and for one that is hidden.
 */
export function unknownClass(path: string, among: Iterable<string>): AppError {
  return withNearest(classNotFound(path), among);
}

/** Paths of the classes that the principal may read. */
export function* readablePaths(
  rights: Pick<Principal, "data" | "grants" | "byToken">,
  catalog: Pick<ClassCatalog, "tree">,
): Iterable<string> {
  for (const view of catalog.tree("/")) if (classAccess(rights, view).readable) yield view.path;
}
