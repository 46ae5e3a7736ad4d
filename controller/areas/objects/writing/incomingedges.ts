import { mapLimited } from "../../../../common/concurrency.ts";
import { EDGES_ENDED_IN_CALL_MAX, EDGE_READS_IN_FLIGHT_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Edge, EntityChange, EntityKey, ObjectStore, Page } from "../../../store/objects.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import { lossesOf } from "../history/formeredges.ts";
import { keepsVersions } from "../history/history.ts";
import { isOfFormer } from "../values/edgelives.ts";

export interface IncomingSource {
  readonly store: ObjectStore;
}

/** The edges to some objects, as far as they were read. */
export interface IncomingEdges {
  readonly edges: readonly Edge[];
  /** Objects that may have more edges than were read. */
  readonly more: ReadonlySet<EntityKey>;
}

export interface EdgesEnd {
  /** The time of the removal of this target: edges that lead to what was removed then end. */
  readonly endUs: (target: EntityKey) => number;
  /** Others that end as well; absent: none. */
  readonly alsoEnds?: (edge: Edge) => boolean;
  /** The current definitions: they say which sources keep versions. */
  readonly definitions: () => Promise<Pick<Snapshot, "byCid">>;
  readonly change: (changes: readonly EntityChange[]) => Promise<void>;
}

/** Reads each object once if it has at most a page of edges, until `keptMax` edges are kept. */
export async function incomingEdges(
  targets: readonly EntityKey[],
  source: IncomingSource,
  keptMax = EDGES_ENDED_IN_CALL_MAX,
): Promise<IncomingEdges> {
  const edges: Edge[] = [];
  const more = new Set<EntityKey>();
  await mapLimited(targets, EDGE_READS_IN_FLIGHT_MAX, async (target) => {
    let cursor: string | undefined;
    do {
      if (edges.length >= keptMax) return void more.add(target);
      const page = await pageTo(target, cursor, source);
      const kept = page.items.slice(0, keptMax - edges.length);
      edges.push(...kept);
      if (kept.length < page.items.length) more.add(target);
      cursor = page.cursor;
    } while (cursor !== undefined);
  });
  return { edges, more };
}

/**
 * Takes edges away from their sources because their targets were removed. Each goes with its own time, so that one
 * written since stays. Interruption and repetition do no harm: reads skip edges that are as old as the removal of their
 * target, also when there is one of its name again, whose insert takes them away.
 */
export async function endEdges(edges: readonly Edge[], of: EdgesEnd): Promise<void> {
  for (let from = 0; from < edges.length; from += OBJECT_PAGE_MAX)
    await endPage(edges.slice(from, from + OBJECT_PAGE_MAX), of);
}

/** Reads the definitions after the page: a writer that keeps versions by newer ones wrote none of these edges. */
async function endPage(page: readonly Edge[], { endUs, alsoEnds, definitions, change }: EdgesEnd): Promise<void> {
  const ended = page.filter((edge) => isOfFormer(edge, endUs(edge.to)) || alsoEnds?.(edge) === true);
  if (ended.length === 0) return;
  const snapshot = await definitions();
  const known = ended.filter(({ from }) => {
    const view = snapshot.byCid(from.cid);
    return view !== undefined && keepsVersions(view);
  });
  await change(lossesOf(known, endUs));
  await change(ended.map(({ from, timeUs, type, to }) => ({ key: from, timeUs, dropEdges: [{ type, to }] })));
}

export function pageTo(target: EntityKey, cursor: string | undefined, { store }: IncomingSource): Promise<Page<Edge>> {
  return store.edges(target, "in", { limit: OBJECT_PAGE_MAX, ...(cursor === undefined ? {} : { cursor }) });
}
