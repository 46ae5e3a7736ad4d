import type { Entity, EntityChange, EntityKey } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { endsAtMs, supersededEnd } from "./compose.ts";

/**
 * Class number of internal entities; no class has it. They include a tombstone for each object with versions that was
 * removed or expires.
 */
export const INTERNAL_CID = 0;

/**
 * Slot with the time in ms at which the object is gone. It differs from the slot of last writes, which is searched for
 * objects ahead of the clock. Tombstones of earlier versions lack this number: their objects were removed at the birth
 * of the tombstone.
 */
const GONE_SLOT = 1;

/** Index term of the tombstones of a class. */
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

/** The tombstone of a removal. It is kept as long as the versions that the removal superseded. */
export function tombstoneOf(view: LoadedClass, key: string, timeUs: number): EntityChange {
  return tombstone(view, { key, timeUs, goneUs: timeUs });
}

/**
 * The tombstone to write before an object that expires, because the expiry itself writes nothing. `undefined` for an
 * object without versions or expiry.
 */
export function tombstoneAhead(view: LoadedClass, key: string, timeUs: number): EntityChange | undefined {
  const endMs = endsAtMs(view, timeUs);
  return endMs === undefined || !view.options.version
    ? undefined
    : tombstone(view, { key, timeUs, goneUs: endMs * 1_000 });
}

/** Time in microseconds when the object of the tombstone was removed or expires. */
export function goneUs({ birthUs, numbers }: Entity): number {
  return Math.max(birthUs, (numbers[GONE_SLOT] ?? 0) * 1_000);
}

/** A tombstone for an object that is gone at `goneUs`, as a write at `timeUs` would have made it. */
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
