import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { EDGE_READS_IN_FLIGHT_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Edge, EntityKey, ObjectStore } from "../../../store/objects.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { EdgeRequest, ObjectEdge } from "../types.ts";
import { isOfFormer } from "../values/edgelives.ts";
import { wholeId } from "../values/identity.ts";
import { inPages, placeText, type Place } from "./locate.ts";

export interface EdgeSource {
  readonly store: ObjectStore;
  readonly snapshot: Snapshot;
  readonly readable: (view: LoadedClass) => boolean;
}

/** Position of a read of the edges of one object. */
interface Reading {
  readonly key: EntityKey;
  readonly cursor?: string;
}

/** Edges from or to the objects at `places`. Reads one page of a few objects at a time. */
export async function* edgesOf(
  places: readonly Place[],
  request: EdgeRequest,
  source: EdgeSource,
): AsyncGenerator<readonly ObjectEdge[]> {
  const starts = new Map(
    places
      .filter((place) => place.view.kind === "entity" || request.direction === "in")
      .map((place) => [placeText(place), place.key]),
  );
  let open: readonly Reading[] = [...starts.values()].map((key) => ({ key }));
  while (open.length > 0) {
    if (request.signal?.aborted) throw new AppError("cancelled", "The read was stopped.");
    const pages = await mapLimited(open.slice(0, EDGE_READS_IN_FLIGHT_MAX), EDGE_READS_IN_FLIGHT_MAX, (reading) =>
      pageOf(reading, request, source),
    );
    // Continues with objects that have begun, so that only a few are in progress.
    open = [...pages.flatMap((page) => page.rest), ...open.slice(EDGE_READS_IN_FLIGHT_MAX)];
    const edges = await living(
      pages.flatMap((page) => page.edges),
      source,
    );
    if (edges.length > 0) yield edges;
  }
}

async function pageOf(
  { key, cursor }: Reading,
  request: EdgeRequest,
  { store }: EdgeSource,
): Promise<{ edges: readonly Edge[]; rest: Reading[] }> {
  const type = request.type === undefined ? {} : { type: request.type };
  const page = { limit: OBJECT_PAGE_MAX, ...type, ...(cursor === undefined ? {} : { cursor }) };
  const answer = await store.edges(key, request.direction, page);
  return { edges: answer.items, rest: answer.cursor === undefined ? [] : [{ key, cursor: answer.cursor }] };
}

/** The store leaves out edges whose source does not exist. The targets are checked here. */
async function living(edges: readonly Edge[], source: EdgeSource): Promise<ObjectEdge[]> {
  const seen = edges.flatMap((edge) => named(edge, source));
  const diedUs = await deathsOf(
    seen.map((entry) => entry.to),
    source,
  );
  return seen
    .filter((entry) => !isOfFormer(entry, diedUs.get(placeText(entry.to)) ?? Infinity))
    .map(({ edge }) => edge);
}

/** An edge to return if its target exists and is not a later object with the same id. */
export interface NamedEdge extends Pick<Edge, "timeUs" | "value"> {
  readonly edge: ObjectEdge;
  readonly to: Place;
}

/** Empty if the type or the class of an end was dropped, or if an end may not be read. */
export function named(edge: Edge, { snapshot, readable }: Pick<EdgeSource, "snapshot" | "readable">): NamedEdge[] {
  const from = snapshot.byCid(edge.from.cid);
  const to = snapshot.byCid(edge.to.cid);
  if (from === undefined || to === undefined || !snapshot.hasEdgeType(edge.type) || !readable(from) || !readable(to))
    return [];
  const ends = {
    source: wholeId(from, edge.from.id),
    target: wholeId(to, edge.to.id),
    sourceClass: from.path,
    targetClass: to.path,
  };
  const { timeUs, value } = edge;
  return [
    {
      timeUs,
      ...(value && { value }),
      edge: { type: edge.type, ...ends, timeMs: Math.floor(timeUs / 1_000) },
      to: { view: to, key: edge.to },
    },
  ];
}

/**
 * Last removal of an earlier object with the same id, for each object that exists, by the text of its place. Edges with
 * times up to it led to the earlier object, and may not be removed yet. 0 for a record.
 */
export async function deathsOf(
  places: readonly Place[],
  { store }: Pick<EdgeSource, "store">,
): Promise<ReadonlyMap<string, number>> {
  const unique = [...new Map(places.map((place) => [placeText(place), place])).values()];
  const diedUs = new Map<string, number>();
  for (const kind of ["entity", "record"] as const) {
    const ofKind = unique.filter((place) => place.view.kind === kind);
    const read = async (keys: readonly EntityKey[]): Promise<readonly (number | undefined)[]> =>
      kind === "entity"
        ? (await store.get(keys)).map((entity) => entity?.diedUs)
        : (await store.getRecords(keys)).map((record) => record && 0);
    const found = await inPages(
      ofKind.map((place) => place.key),
      read,
    );
    for (const [at, place] of ofKind.entries()) {
      const died = found[at];
      if (died !== undefined) diedUs.set(placeText(place), died);
    }
  }
  return diedUs;
}
