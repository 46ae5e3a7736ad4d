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
  return catalog.get(path)?.options.timeZone;
}
