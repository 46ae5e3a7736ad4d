import { mapLimited } from "../../../../common/concurrency.ts";
import { HISTORY_READS_IN_FLIGHT_MAX } from "../../../../common/limits.ts";
import type { EdgeEnd } from "../../../store/objects.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { Place } from "../reading/locate.ts";
import type { LostRelation, PastRelation, PastState } from "../types.ts";
import { wholeId } from "../values/identity.ts";
import type { Version } from "../values/versions.ts";
import { firstTakenUs, lastLossUs } from "./formeredges.ts";
import { versionsAt, type HistorySource } from "./history.ts";

export interface PastStatesSource extends HistorySource {
  readonly snapshot: Snapshot;
  /** True for a class whose objects the principal sees. Relations to objects of other classes are left out. */
  readonly isSeen: (view: LoadedClass) => boolean;
}

export interface PastStatesRange {
  readonly toUs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Versions of one object with all their stored data, newest first. */
export async function* pastStates(
  place: Place,
  { toUs, signal }: PastStatesRange,
  source: PastStatesSource,
): AsyncGenerator<readonly PastState[]> {
  const lostUs = await lastLossUs(place.key, source);
  for await (const versions of versionsAt(place, { ...(toUs !== undefined && { toUs }), signal }, source))
    yield await mapLimited(versions, HISTORY_READS_IN_FLIGHT_MAX, async (version) => {
      const lost = version.timeUs > lostUs ? [] : await lossesIn(place, version, source);
      return stateOf(place, { ...version, lost }, source);
    });
}

interface TakenEdge extends EdgeEnd {
  readonly timeUs: number;
}

/** Reads one edge after the other, because versions with many edges are rare, and so are lost edges. */
async function lossesIn({ key }: Place, { added, timeUs }: Version, source: PastStatesSource): Promise<TakenEdge[]> {
  const lost: TakenEdge[] = [];
  for (const edge of added) {
    const takenUs = await firstTakenUs({ ...edge, from: key }, timeUs, source);
    if (takenUs !== undefined) lost.push({ ...edge, timeUs: takenUs });
  }
  return lost;
}

function stateOf(
  { view, key }: Place,
  version: Version & { readonly lost: readonly TakenEdge[] },
  source: PastStatesSource,
): PastState {
  const { timeUs, row, ctimeMs: createdMs, untilMs } = version;
  const id = wholeId(view, key.id);
  if (row === undefined) return { id, timeUs };
  const added = relationsOf(version.added, source);
  const dropped = relationsOf(version.dropped, source);
  const lost = version.lost.flatMap((edge) =>
    relationsOf([edge], source).map((relation): LostRelation => ({ ...relation, timeUs: edge.timeUs })),
  );
  return { id, timeUs, state: { values: row, createdMs, untilMs, added, dropped, lost } };
}

function relationsOf(edges: readonly EdgeEnd[], { snapshot, isSeen }: PastStatesSource): PastRelation[] {
  return edges.flatMap(({ type, to }) => {
    const view = snapshot.byCid(to.cid);
    return view === undefined || !isSeen(view) ? [] : [{ type, target: wholeId(view, to.id) }];
  });
}
