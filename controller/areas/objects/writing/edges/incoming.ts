import { mapLimited } from "../../../../../common/concurrency.ts";
import { EDGES_ENDED_IN_CALL_MAX, EDGE_READS_IN_FLIGHT_MAX, OBJECT_PAGE_MAX } from "../../../../../common/limits.ts";
import type { Edge, EntityChange, EntityKey, ObjectStore, Page } from "../../../../store/objects.ts";
import type { Snapshot } from "../../definitions/snapshot.ts";
import { lossesOf } from "../../history/formeredges.ts";
import { keepsVersions } from "../../history/history.ts";
import { isOfFormer } from "../../values/edgelives.ts";

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
  /** Time of the removal of this target. Edges to the object that was removed then end. */
  readonly endUs: (target: EntityKey) => number;
  /** True for further edges that end as well; absent: none. */
  readonly alsoEnds?: (edge: Edge) => boolean;
  /** The current definitions, which say what sources keep versions. */
  readonly definitions: () => Promise<Pick<Snapshot, "byCid">>;
  readonly change: (changes: readonly EntityChange[]) => Promise<void>;
}

/** Reads edges until `keptMax` are kept. Reads a target once if it has at most a page of edges. */
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
 * Removes edges whose targets were removed. Each edge is removed with its own time, so an edge that is written later
 * stays. Interruption and repetition do no harm, because reads skip edges that are not newer than the removal of their
 * target, even after the target was inserted again. Such an insert removes them.
 */
export async function endEdges(edges: readonly Edge[], of: EdgesEnd): Promise<void> {
  for (let from = 0; from < edges.length; from += OBJECT_PAGE_MAX)
    await endPage(edges.slice(from, from + OBJECT_PAGE_MAX), of);
}

/**
 * Reads the definitions after the page. So no edge of the page was written under newer definitions that keep versions.
 */
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
