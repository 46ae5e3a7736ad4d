import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { HISTORY_READS_IN_FLIGHT_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { ObjectStore, Page, EntityVersion, PageRequest, TimeRangeUs } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { Place } from "../reading/locate.ts";
import type { HistoryRange, ObjectRow, ObjectVersion } from "../types.ts";
import { wholeId } from "../values/identity.ts";
import { decodeVersion, type Version } from "../values/versions.ts";

export interface HistorySource {
  readonly store: ObjectStore;
}

/** Source for states at an earlier time. */
export interface StateSource extends HistorySource {
  readonly nowMs: number;
}

export function keepsVersions(view: LoadedClass): boolean {
  return view.options.version && view.kind === "entity" && view.provide === undefined;
}

export function withoutVersions(view: LoadedClass): AppError {
  return new AppError("invalid", `[Valid] class ${view.path} keeps no versions of its objects.`, {
    details: { class: view.path },
  });
}

/** `AppError("invalid")` for a time of which the class may have lost versions. */
export function requireVersionsAt(view: LoadedClass, asOfMs: number, nowMs: number): void {
  const sinceMs = view.versionsSinceMs(nowMs);
  if (asOfMs >= sinceMs) return;
  const since = new Date(sinceMs).toISOString();
  throw new AppError("invalid", `[Valid] class ${view.path} has its earlier versions since ${since} alone.`, {
    details: { class: view.path, since },
  });
}

/**
 * Versions of the objects at `places`; those of one object come newest first. `AppError("invalid")` if no class keeps
 * versions.
 */
export async function* versionsOf(
  places: readonly Place[],
  range: HistoryRange,
  source: HistorySource,
): AsyncGenerator<readonly ObjectVersion[]> {
  const kept = places.filter((place) => keepsVersions(place.view));
  const [first] = places;
  if (first !== undefined && kept.length === 0) throw withoutVersions(first.view);
  for (const place of kept) {
    for await (const versions of versionsAt(place, { ...microseconds(range), signal: range.signal }, source))
      yield versions.map((version) => told(place, version));
  }
}

/** Versions at one place, newest first. */
export async function* versionsAt(
  { view, key }: Place,
  range: TimeRangeUs & { readonly signal?: AbortSignal | undefined },
  { store }: HistorySource,
): AsyncGenerator<readonly Version[]> {
  const { signal, ...rangeUs } = range;
  let cursor: string | undefined;
  do {
    if (signal?.aborted) throw new AppError("cancelled", "The read was stopped.");
    const answer = await store.history(key, rangeUs, pageAfter(cursor, OBJECT_PAGE_MAX));
    if (answer.items.length > 0) yield answer.items.map((item) => decodeVersion(view, item));
    cursor = answer.cursor;
  } while (cursor !== undefined);
}

/** The latest version at or before `toUs`. */
export async function versionBefore(
  { view, key }: Place,
  toUs: number,
  { store }: HistorySource,
): Promise<Version | undefined> {
  let answer: Page<EntityVersion> = { items: [] };
  do {
    const { cursor } = answer;
    answer = await store.history(key, { toUs }, pageAfter(cursor, 1));
    const [item] = answer.items;
    if (item !== undefined) return decodeVersion(view, item);
  } while (answer.cursor !== undefined);
  return undefined;
}

/** Times of the latest versions, removals included. `undefined` if there is no version. */
export function latestVersions(places: readonly Place[], source: HistorySource): Promise<(number | undefined)[]> {
  return mapLimited(places, HISTORY_READS_IN_FLIGHT_MAX, async (place) =>
    keepsVersions(place.view) ? (await versionBefore(place, Number.MAX_SAFE_INTEGER, source))?.timeUs : undefined,
  );
}

/**
 * The objects at these places, by their versions at that time. `undefined` for an object that did not exist or is
 * unknown. Throws the errors of `requireVersionsAt`.
 */
export function objectsAt(
  places: readonly Place[],
  asOfMs: number,
  source: StateSource,
): Promise<(ObjectRow | undefined)[]> {
  return mapLimited(places, HISTORY_READS_IN_FLIGHT_MAX, async (place) => {
    requireVersionsAt(place.view, asOfMs, source.nowMs);
    const version = await versionBefore(place, lastMicrosecond(asOfMs), source);
    return version === undefined ? undefined : objectOfVersion(place, version, asOfMs);
  });
}

/** The last states of the objects at these places. If versions do not tell the state, the object has only its id. */
export function lastStates(places: readonly Place[], source: HistorySource): Promise<ObjectRow[]> {
  return mapLimited(places, HISTORY_READS_IN_FLIGHT_MAX, async (place) => {
    for await (const versions of versionsAt(place, {}, source)) {
      const last = versions.find((version) => version.row !== undefined);
      if (last?.row !== undefined) return { ...told(place, last), values: last.row };
    }
    return { id: wholeId(place.view, place.key.id), class: place.view, values: {}, vtimeMs: 0, ctimeMs: 0 };
  });
}

/** The last microsecond that belongs to a millisecond. */
export function lastMicrosecond(timeMs: number): number {
  return timeMs * 1_000 + 999;
}

function objectOfVersion({ view, key }: Place, version: Version, asOfMs: number): ObjectRow | undefined {
  if (version.row === undefined || (version.untilMs !== undefined && version.untilMs <= asOfMs)) return undefined;
  return {
    id: wholeId(view, key.id),
    class: view,
    values: version.row,
    vtimeMs: Math.floor(version.timeUs / 1_000),
    ctimeMs: version.ctimeMs,
  };
}

function told({ view, key }: Place, { timeUs, row, ctimeMs }: Version): ObjectVersion {
  return { id: wholeId(view, key.id), class: view, vtimeMs: Math.floor(timeUs / 1_000), ctimeMs, values: row };
}

function microseconds({ fromMs, toMs }: HistoryRange): TimeRangeUs {
  return {
    ...(fromMs === undefined ? {} : { fromUs: fromMs * 1_000 }),
    ...(toMs === undefined ? {} : { toUs: lastMicrosecond(toMs) }),
  };
}

function pageAfter(cursor: string | undefined, limit: number): PageRequest {
  return cursor === undefined ? { limit } : { limit, cursor };
}
