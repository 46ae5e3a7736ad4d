import { createHash } from "node:crypto";
import type { EntityKey } from "../../objects.ts";

/**
 * Hashes are whole numbers from 0 up to (not including) 2^31, evenly distributed. They are part of the stored format.
 */
export const HASH_BITS = 31;

export function hashOf(...parts: readonly (string | number)[]): number {
  return createHash("sha256").update(JSON.stringify(parts)).digest().readUInt32BE() >>> (32 - HASH_BITS);
}

export function keyHash({ cid, id }: EntityKey): number {
  return hashOf(cid, id);
}
