import type { ClassCatalog } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";

/**
 * Time zone for functions of the calendar that name none: that of the call or the user, otherwise that of the class.
 * Absent: UTC.
 */
export function calendarZone(
  { timeZone }: Pick<Principal, "timeZone">,
  catalog: ClassCatalog,
  path: string | undefined,
): string | undefined {
  if (timeZone !== undefined || path === undefined) return timeZone;
  // A node of MATCH may name its class by the last part of the path, or by a path with a slash at its end for the whole
  // subtree.
  const [view] = path.startsWith("/") ? [catalog.get(path.replace(/(?<=.)\/$/, ""))] : catalog.byLabel(path);
  return view?.options.timeZone;
}
