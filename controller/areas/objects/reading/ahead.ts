import { AppError } from "../../../../common/errors.ts";
import { WRITE_AHEAD_MAX_MS } from "../../../../common/limits.ts";
import type { ObjectStore, Page, PageRequest } from "../../../store/objects.ts";
import { seesAll, type Principal } from "../../permissions/index.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import { wholeId } from "../values/identity.ts";

/** The slot of the last write of an object, in milliseconds. */
const LAST_WRITE_SLOT = 0;

export interface AheadObject {
  /** Whole, as in `linux:h1`. */
  readonly id: string;
  readonly class: string;
  readonly vtimeMs: number;
}

export interface AheadSource {
  readonly store: ObjectStore;
  readonly snapshot: Snapshot;
  readonly principal: Principal;
  readonly nowMs: number;
}

/**
 * A page of objects whose last write is further ahead of the clock than `WRITE_AHEAD_MAX_MS`, in no order. The page may
 * be empty. Has only objects of classes in which the principal sees every object.
 */
export async function aheadOfClock(
  { limit, cursor: given }: PageRequest,
  source: AheadSource,
): Promise<Page<AheadObject>> {
  const { store, snapshot, principal, nowMs } = source;
  const { from, place } =
    given === undefined ? { from: Math.floor(nowMs) + WRITE_AHEAD_MAX_MS + 1 } : readCursor(given);
  const request = { terms: [], ranges: [{ slot: LAST_WRITE_SLOT, from }] };
  const { items, cursor } = await store.find(request, { limit, ...(place === undefined ? {} : { cursor: place }) });
  const objects = items.flatMap(({ key, lastUs }): AheadObject[] => {
    const view = snapshot.byCid(key.cid);
    if (view === undefined || !seesAll(principal, [view])) return [];
    return [{ id: wholeId(view, key.id), class: view.path, vtimeMs: Math.floor(lastUs / 1_000) }];
  });
  return cursor === undefined ? { items: objects } : { items: objects, cursor: `${from} ${cursor}` };
}

/** Every page uses the time of the first page. */
function readCursor(text: string): { readonly from: number; readonly place: string } {
  const [, from, place] = /^(\d{1,16}) (.+)$/s.exec(text) ?? [];
  if (from === undefined || place === undefined)
    throw new AppError("invalid", "This cursor does not belong to this request.");
  return { from: Number(from), place };
}
