import { mapLimited } from "../../../../../common/concurrency.ts";
import { HISTORY_READS_IN_FLIGHT_MAX } from "../../../../../common/limits.ts";
import { NO_CELLS } from "../../../../store/cells.ts";
import type { EntityTrace } from "../../../../store/objects.ts";
import { keepsVersions, versionBefore, type HistorySource } from "../../history/history.ts";
import type { EntityWrite } from "../../values/compose.ts";

/**
 * Adds to each write below the latest time of its object the state of the object at the write's own time. Its version
 * is made from that state, so that it contains nothing that was written later. Returns `writes` at once if there is
 * nothing to add.
 */
export function withPast(
  writes: readonly EntityWrite[],
  traces: ReadonlyMap<string, Pick<EntityTrace, "lastUs">>,
  source: HistorySource,
): readonly EntityWrite[] | Promise<readonly EntityWrite[]> {
  const isBackdated = ({ view, key, timeUs }: EntityWrite): boolean =>
    keepsVersions(view) && timeUs <= (traces.get(key)?.lastUs ?? 0);
  if (!writes.some(isBackdated)) return writes;
  return mapLimited(writes, HISTORY_READS_IN_FLIGHT_MAX, async (write) =>
    isBackdated(write) ? { ...write, past: await pastOf(write, source) } : write,
  );
}

async function pastOf({ view, key, timeUs }: EntityWrite, source: HistorySource): Promise<Pick<EntityWrite, "old">> {
  const place = { view, key: { cid: view.cid, id: key } };
  const version = await versionBefore(place, timeUs - 1, source);
  if (version?.row === undefined) return { old: undefined };
  const entity = {
    key: place.key,
    birthUs: version.ctimeMs * 1_000,
    lastUs: version.timeUs,
    diedUs: 0,
    cells: NO_CELLS,
    numbers: [],
  };
  return { old: { entity, row: version.row } };
}
