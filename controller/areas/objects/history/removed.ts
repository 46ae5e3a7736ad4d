import { AppError } from "../../../../common/errors.ts";
import { parseObjectId } from "../../../../common/ids.ts";
import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Entity } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { Place } from "../reading/locate.ts";
import type { ObjectReader } from "../reading/reader.ts";
import { goneUs, INTERNAL_CID, tombstoneKey, tombstoneTerm, keyOfTombstone } from "../values/tombstones.ts";
import type { HistorySource } from "./history.ts";

export interface RemovedSource extends HistorySource {
  readonly reader: ObjectReader;
}

/** Places of objects of one class that were removed after `afterUs` and not inserted again. */
export async function* removedPlaces(
  view: LoadedClass,
  { afterUs, signal }: { readonly afterUs: number; readonly signal?: AbortSignal | undefined },
  { store, reader }: RemovedSource,
): AsyncGenerator<readonly Place[]> {
  let cursor: string | undefined;
  do {
    if (signal?.aborted) throw new AppError("cancelled", "The read was stopped.");
    const page = { limit: OBJECT_PAGE_MAX, ...(cursor === undefined ? {} : { cursor }) };
    const answer = await store.find({ terms: [tombstoneTerm(view.cid)] }, page);
    const places = answer.items.flatMap((tombstone) => placeOfTombstone(view, tombstone, afterUs));
    const now = await reader.get(places.map((place) => [place]));
    yield places.filter((_, at) => now[at] === undefined);
    cursor = answer.cursor;
  } while (cursor !== undefined);
}

/** The objects among these ids of one class that were removed and not inserted again. */
export async function* removedAmong(
  view: LoadedClass,
  ids: readonly string[],
  { store, reader }: RemovedSource,
): AsyncGenerator<readonly Place[]> {
  const places = ids.flatMap((id): Place[] => {
    const parts = parseObjectId(id);
    return parts?.label === view.label ? [{ view, key: { cid: view.cid, id: parts.key } }] : [];
  });
  for (let from = 0; from < places.length; from += OBJECT_PAGE_MAX) {
    const page = places.slice(from, from + OBJECT_PAGE_MAX);
    const tombstones = await store.get(page.map(({ key }) => tombstoneKey(key)));
    const removed = page.filter((_, at) => tombstones[at] !== undefined);
    const now = await reader.get(removed.map((place) => [place]));
    yield removed.filter((_, at) => now[at] === undefined);
  }
}

function placeOfTombstone(view: LoadedClass, tombstone: Entity, afterUs: number): Place[] {
  const id =
    tombstone.key.cid === INTERNAL_CID && goneUs(tombstone) > afterUs
      ? keyOfTombstone(view, tombstone.key.id)
      : undefined;
  return id === undefined ? [] : [{ view, key: { cid: view.cid, id } }];
}
