import { createHash } from "node:crypto";
import { CHANGE_BATCH_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import { decodeStored, encodePacked } from "../../../store/format.ts";
import type {
  EdgeEnd,
  Entity,
  EntityChange,
  EntityKey,
  EntityVersion,
  Page,
  PageRequest,
  TimeRangeUs,
} from "../../../store/objects.ts";
import { type Place } from "../reading/locate.ts";
import { INTERNAL_CID } from "../values/tombstones.ts";
import { keepsVersions, versionsAt, type HistorySource } from "./history.ts";

/** A current or past edge of an object of a class with versions. */
export interface FormerEdge extends EdgeEnd {
  readonly from: EntityKey;
}

const EDGE_CELL = "e";
const TAKEN = encodePacked({ taken: true });

/**
 * Marks to write before edges are added, so that removed edges can be found from their targets. Superfluous marks do no
 * harm: the versions of the source say when the edge existed.
 */
export function marksOf(place: Place, edges: readonly EdgeEnd[], timeUs: number): EntityChange[] {
  if (!keepsVersions(place.view)) return [];
  return edges.map(({ type, to }) => ({
    key: markKey({ from: place.key, type, to }),
    timeUs,
    birth: true,
    addTerms: [targetTerm(to)],
    cells: new Map([[EDGE_CELL, encodePacked([type, place.key.cid, place.key.id, to.cid, to.id])]]),
  }));
}

/**
 * Writes to make before these edges are removed because their targets were removed. Pass only edges from objects in
 * classes with versions. The sources get no version for that. Instead, a version of each edge's mark keeps the time,
 * and a mark of the source says that it lost an edge.
 */
export function lossesOf(edges: readonly FormerEdge[], atUs: (target: EntityKey) => number): EntityChange[] {
  const losers = new Map<string, EntityChange>();
  const taken = edges.map((edge): EntityChange => {
    const timeUs = atUs(edge.to);
    const key = lossKey(edge.from);
    losers.set(key.id, { key, timeUs: Math.max(timeUs, losers.get(key.id)?.timeUs ?? 0), birth: true });
    return { key: markKey(edge), timeUs, version: TAKEN };
  });
  return [...taken, ...losers.values()];
}

/**
 * Time in microseconds when the object last lost an edge by the removal of a target; 0: never. Only for classes with
 * versions.
 */
export async function lastLossUs(from: EntityKey, { store }: HistorySource): Promise<number> {
  const [loss] = await store.get([lossKey(from)]);
  return loss?.birthUs ?? 0;
}

/** True if a removal of the target removed the edge at a time in the range. */
export async function wasTaken(edge: FormerEdge, range: TimeRangeUs, { store }: HistorySource): Promise<boolean> {
  let answer: Page<EntityVersion> = { items: [] };
  do {
    const page: PageRequest = { limit: 1, ...(answer.cursor === undefined ? {} : { cursor: answer.cursor }) };
    answer = await store.history(markKey(edge), range, page);
    if (answer.items.length > 0) return true;
  } while (answer.cursor !== undefined);
  return false;
}

/** Time in microseconds when a removal of the target first took the edge away after `afterUs`; `undefined`: never. */
export async function firstTakenUs(
  edge: FormerEdge,
  afterUs: number,
  { store }: HistorySource,
): Promise<number | undefined> {
  let first: number | undefined;
  let answer: Page<EntityVersion> = { items: [] };
  do {
    const page = { limit: OBJECT_PAGE_MAX, ...(answer.cursor === undefined ? {} : { cursor: answer.cursor }) };
    answer = await store.history(markKey(edge), { fromUs: afterUs + 1 }, page);
    first = answer.items.at(-1)?.timeUs ?? first;
  } while (answer.cursor !== undefined);
  return first;
}

/** Removes the marks of all edges in the versions of these objects. Call it before the versions are removed. */
export async function marksEnd(
  places: readonly Place[],
  timeOf: (place: Place) => number,
  source: HistorySource,
): Promise<EntityChange[]> {
  const ends = new Map<string, EntityChange>();
  for (const place of places) {
    const timeUs = timeOf(place);
    const end = (key: EntityKey, dropTerms: readonly string[]): unknown =>
      ends.set(key.id, { key, timeUs, death: true, forgetHistory: true, dropTerms });
    end(lossKey(place.key), []);
    for await (const versions of versionsAt(place, {}, source)) {
      for (const { type, to } of versions.flatMap((version) => version.added)) {
        end(markKey({ from: place.key, type, to }), [targetTerm(to)]);
      }
    }
  }
  return [...ends.values()];
}

/** Edges that ever led to an object from objects of classes with versions. Pages may be empty. */
export async function* formerEdgesTo(target: Place, { store }: HistorySource): AsyncGenerator<readonly FormerEdge[]> {
  let answer: Page<Entity> = { items: [] };
  do {
    const page: PageRequest = {
      limit: CHANGE_BATCH_MAX,
      ...(answer.cursor === undefined ? {} : { cursor: answer.cursor }),
    };
    answer = await store.find({ terms: [targetTerm(target.key)] }, page);
    yield answer.items
      .flatMap(edgeOfMark)
      .filter((edge) => edge.to.cid === target.key.cid && edge.to.id === target.key.id);
  } while (answer.cursor !== undefined);
}

export function edgeText({ from, type, to }: FormerEdge): string {
  return JSON.stringify([type, from.cid, from.id, to.cid, to.id]);
}

function edgeOfMark({ key, cells }: Entity): FormerEdge[] {
  const cell = cells.get(EDGE_CELL);
  if (key.cid !== INTERNAL_CID || cell === undefined) return [];
  const [type, fromCid, fromId, toCid, toId] = decodeStored<readonly [string, number, string, number, string]>(
    cell.value,
  );
  return [{ type, from: { cid: fromCid, id: fromId }, to: { cid: toCid, id: toId } }];
}

function markKey(edge: FormerEdge): EntityKey {
  return { cid: INTERNAL_CID, id: `e${createHash("sha256").update(edgeText(edge)).digest("hex")}` };
}

function lossKey(from: EntityKey): EntityKey {
  return { cid: INTERNAL_CID, id: `l${from.cid}:${from.id}` };
}

function targetTerm(target: EntityKey): string {
  return `e${target.cid}:${target.id}`;
}
