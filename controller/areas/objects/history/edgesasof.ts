import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import {
  EDGES_AS_OF_IN_FLIGHT_MAX,
  EDGES_AS_OF_MAX,
  HISTORY_READS_IN_FLIGHT_MAX,
  OBJECT_PAGE_MAX,
} from "../../../../common/limits.ts";
import type { Edge } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { deathsOf, named, type NamedEdge } from "../reading/edges.ts";
import { placeText, type Place } from "../reading/locate.ts";
import type { EdgeRequest, ObjectEdge } from "../types.ts";
import { isOfFormer } from "../values/edgelives.ts";
import { objectsAsOf, type AsOfSource } from "./asof.ts";
import { edgeText, formerEdgesTo, lastLossUs, wasTaken } from "./formeredges.ts";
import {
  keepsVersions,
  lastMicrosecond,
  objectsAt,
  requireVersionsAt,
  versionsAt,
  withoutVersions,
} from "./history.ts";

export interface AsOfEdgeRequest extends EdgeRequest {
  readonly asOfMs: number;
}

export interface AsOfEdgeSource extends AsOfSource {
  readonly readable: (view: LoadedClass) => boolean;
}

/**
 * Edges at an earlier time. If their source was not written since, they are its current edges; otherwise its versions
 * tell them.
 */
export async function* edgesAsOf(
  places: readonly Place[],
  request: AsOfEdgeRequest,
  source: AsOfEdgeSource,
): AsyncGenerator<readonly ObjectEdge[]> {
  const unfit = places.find((place) => !keepsVersions(place.view));
  if (unfit !== undefined) throw withoutVersions(unfit.view);
  for (const { view } of places) requireVersionsAt(view, request.asOfMs, source.nowMs);
  const read = request.direction === "out" ? edgesFrom : edgesTo;
  const starts = [...new Map(places.map((start) => [placeText(start), start])).values()];
  for (let from = 0; from < starts.length; from += EDGES_AS_OF_IN_FLIGHT_MAX) {
    const some = starts.slice(from, from + EDGES_AS_OF_IN_FLIGHT_MAX);
    const edges = await mapLimited(some, EDGES_AS_OF_IN_FLIGHT_MAX, (place) => collected(read(place, request, source)));
    for (const page of paged(edges.flat())) yield* ofLiving(page, request, source);
  }
}

async function collected(pages: AsyncIterable<readonly Edge[]>): Promise<Edge[]> {
  const edges: Edge[] = [];
  for await (const page of pages) {
    for (const edge of page) edges.push(edge);
    checkCount(edges.length);
  }
  return edges;
}

function* paged(edges: readonly Edge[]): Generator<readonly Edge[]> {
  for (let from = 0; from < edges.length; from += OBJECT_PAGE_MAX) yield edges.slice(from, from + OBJECT_PAGE_MAX);
}

async function* ofLiving(
  edges: readonly Edge[],
  { asOfMs }: AsOfEdgeRequest,
  source: AsOfEdgeSource,
): AsyncGenerator<readonly ObjectEdge[]> {
  const versioned = edges.filter(({ from, to }) => [from, to].every(({ cid }) => isVersioned(cid, source)));
  const seen = versioned.flatMap((edge): NamedEdge[] => named(edge, source));
  const objects = await objectsAsOf(
    seen.map(({ to }) => to),
    asOfMs,
    source,
  );
  const there = seen.filter((_, at) => objects[at] !== undefined);
  const diedUs = await deathsOf(
    there.map(({ to }) => to),
    source,
  );
  const living = there.filter((edge) => {
    const died = diedUs.get(placeText(edge.to)) ?? 0;
    return !isOfFormer(edge, died) || died > lastMicrosecond(asOfMs);
  });
  if (living.length > 0) yield living.map(({ edge }) => edge);
}

function isVersioned(cid: number, { snapshot }: AsOfEdgeSource): boolean {
  const view = snapshot.byCid(cid);
  return view !== undefined && keepsVersions(view);
}

async function* edgesFrom(
  place: Place,
  request: AsOfEdgeRequest,
  source: AsOfEdgeSource,
): AsyncGenerator<readonly Edge[]> {
  const toUs = lastMicrosecond(request.asOfMs);
  const [[now], lostUs] = await Promise.all([source.reader.get([[place]]), lastLossUs(place.key, source)]);
  if (now !== undefined && now.vtimeMs <= request.asOfMs && lostUs <= toUs)
    return yield* presentEdges(place, request, source);
  const [object] = await objectsAt([place], request.asOfMs, source);
  if (object === undefined) return;
  const known = new Map<string, Touch>();
  for await (const touches of touchesOf(place, request, source)) for (const touch of touches) keepLatest(known, touch);
  for await (const edges of presentEdges(place, request, source)) {
    for (const edge of edges) if (edge.timeUs <= toUs) keepLatest(known, { edge, isThere: true, isPresent: true });
  }
  const there = [...known.values()].filter(
    ({ isThere, edge }) => isThere && (request.type === undefined || edge.type === request.type),
  );
  yield lostUs === 0 ? there.map(({ edge }) => edge) : await notTaken(there, toUs, source);
}

/** Leaves out edges that the removal of their target took away after they were added. */
async function notTaken(touches: readonly Touch[], toUs: number, source: AsOfEdgeSource): Promise<Edge[]> {
  const kept = await mapLimited(touches, HISTORY_READS_IN_FLIGHT_MAX, async ({ edge, isPresent }) => {
    return isPresent === true || !(await wasTaken(edge, { fromUs: edge.timeUs, toUs }, source)) ? [edge] : [];
  });
  return kept.flat();
}

async function* edgesTo(
  place: Place,
  request: AsOfEdgeRequest,
  source: AsOfEdgeSource,
): AsyncGenerator<readonly Edge[]> {
  const seen = new Set<string>();
  for await (const edges of presentEdges(place, request, source)) {
    for (const edge of edges) seen.add(edgeText(edge));
    checkCount(seen.size);
    yield await thoseThere(edges, request, source);
  }
  for await (const former of formerEdgesTo(place, source)) {
    const gone = former.filter(
      (edge) => !seen.has(edgeText(edge)) && (request.type === undefined || edge.type === request.type),
    );
    yield await thoseThere(
      gone.map((edge) => ({ ...edge, timeUs: Infinity })),
      request,
      source,
    );
  }
}

/**
 * A current edge that is not newer than the time asked for existed then. For other edges, the versions of their source
 * decide.
 */
async function thoseThere(edges: readonly Edge[], request: AsOfEdgeRequest, source: AsOfEdgeSource): Promise<Edge[]> {
  const then = await mapLimited(edges, HISTORY_READS_IN_FLIGHT_MAX, (edge) => {
    return edge.timeUs <= lastMicrosecond(request.asOfMs) ? Promise.resolve(edge) : edgeThen(edge, request, source);
  });
  return then.filter((edge) => edge !== undefined);
}

async function edgeThen(edge: Edge, request: AsOfEdgeRequest, source: AsOfEdgeSource): Promise<Edge | undefined> {
  const view = source.snapshot.byCid(edge.from.cid);
  if (view === undefined || !keepsVersions(view)) return undefined;
  const place = { view, key: edge.from };
  const text = edgeText(edge);
  const [object] = await objectsAsOf([place], request.asOfMs, source);
  if (object === undefined) return undefined;
  for await (const touches of touchesOf(place, request, source)) {
    const touch = touches.find((candidate) => edgeText(candidate.edge) === text);
    if (touch !== undefined)
      return touch.isThere ? (await notTaken([touch], lastMicrosecond(request.asOfMs), source))[0] : undefined;
  }
  return undefined;
}

/** A write that added an edge or took it away. */
interface Touch {
  readonly edge: Edge;
  readonly isThere: boolean;
  /** The edge exists now. */
  readonly isPresent?: true;
}

/** Changes of edges between the object's last removal before that time and that time, latest first. */
async function* touchesOf(
  { view, key }: Place,
  { asOfMs, signal }: AsOfEdgeRequest,
  source: AsOfEdgeSource,
): AsyncGenerator<readonly Touch[]> {
  for await (const versions of versionsAt({ view, key }, { toUs: lastMicrosecond(asOfMs), signal }, source)) {
    const born = versions.findIndex((version) => version.row === undefined);
    const life = born < 0 ? versions : versions.slice(0, born);
    yield life.flatMap(({ timeUs, added, dropped }) => [
      ...added.map((end) => ({ edge: { ...end, from: key, timeUs }, isThere: true })),
      ...dropped.map((end) => ({ edge: { ...end, from: key, timeUs }, isThere: false })),
    ]);
    if (born >= 0) return;
  }
}

async function* presentEdges(
  { key }: Place,
  request: AsOfEdgeRequest,
  { store }: AsOfEdgeSource,
): AsyncGenerator<readonly Edge[]> {
  const type = request.type === undefined ? {} : { type: request.type };
  let cursor: string | undefined;
  do {
    if (request.signal?.aborted) throw new AppError("cancelled", "The read was stopped.");
    const page = { limit: OBJECT_PAGE_MAX, ...type, ...(cursor === undefined ? {} : { cursor }) };
    const answer = await store.edges(key, request.direction, page);
    yield answer.items;
    cursor = answer.cursor;
  } while (cursor !== undefined);
}

function keepLatest(known: Map<string, Touch>, touch: Touch): void {
  const text = edgeText(touch.edge);
  const other = known.get(text);
  if (other === undefined || other.edge.timeUs < touch.edge.timeUs) known.set(text, touch);
  checkCount(known.size);
}

function checkCount(count: number): void {
  if (count <= EDGES_AS_OF_MAX) return;
  throw new AppError("too_large", `[Exec] Of one object at most ${EDGES_AS_OF_MAX} edges are told as of a time.`, {
    details: { limit: "EDGES_AS_OF_MAX" },
  });
}
