import { AppError } from "../../../common/errors.ts";
import { OBJECT_PAGE_MAX } from "../../../common/limits.ts";
import type { ObjectStore, TimeRangeUs } from "../../store/objects.ts";
import { versionRow } from "./entity.ts";
import { wholeId } from "./identity.ts";
import type { Place } from "./locate.ts";
import type { Patience } from "./patience.ts";
import type { HistoryRange, ObjectVersion } from "./types.ts";
import type { LoadedClass } from "./views.ts";

export interface HistorySource {
  readonly store: ObjectStore;
  readonly patience: Patience;
}

/** Versions of the objects at `places`, of each newest first. */
export async function* versionsOf(places: readonly Place[], range: HistoryRange, source: HistorySource): AsyncGenerator<readonly ObjectVersion[]> {
  const kept = places.filter((place) => place.view.options.version && place.view.kind === "entity");
  const [first] = places;
  if (first !== undefined && kept.length === 0) throw withoutVersions(first.view);
  for (const place of kept) yield* versionsAt(place, range, source);
}

export function withoutVersions(view: LoadedClass): AppError {
  return new AppError("invalid", `[Valid] class ${view.path} keeps no versions: it was made without version=true.`, { details: { class: view.path } });
}

async function* versionsAt({ view, key }: Place, range: HistoryRange, { store, patience }: HistorySource): AsyncGenerator<readonly ObjectVersion[]> {
  const rangeUs = microseconds(range);
  const id = wholeId(view, key.id);
  let cursor: string | undefined;
  do {
    if (range.signal?.aborted) throw new AppError("cancelled", "The read was stopped.");
    const page = { limit: OBJECT_PAGE_MAX, ...(cursor === undefined ? {} : { cursor }) };
    const answer = await patience.repeat(() => store.history(key, rangeUs, page));
    const versions = answer.items.map(({ timeUs, value }) => ({ id, class: view, vtimeMs: Math.floor(timeUs / 1_000), values: versionRow(view, value) }));
    if (versions.length > 0) yield versions;
    cursor = answer.cursor;
  } while (cursor !== undefined);
}

/** A millisecond is all the microseconds that begin in it. */
function microseconds({ fromMs, toMs }: HistoryRange): TimeRangeUs {
  return { ...(fromMs === undefined ? {} : { fromUs: fromMs * 1_000 }), ...(toMs === undefined ? {} : { toUs: toMs * 1_000 + 999 }) };
}
