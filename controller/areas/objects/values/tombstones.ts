import type { EntityChange, EntityKey } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { supersededEnd } from "./compose.ts";

/**
 * Class number of internal entities; no class has it. Among them is a tombstone for each removed object that has
 * versions.
 */
export const INTERNAL_CID = 0;

/** Term of the tombstones of a class. */
export function tombstoneTerm(cid: number): string {
  return `v${cid}`;
}

/** The part after the colon of the object's id; `undefined` when the tombstone is of another class. */
export function keyOfTombstone(view: LoadedClass, tombstone: string): string | undefined {
  const prefix = `${view.cid}:`;
  return tombstone.startsWith(prefix) ? tombstone.slice(prefix.length) : undefined;
}

/** Key of the tombstone of an object. */
export function tombstoneKey({ cid, id }: EntityKey): EntityKey {
  return { cid: INTERNAL_CID, id: `${cid}:${id}` };
}

/** Needed as long as the versions that the removal superseded. */
export function tombstoneOf(view: LoadedClass, key: string, timeUs: number): EntityChange {
  const { endVersionsAtMs } = supersededEnd(view, timeUs);
  return {
    key: tombstoneKey({ cid: view.cid, id: key }),
    timeUs,
    birth: true,
    addTerms: [tombstoneTerm(view.cid)],
    ...(endVersionsAtMs === undefined ? {} : { expiresAtMs: endVersionsAtMs }),
  };
}

/** Removes the tombstone of an object. */
export function tombstoneEnd(of: EntityKey, timeUs: number): EntityChange {
  return { key: tombstoneKey(of), timeUs, death: true, dropTerms: [tombstoneTerm(of.cid)] };
}
