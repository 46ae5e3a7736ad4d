import { holds } from "../permissions/index.ts";
import type { Rights } from "./definitions.ts";

/**
 * True if the rights after a change of groups lack some of the rights before it. Rights that cannot be compared, such
 * as two row conditions, count as missing.
 */
export function isNarrower(before: Rights, after: Rights): boolean {
  return before !== after && !holds(after, before);
}
