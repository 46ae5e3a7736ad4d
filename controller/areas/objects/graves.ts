import type { EntityChange } from "../../store/objects.ts";
import type { LoadedClass } from "./views.ts";

/** No class has this number: its entities are graves, one for each object that was removed and still has versions. */
export const GRAVES_CID = 0;

/** Term of the graves of a class. */
export function graveTerm(cid: number): string {
  return `v${cid}`;
}

/** The part after the colon of the object's id; `undefined` when the grave is of another class. */
export function keyInGrave(view: LoadedClass, grave: string): string | undefined {
  const prefix = `${view.cid}:`;
  return grave.startsWith(prefix) ? grave.slice(prefix.length) : undefined;
}

export function graveOf(view: LoadedClass, key: string, timeUs: number): EntityChange {
  return { key: { cid: GRAVES_CID, id: `${view.cid}:${key}` }, timeUs, birth: true, addTerms: [graveTerm(view.cid)] };
}
