import { VITAL_FACTS } from "../../../../common/agent/vitals.ts";
import { VITAL_COLUMNS } from "../../../../common/targets/index.ts";
import type { Edit } from "../../objects/index.ts";

const VITALS: ReadonlySet<string> = new Set(VITAL_FACTS);

/** True if an expression can depend on the edit: it changes more than what targets may not name. */
export function changesTargets({ column, operation, value }: Edit): boolean {
  if (VITAL_COLUMNS.has(column)) return false;
  if (column !== "config" || operation !== "add" || value === null || typeof value !== "object") return true;
  return Object.keys(value).some((name) => !VITALS.has(name));
}
