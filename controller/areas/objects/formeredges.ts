import { createHash } from "node:crypto";
import { CHANGE_BATCH_MAX } from "../../../common/limits.ts";
import { decodeStored, encodePacked } from "../../store/format.ts";
import type { EdgeEnd, Entity, EntityChange, EntityKey, Page, PageRequest } from "../../store/objects.ts";
import { GRAVES_CID } from "./graves.ts";
import { keepsVersions, versionsAt, type HistorySource } from "./history.ts";
import { type Place } from "./locate.ts";

/** An edge that an object of a class with versions has, or had. */
export interface FormerEdge extends EdgeEnd {
  readonly from: EntityKey;
}

const EDGE_CELL = "e";

/**
 * What has to be written before edges are added, so that they can be found from their targets when they are gone. Too many are harmless: the
 * versions of the source say when there was such an edge.
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

/** What removes the marks of all edges that the versions of these objects know. To be asked before the versions are removed. */
export async function marksEnd(places: readonly Place[], timeUs: number, source: HistorySource): Promise<EntityChange[]> {
  const keys = new Map<string, EntityKey>();
  for (const place of places) {
    for await (const versions of versionsAt(place, {}, source)) {
      for (const { type, to } of versions.flatMap((version) => version.added)) {
        const key = markKey({ from: place.key, type, to });
        keys.set(key.id, key);
      }
    }
  }
  return [...keys.values()].map((key) => ({ key, timeUs, death: true }));
}

/** Edges that ever went to an object from those of classes with versions. Pages, which may be empty. */
export async function* formerEdgesTo(target: Place, { store, patience }: HistorySource): AsyncGenerator<readonly FormerEdge[]> {
  let answer: Page<Entity> = { items: [] };
  do {
    const page: PageRequest = { limit: CHANGE_BATCH_MAX, ...(answer.cursor === undefined ? {} : { cursor: answer.cursor }) };
    answer = await patience.repeat(() => store.find({ terms: [targetTerm(target.key)] }, page));
    yield answer.items.flatMap(edgeOfMark).filter((edge) => edge.to.cid === target.key.cid && edge.to.id === target.key.id);
  } while (answer.cursor !== undefined);
}

export function edgeText({ from, type, to }: FormerEdge): string {
  return JSON.stringify([type, from.cid, from.id, to.cid, to.id]);
}

function edgeOfMark({ key, cells }: Entity): FormerEdge[] {
  const cell = cells.get(EDGE_CELL);
  if (key.cid !== GRAVES_CID || cell === undefined) return [];
  const [type, fromCid, fromId, toCid, toId] = decodeStored<readonly [string, number, string, number, string]>(cell.value);
  return [{ type, from: { cid: fromCid, id: fromId }, to: { cid: toCid, id: toId } }];
}

function markKey(edge: FormerEdge): EntityKey {
  return { cid: GRAVES_CID, id: `e${createHash("sha256").update(edgeText(edge)).digest("hex")}` };
}

function targetTerm(target: EntityKey): string {
  return `e${target.cid}:${target.id}`;
}
