import { AppError } from "../../../common/errors.ts";
import { OBJECT_PAGE_MAX } from "../../../common/limits.ts";
import type { Entity } from "../../store/objects.ts";
import { GRAVES_CID, graveTerm, keyInGrave } from "./graves.ts";
import type { HistorySource } from "./history.ts";
import type { Place } from "./locate.ts";
import type { ObjectReader } from "./reader.ts";
import type { LoadedClass } from "./views.ts";

export interface BuriedSource extends HistorySource {
  readonly reader: ObjectReader;
}

/** Places of objects of one class that were removed after `afterUs` and are not there again. */
export async function* buriedPlaces(
  view: LoadedClass,
  { afterUs, signal }: { readonly afterUs: number; readonly signal?: AbortSignal | undefined },
  { store, patience, reader }: BuriedSource,
): AsyncGenerator<readonly Place[]> {
  let cursor: string | undefined;
  do {
    if (signal?.aborted) throw new AppError("cancelled", "The read was stopped.");
    const page = { limit: OBJECT_PAGE_MAX, ...(cursor === undefined ? {} : { cursor }) };
    const answer = await patience.repeat(() => store.find({ terms: [graveTerm(view.cid)] }, page));
    const places = answer.items.flatMap((grave) => placeOfGrave(view, grave, afterUs));
    const now = await reader.get(places.map((place) => [place]));
    yield places.filter((_, at) => now[at] === undefined);
    cursor = answer.cursor;
  } while (cursor !== undefined);
}

function placeOfGrave(view: LoadedClass, grave: Entity, afterUs: number): Place[] {
  const id = grave.key.cid === GRAVES_CID && grave.birthUs > afterUs ? keyInGrave(view, grave.key.id) : undefined;
  return id === undefined ? [] : [{ view, key: { cid: view.cid, id } }];
}
