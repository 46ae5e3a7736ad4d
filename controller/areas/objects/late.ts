import { mapLimited } from "../../../common/concurrency.ts";
import { HISTORY_READS_IN_FLIGHT_MAX } from "../../../common/limits.ts";
import { NO_CELLS } from "../../store/cells.ts";
import type { EntityTrace } from "../../store/objects.ts";
import type { EntityWrite } from "./compose.ts";
import { keepsVersions, versionBefore, type HistorySource } from "./history.ts";

/**
 * Of writes with a time from outside, those below what their object has seen already are told what the object was at their time: their
 * versions are made of that, so that nothing of later times gets into them.
 */
export async function withPast(
  writes: readonly EntityWrite[],
  traces: ReadonlyMap<string, Pick<EntityTrace, "lastUs">>,
  source: HistorySource,
): Promise<readonly EntityWrite[]> {
  const isLate = ({ view, key, timeUs }: EntityWrite): boolean =>
    keepsVersions(view) && timeUs <= (traces.get(key)?.lastUs ?? 0);
  if (!writes.some(isLate)) return writes;
  return mapLimited(writes, HISTORY_READS_IN_FLIGHT_MAX, async (write) =>
    isLate(write) ? { ...write, past: await pastOf(write, source) } : write,
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
    cells: NO_CELLS,
    numbers: [],
  };
  return { old: { entity, row: version.row } };
}
