import { AppError } from "../../../common/errors.ts";
import type { Principal } from "../permissions/index.ts";
import { placeBelowRoot, type FileName, type Place, type Space } from "./names.ts";

/** True for administrators, to whom no path is closed. Others reach the system's space only by what runs or serves it. */
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
 * Names under which a path that is run or served is looked up, in their order: in the users' space, then in the
 * system's. A path of which the system's space was named is looked up there alone.
 */
export function servedNames({ path, space }: FileName): readonly FileName[] {
  return space === "system"
    ? [{ path, space }]
    : [
        { path, space: "user" },
        { path, space: "system" },
      ];
}

/** The places of these names; `AppError("invalid")` for a path that is no clean one. */
export function placesOf(names: readonly FileName[]): readonly Place[] {
  return names.map(placeBelowRoot);
}
