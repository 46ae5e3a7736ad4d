import { mapLimited } from "../../../../common/concurrency.ts";
import { EDGE_READS_IN_FLIGHT_MAX, ENDED_EDGES_KEPT_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Edge, EntityChange, EntityKey, ObjectStore } from "../../../store/objects.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import { lossesOf } from "../history/formeredges.ts";
import { keepsVersions } from "../history/history.ts";

export interface IncomingSource {
  readonly store: ObjectStore;
}

/** The edges to some objects, as read. */
export interface IncomingEdges {
  /** The greatest time of an edge; 0 without one. A removal above it covers all of them. */
  readonly lastUs: number;
  readonly edges: readonly Edge[];
  /** Objects with more edges than were kept: these are read again, page by page. */
  readonly more: ReadonlySet<EntityKey>;
}

export interface EdgesEnd extends IncomingSource {
  /** Edges of this target with times up to this one end. */
  readonly endUs: (target: EntityKey) => number;
  /** The current definitions: they say which sources keep versions. */
  readonly definitions: () => Promise<Pick<Snapshot, "byCid">>;
  readonly change: (changes: readonly EntityChange[]) => Promise<void>;
}

/** One read of each object that has no more than a page of them. At most `keptMax` edges are kept. */
export async function incomingEdges(
  targets: readonly EntityKey[],
  source: IncomingSource,
  keptMax = ENDED_EDGES_KEPT_MAX,
): Promise<IncomingEdges> {
  const edges: Edge[] = [];
  const more = new Set<EntityKey>();
  let lastUs = 0;
  await mapLimited(targets, EDGE_READS_IN_FLIGHT_MAX, async (target) => {
    for await (const page of pagesTo(target, source)) {
      for (const edge of page) lastUs = Math.max(lastUs, edge.timeUs);
      if (edges.length + page.length > keptMax) more.add(target);
      else edges.push(...page);
    }
  });
  return { lastUs, edges, more };
}

/**
 * Takes edges away from their sources because their targets were removed. Each goes with its own time, so that one
 * written since stays. Interruption and repetition do no harm: reads skip remaining edges while their target is gone,
 * and its next insert removes them.
 */
export async function endEdges({ edges, more }: IncomingEdges, of: EdgesEnd): Promise<void> {
  for (let from = 0; from < edges.length; from += OBJECT_PAGE_MAX)
    await endPage(edges.slice(from, from + OBJECT_PAGE_MAX), of);
  for (const target of more) {
    for await (const page of pagesTo(target, of)) await endPage(page, of);
  }
}

/** Reads the definitions after the page: a writer that keeps versions by newer ones wrote none of these edges. */
async function endPage(page: readonly Edge[], { endUs, definitions, change }: EdgesEnd): Promise<void> {
  const ended = page.filter((edge) => edge.timeUs <= endUs(edge.to));
  if (ended.length === 0) return;
  const snapshot = await definitions();
  const known = ended.filter(({ from }) => {
    const view = snapshot.byCid(from.cid);
    return view !== undefined && keepsVersions(view);
  });
  await change(lossesOf(known, endUs));
  await change(ended.map(({ from, timeUs, type, to }) => ({ key: from, timeUs, dropEdges: [{ type, to }] })));
}

async function* pagesTo(target: EntityKey, { store }: IncomingSource): AsyncGenerator<readonly Edge[]> {
  let cursor: string | undefined;
  do {
    const page = { limit: OBJECT_PAGE_MAX, ...(cursor === undefined ? {} : { cursor }) };
    const answer = await store.edges(target, "in", page);
    yield answer.items;
    cursor = answer.cursor;
  } while (cursor !== undefined);
}
