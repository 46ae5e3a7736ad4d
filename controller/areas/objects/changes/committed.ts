import { parseObjectId } from "../../../../common/ids.ts";
import type { ObjectStore } from "../../../store/objects.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import { inPages } from "../reading/locate.ts";
import type { WriteEvent } from "../values/events.ts";

/**
 * The events whose writes were made. The time of the object decides: an unmade write counts as made if a later write of
 * the same object was made. Events of dropped classes are left out.
 */
export async function committedEvents<E extends WriteEvent>(
  events: readonly E[],
  of: { readonly store: ObjectStore; readonly snapshot: Snapshot },
): Promise<E[]> {
  const { store, snapshot } = of;
  const placed = events.flatMap((event) => {
    const view = snapshot.get(event.class);
    const id = parseObjectId(event.id)?.key;
    return view === undefined || id === undefined ? [] : [{ event, kind: view.kind, key: { cid: view.cid, id } }];
  });
  const entities = placed.filter(({ kind }) => kind === "entity");
  const traces = await inPages(
    entities.map(({ key }) => key),
    (keys) => store.trace(keys),
  );
  const records = placed.filter(({ kind }) => kind === "record");
  const stored = await inPages(
    records.map(({ key }) => key),
    (keys) => store.getRecords(keys),
  );
  return [
    ...entities.filter(({ event }, at) => (traces[at]?.lastUs ?? 0) >= Math.round(event.timeMs * 1_000)),
    ...records.filter(({ event }, at) => (stored[at] === undefined) === (event.action === "DELETE")),
  ].map(({ event }) => event);
}
