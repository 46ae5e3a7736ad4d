import { AppError } from "../../../common/errors.ts";
import type { Principal } from "../permissions/index.ts";
import { placeBelowRoot, type FileName, type Place, type Space } from "./names.ts";

/**
 * True for administrators: only they may name paths of the system's space. Other users reach its files only by running
 * them or having them served.
 */
export function mayNameSystem({ paths }: Pick<Principal, "paths">): boolean {
  return paths === undefined;
}

/** `AppError("denied")` for the system's space unless the principal is an administrator. */
export function requireSpace(principal: Principal, space: Space): void {
  if (space === "user" || mayNameSystem(principal)) return;
  const text = `Only administrators name the system's file space, and ${principal.user} is none: leave out issys.`;
  throw new AppError("denied", text, { details: { space } });
}

/**
 * Names under which a path is looked up to run or serve it, in this order: users' space, system's space. If `space` is
 * `system`, only the system's space.
 */
export function servedNames({ path, space }: FileName): readonly FileName[] {
  return space === "system"
    ? [{ path, space }]
    : [
        { path, space: "user" },
        { path, space: "system" },
      ];
}

/** `AppError("invalid")` for a path that is not clean. */
export function placesOf(names: readonly FileName[]): readonly Place[] {
  return names.map(placeBelowRoot);
}
