import { decodeStored, encodePacked } from "../../../store/format.ts";
import type { Edge, EntityTrace } from "../../../store/objects.ts";

/**
 * The value that an edge stores when its time is not enough. An id can be used again after its object was removed. The
 * time of an edge usually tells which of these objects the edge leads to. It does not if the source, or the removal of
 * the earlier object, is ahead of the clock. Such an edge stores the last removal of its target that its writer knew.
 */
export function knownRemoval(diedUs: number): Uint8Array {
  return encodePacked(diedUs);
}

/**
 * True when the edge leads to an object that was removed at `diedUs` or before, and not to a later object with the same
 * id.
 */
export function isOfFormer({ timeUs, value }: Pick<Edge, "timeUs" | "value">, diedUs: number): boolean {
  return value === undefined ? timeUs <= diedUs : decodeStored<number>(value) < diedUs;
}

/**
 * Time of the last removal or the end of an object that does not exist. Edges with times up to it led to that object.
 */
export function lastRemovalUs({ lastUs, endedUs = 0 }: EntityTrace): number {
  return Math.max(lastUs, endedUs);
}
