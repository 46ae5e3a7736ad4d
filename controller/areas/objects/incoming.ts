import { mapLimited } from "../../../common/concurrency.ts";
import { EDGE_READS_IN_FLIGHT_MAX, ENDED_EDGES_KEPT_MAX, OBJECT_PAGE_MAX } from "../../../common/limits.ts";
import type { Edge, EntityChange, EntityKey, ObjectStore } from "../../store/objects.ts";
import { lossesOf } from "./formeredges.ts";
import { keepsVersions } from "./history.ts";
import type { Patience } from "./patience.ts";
import type { Snapshot } from "./snapshot.ts";

export interface IncomingSource {
  readonly store: ObjectStore;
  readonly patience: Patience;
}

/** Edges that come in to some objects, as they were read. */
export interface Incoming {
  /** The greatest time of one; 0 when there is none: a removal is put above it, so that it covers all that were seen. */
  readonly lastUs: number;
  readonly edges: readonly Edge[];
  /** Objects that have more than were kept: theirs are read once more, page by page. */
  readonly more: ReadonlySet<EntityKey>;
}

export interface EdgesEnd extends IncomingSource {
  /** Of a target: its edges with times up to this are gone. */
  readonly endUs: (target: EntityKey) => number;
  /** The definitions of now: they say which sources keep versions. */
  readonly definitions: () => Promise<Pick<Snapshot, "byCid">>;
  readonly change: (changes: readonly EntityChange[]) => Promise<void>;
}

/** One read of each object that has no more than a page of them. At most `keptMax` edges are kept. */
export async function incomingEdges(
  targets: readonly EntityKey[],
  source: IncomingSource,
  keptMax = ENDED_EDGES_KEPT_MAX,
): Promise<Incoming> {
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
 * Takes edges away from their sources because their targets were removed. Each goes with its own time, so that one written since stays, and
 * to be interrupted, or done twice, does no harm: edges that are left are not told while their target is gone, and its next birth ends them.
 */
export async function endEdges({ edges, more }: Incoming, of: EdgesEnd): Promise<void> {
  for (let from = 0; from < edges.length; from += OBJECT_PAGE_MAX)
    await endPage(edges.slice(from, from + OBJECT_PAGE_MAX), of);
  for (const target of more) {
    for await (const page of pagesTo(target, of)) await endPage(page, of);
  }
}

/** The definitions are asked for after the page was read: whoever keeps versions by newer ones wrote none of these edges. */
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

async function* pagesTo(target: EntityKey, { store, patience }: IncomingSource): AsyncGenerator<readonly Edge[]> {
  let cursor: string | undefined;
  do {
    const page = { limit: OBJECT_PAGE_MAX, ...(cursor === undefined ? {} : { cursor }) };
    const answer = await patience.repeat(() => store.edges(target, "in", page));
    yield answer.items;
    cursor = answer.cursor;
  } while (cursor !== undefined);
}
