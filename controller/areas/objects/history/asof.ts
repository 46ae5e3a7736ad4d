import { AppError } from "../../../../common/errors.ts";
import { parseObjectId } from "../../../../common/ids.ts";
import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Principal } from "../../permissions/index.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { Place } from "../reading/locate.ts";
import { planRead, scopeOf, type ReadPlan } from "../reading/readplan.ts";
import type { ObjectRow, ReadExplanation, ReadRequest } from "../types.ts";
import {
  keepsVersions,
  lastMicrosecond,
  objectsAt,
  requireVersionsAt,
  type StateSource,
  withoutVersions,
} from "./history.ts";
import { removedPlaces, type RemovedSource } from "./removed.ts";

export interface AsOfRequest extends ReadRequest {
  readonly asOfMs: number;
}

export interface AsOfSource extends RemovedSource, StateSource {
  readonly principal: Principal;
  readonly snapshot: Snapshot;
}

/**
 * Plan of a read at an earlier time. No index narrows the read, because an object that matched then may not match now.
 */
export interface AsOfPlan {
  /** For the objects that exist now. */
  readonly present: ReadPlan;
  readonly views: readonly LoadedClass[];
}

/** `AppError("invalid")` for a class that keeps no versions, or may not have those of that time any more. */
export function planAsOfRead(
  snapshot: Snapshot,
  request: AsOfRequest,
  { readable, nowMs }: { readonly readable: (view: LoadedClass) => boolean; readonly nowMs: number },
): AsOfPlan {
  const present = planRead(snapshot, { ...request, where: [] }, readable);
  const labels = new Set(request.ids?.map((id) => parseObjectId(id)?.label));
  const views = scopeOf(snapshot, request).filter(
    (view) => readable(view) && (request.ids === undefined || labels.has(view.label)),
  );
  const unfit = views.find((view) => !keepsVersions(view));
  if (unfit !== undefined) throw withoutVersions(unfit);
  for (const view of views) requireVersionsAt(view, request.asOfMs, nowMs);
  return { present, views };
}

export function explainAsOf({ present }: AsOfPlan, { asOfMs }: AsOfRequest): ReadExplanation {
  const time = new Date(asOfMs).toISOString();
  return {
    steps: [...present.explanation().steps, "graves of objects removed since"].map((step) => `${step}, as of ${time}`),
    used: [],
  };
}

/**
 * The objects at an earlier time. An object that was not written since then is returned as it is. For others, and for
 * removed objects with a tombstone, versions give the state. An object that is removed or inserted during the read may
 * be returned twice or not at all.
 */
export async function* readAsOf(
  request: AsOfRequest,
  { present, views }: AsOfPlan,
  source: AsOfSource,
): AsyncGenerator<readonly ObjectRow[]> {
  const { reader, snapshot, principal } = source;
  if (present.byId !== undefined) return yield* placesAsOf(present.byId, request, source);
  for await (const rows of reader.read({ snapshot, principal, request }, present))
    yield* known(await rowsAsOf(rows, request.asOfMs, source));
  for (const view of views) yield* removedAsOf(view, request, source);
}

/** In the order of `places`. */
export async function objectsAsOf(
  places: readonly Place[],
  asOfMs: number,
  source: AsOfSource,
): Promise<(ObjectRow | undefined)[]> {
  const now = await source.reader.get(places.map((place) => [place]));
  const open = places.filter((_, at) => isChanged(now[at], asOfMs));
  const then = new Map<Place, ObjectRow | undefined>();
  for (const [at, object] of (await objectsAt(open, asOfMs, source)).entries())
    if (open[at] !== undefined) then.set(open[at], object);
  return places.map((place, at) => (then.has(place) ? then.get(place) : now[at]));
}

async function* placesAsOf(
  places: readonly Place[],
  request: AsOfRequest,
  source: AsOfSource,
): AsyncGenerator<readonly ObjectRow[]> {
  for (let from = 0; from < places.length; from += OBJECT_PAGE_MAX) {
    checkSignal(request);
    yield* known(await objectsAsOf(places.slice(from, from + OBJECT_PAGE_MAX), request.asOfMs, source));
  }
}

/** The rows at that time, not in the given order. `undefined` for objects that did not exist then. */
async function rowsAsOf(
  rows: readonly ObjectRow[],
  asOfMs: number,
  source: AsOfSource,
): Promise<(ObjectRow | undefined)[]> {
  const changed = rows.filter((row) => isChanged(row, asOfMs)).flatMap((row) => placeOf(source.snapshot, row));
  return [...rows.filter((row) => !isChanged(row, asOfMs)), ...(await objectsAt(changed, asOfMs, source))];
}

/** Objects of one class at that time that were removed since and not inserted again. */
async function* removedAsOf(
  view: LoadedClass,
  { asOfMs, signal }: AsOfRequest,
  source: AsOfSource,
): AsyncGenerator<readonly ObjectRow[]> {
  for await (const places of removedPlaces(view, { afterUs: lastMicrosecond(asOfMs), signal }, source)) {
    yield* known(await objectsAt(places, asOfMs, source));
  }
}

function isChanged(row: ObjectRow | undefined, asOfMs: number): boolean {
  return row === undefined || row.vtimeMs > asOfMs;
}

function placeOf(snapshot: Snapshot, row: ObjectRow): Place[] {
  const view = snapshot.byCid(row.class.cid);
  const id = parseObjectId(row.id)?.key;
  return view === undefined || id === undefined ? [] : [{ view, key: { cid: view.cid, id } }];
}

function* known(rows: readonly (ObjectRow | undefined)[]): Generator<readonly ObjectRow[]> {
  const there = rows.filter((row) => row !== undefined);
  if (there.length > 0) yield there;
}

function checkSignal({ signal }: AsOfRequest): void {
  if (signal?.aborted) throw new AppError("cancelled", "The read was stopped.");
}
