import { decodeStored, encodePacked } from "../../../store/format.ts";
import type { Edge, EntityTrace } from "../../../store/objects.ts";

/**
 * The value of an edge whose time cannot tell which object of its target's name it leads to, because its source or the
 * removal of an earlier target is ahead of the clock: the last removal of the target that the writer knew of.
 */
export function knownRemoval(diedUs: number): Uint8Array {
  return encodePacked(diedUs);
}

/** True when the edge leads to an object that was removed at `diedUs` or before, and not to a later one of its name. */
export function isOfFormer({ timeUs, value }: Pick<Edge, "timeUs" | "value">, diedUs: number): boolean {
  return value === undefined ? timeUs <= diedUs : decodeStored<number>(value) < diedUs;
}

/** The last removal of an object that is not there, or its end: edges up to then led to it. */
export function lastRemovalUs({ lastUs, endedUs = 0 }: EntityTrace): number {
  return Math.max(lastUs, endedUs);
}
