import { holds } from "../permissions/index.ts";
import type { Rights } from "./definitions.ts";

/**
 * Whether the rights after a change of groups leave out something that they had before. What cannot be compared, such as
 * two row conditions, counts as left out.
 */
export function isNarrower(before: Rights, after: Rights): boolean {
  return before !== after && !holds(after, before);
}
