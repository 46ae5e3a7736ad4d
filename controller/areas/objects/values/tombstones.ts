import type { Entity, EntityChange, EntityKey } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { endsAtMs, supersededEnd } from "./compose.ts";

/**
 * Class number of internal entities; no class has it. Among them is a tombstone for each object with versions that was
 * removed, or ends by itself.
 */
export const INTERNAL_CID = 0;

/**
 * When the object is gone, in ms; not in the slot of last writes, by which objects ahead of the clock are found. Tombstones
 * of earlier versions have none: theirs were removed at their birth.
 */
const GONE_SLOT = 1;

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
  return tombstone(view, { key, timeUs, goneUs: timeUs });
}

/** The tombstone that a write of an object with an end puts before the object, as the end itself writes nothing. */
export function tombstoneAhead(view: LoadedClass, key: string, timeUs: number): EntityChange | undefined {
  const endMs = endsAtMs(view, timeUs);
  return endMs === undefined || !view.options.version
    ? undefined
    : tombstone(view, { key, timeUs, goneUs: endMs * 1_000 });
}

/** When the object of the tombstone was removed, or ends. */
export function goneUs({ birthUs, numbers }: Entity): number {
  return Math.max(birthUs, (numbers[GONE_SLOT] ?? 0) * 1_000);
}

/** A tombstone that a write of an earlier time would have put there. */
export function tombstone(
  view: LoadedClass,
  { key, timeUs, goneUs: atUs }: { readonly key: string; readonly timeUs: number; readonly goneUs: number },
): EntityChange {
  const { endVersionsAtMs = Infinity } = supersededEnd(view, atUs);
  return {
    key: tombstoneKey({ cid: view.cid, id: key }),
    timeUs,
    birth: true,
    addTerms: [tombstoneTerm(view.cid)],
    numbers: new Map([[GONE_SLOT, Math.ceil(atUs / 1_000)]]),
    endsAtMs: endVersionsAtMs,
  };
}

/** The object of a tombstone. */
export function objectOfTombstone({ cid, id }: EntityKey): EntityKey | undefined {
  const [number, ...rest] = id.split(":");
  return cid === INTERNAL_CID && rest.length > 0 && /^\d+$/.test(number ?? "")
    ? { cid: Number(number), id: rest.join(":") }
    : undefined;
}

/** Removes the tombstone of an object. */
export function tombstoneEnd(of: EntityKey, timeUs: number): EntityChange {
  return { key: tombstoneKey(of), timeUs, death: true, dropTerms: [tombstoneTerm(of.cid)] };
}
