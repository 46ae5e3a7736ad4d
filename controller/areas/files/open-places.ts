import { AppError } from "../../../common/errors.ts";
import { isInside } from "../../../common/paths.ts";
import { pathVisible, requirePath, type Principal } from "../permissions/index.ts";
import type { Place } from "./names.ts";
import { requireSpace } from "./spaces.ts";

/** `AppError("denied")` if the path or the space is closed to the principal. */
export function openPlace<P extends Place>(principal: Principal, place: P): P {
  requirePath(principal, place.fullname);
  requireSpace(principal, place.space);
  return place;
}

/** The principal without its limits of paths. Only for places whose paths were checked before. */
export function withoutPaths({ paths: _, ...principal }: Principal): Principal {
  return principal;
}

/** Like `openPlace`, but also accepts a folder that contains an open path. */
export function visiblePlace(principal: Principal, place: Place): Place {
  requireSpace(principal, place.space);
  return pathVisible(principal, place.fullname) ? place : openPlace(principal, place);
}

/** The error for a place without an entry that the principal may see. */
export function notFound({ fullname }: Place): AppError {
  return new AppError("not_found", `There is no file or folder ${fullname}.`);
}

/** `AppError("invalid")` if an entry would lie in itself. */
export function refuseCircle({ fullname: from }: Place, { fullname: to }: Place): void {
  if (isInside(from, to)) throw new AppError("invalid", `${to} lies in ${from} itself, or is it.`);
}
