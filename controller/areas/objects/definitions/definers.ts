import { classAccess, requireDefining, requirePermission, type Principal } from "../../permissions/index.ts";
import { classNotFound } from "./views.ts";

/** A definition that may exist already. Its existence is an error unless `ifNotExists` is set. */
interface Made {
  readonly isKnown: boolean;
  readonly ifNotExists?: boolean | undefined;
}

/**
 * True if the class is to be made. False if it exists and `ifNotExists` allows that; nothing is defined then. A class
 * that the principal may not read is refused like one that does not exist.
 */
export function makesClass(principal: Principal, path: string, { isKnown, ifNotExists }: Made): boolean {
  requirePermission(principal, "objects:write");
  if (ifNotExists && isKnown && classAccess(principal, path).readable) return false;
  requireDefining(principal, path);
  return true;
}

/** Check before a class is changed or dropped. For the principal, a class that it may not read does not exist. */
export function requireDefiner(principal: Principal, path: string): void {
  requirePermission(principal, "objects:write");
  if (!classAccess(principal, path).readable) throw classNotFound(path);
  requireDefining(principal, path);
}

/** True if the edge type is to be made. Edge types serve objects of all classes and are visible to all principals. */
export function makesEdgeType(principal: Principal, { isKnown, ifNotExists }: Made): boolean {
  requirePermission(principal, "objects:write");
  if (ifNotExists && isKnown) return false;
  requireDefining(principal, principal.ospace);
  return true;
}
