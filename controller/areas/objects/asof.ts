import { AppError } from "../../../common/errors.ts";
import { parseObjectId } from "../../../common/ids.ts";
import { OBJECT_PAGE_MAX } from "../../../common/limits.ts";
import { buriedPlaces, type BuriedSource } from "./buried.ts";
import { keepsVersions, lastMicrosecond, objectsAt, withoutVersions } from "./history.ts";
import type { Place } from "./locate.ts";
import { outlineOf, scopeOf, type Outline } from "./outline.ts";
import type { Snapshot } from "./snapshot.ts";
import type { ObjectRow, ReadPlan, ReadRequest } from "./types.ts";
import type { LoadedClass } from "./views.ts";
import type { Principal } from "../permissions/index.ts";

export interface AsOfRequest extends ReadRequest {
  readonly asOfMs: number;
}

export interface AsOfSource extends BuriedSource {
  readonly principal: Principal;
  readonly snapshot: Snapshot;
}

/** What a read of an earlier time looks at. No index of now narrows it: what matched then may not match any more. */
export interface AsOfOutline {
  /** Of the objects there are now. */
  readonly present: Outline;
  readonly views: readonly LoadedClass[];
}

/** `AppError("invalid")` for a class that keeps no versions. */
export function outlineAsOf(
  snapshot: Snapshot,
  request: AsOfRequest,
  readable: (view: LoadedClass) => boolean,
): AsOfOutline {
  const present = outlineOf(snapshot, { ...request, where: [] }, readable);
  const labels = new Set(request.ids?.map((id) => parseObjectId(id)?.label));
  const views = scopeOf(snapshot, request).filter(
    (view) => readable(view) && (request.ids === undefined || labels.has(view.label)),
  );
  const unfit = views.find((view) => !keepsVersions(view));
  if (unfit !== undefined) throw withoutVersions(unfit);
  return { present, views };
}

export function planAsOf({ present }: AsOfOutline, { asOfMs }: AsOfRequest): ReadPlan {
  const time = new Date(asOfMs).toISOString();
  return {
    steps: [...present.plan.steps, "graves of objects removed since"].map((step) => `${step}, as of ${time}`),
    used: [],
  };
}

/**
 * The objects as they were. One that was not written since is as it is; of the others, and of those in graves, the versions tell. An object
 * that is removed or inserted while this goes on may be answered twice or not at all.
 */
export async function* readAsOf(
  request: AsOfRequest,
  { present, views }: AsOfOutline,
  source: AsOfSource,
): AsyncGenerator<readonly ObjectRow[]> {
  const { reader, snapshot, principal } = source;
  if (present.byId !== undefined) return yield* placesAsOf(present.byId, request, source);
  for await (const rows of reader.read({ snapshot, principal, request }, present))
    yield* known(await rowsAsOf(rows, request.asOfMs, source));
  for (const view of views) yield* buriedAsOf(view, request, source);
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

/** Each row as it was. */
async function rowsAsOf(
  rows: readonly ObjectRow[],
  asOfMs: number,
  source: AsOfSource,
): Promise<(ObjectRow | undefined)[]> {
  const changed = rows.filter((row) => isChanged(row, asOfMs)).flatMap((row) => placeOf(source.snapshot, row));
  return [...rows.filter((row) => !isChanged(row, asOfMs)), ...(await objectsAt(changed, asOfMs, source))];
}

/** Objects of one class that were removed since, and are not there again: those were among the present ones. */
async function* buriedAsOf(
  view: LoadedClass,
  { asOfMs, signal }: AsOfRequest,
  source: AsOfSource,
): AsyncGenerator<readonly ObjectRow[]> {
  for await (const places of buriedPlaces(view, { afterUs: lastMicrosecond(asOfMs), signal }, source)) {
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
