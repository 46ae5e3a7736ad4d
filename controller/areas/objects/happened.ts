import { parseObjectId } from "../../../common/ids.ts";
import type { ObjectStore } from "../../store/objects.ts";
import type { WriteEvent } from "./events.ts";
import { inPages } from "./locate.ts";
import type { Patience } from "./patience.ts";
import type { Snapshot } from "./snapshot.ts";

/**
 * Which of these events tell of writes that were made. The object says so by its time: a write that was not made counts as made when a later one
 * of the same object was. Of classes that are gone nothing is told.
 */
export async function happened<E extends WriteEvent>(
  events: readonly E[],
  of: { readonly store: ObjectStore; readonly patience: Patience; readonly snapshot: Snapshot },
): Promise<E[]> {
  const { store, patience, snapshot } = of;
  const placed = events.flatMap((event) => {
    const view = snapshot.get(event.class);
    const id = parseObjectId(event.id)?.key;
    return view === undefined || id === undefined ? [] : [{ event, kind: view.kind, key: { cid: view.cid, id } }];
  });
  const entities = placed.filter(({ kind }) => kind === "entity");
  const traces = await inPages(
    entities.map(({ key }) => key),
    (keys) => patience.repeat(() => store.trace(keys)),
  );
  const records = placed.filter(({ kind }) => kind === "record");
  const stored = await inPages(
    records.map(({ key }) => key),
    (keys) => patience.repeat(() => store.getRecords(keys)),
  );
  return [
    ...entities.filter(({ event }, at) => (traces[at]?.lastUs ?? 0) >= Math.round(event.timeMs * 1_000)),
    ...records.filter(({ event }, at) => (stored[at] === undefined) === (event.action === "DELETE")),
  ].map(({ event }) => event);
}
