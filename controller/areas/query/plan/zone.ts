import type { ClassCatalog } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";

/**
 * The zone whose calendar is meant where a statement names none: that of the call or of the user, or else of the class.
 * Absent: UTC.
 */
export function calendarZone(
  { timeZone }: Pick<Principal, "timeZone">,
  catalog: ClassCatalog,
  path: string | undefined,
): string | undefined {
  if (timeZone !== undefined || path === undefined) return timeZone;
  // A node of MATCH may name its class by the last part of the path, or with a slash for those below it.
  const [view] = path.startsWith("/") ? [catalog.get(path.replace(/(?<=.)\/$/, ""))] : catalog.byLabel(path);
  return view?.options.timeZone;
}
