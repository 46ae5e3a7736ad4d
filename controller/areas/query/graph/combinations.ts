import type { Row } from "../../../../common/value.ts";
import type { Solution, SolvedHop } from "./solution.ts";
import type { Vertex } from "./types.ts";

/** Ids of objects that were chosen so far for the first tags, and that are together on some way. */
interface Choice {
  readonly row: Row;
  /** Index of the node for which the latest object was chosen; absent before the first. */
  readonly at: number | undefined;
  readonly vertex: Vertex | undefined;
}

/**
 * Every combination of objects that match the tagged nodes on one way, each once. Does not enumerate the ways, because
 * there can be far more of them. Also yields undefined at every step, so that it can be interrupted.
 */
export function* combinations(solution: Solution, tags: readonly string[]): Generator<Row | undefined> {
  const places = solution.plan.tags.flatMap((tag, at) =>
    tag !== undefined && tags.includes(tag) ? [{ tag, at }] : [],
  );
  if (places.length === 0) return;
  const open: Choice[] = [{ row: {}, at: undefined, vertex: undefined }];
  for (let choice = open.pop(); choice !== undefined; choice = open.pop()) {
    const place = places.find(({ at }) => choice?.at === undefined || at > choice.at);
    yield place ? undefined : choice.row;
    if (!place) continue;
    for (const vertex of yield* reachable(choice, place.at, solution)) {
      open.push({ row: { ...choice.row, [place.tag]: vertex.ref.id }, at: place.at, vertex });
    }
  }
}

function* reachable(
  { at, vertex }: Choice,
  to: number,
  { hops, objects }: Solution,
): Generator<undefined, Iterable<Vertex>> {
  if (at === undefined || vertex === undefined) return objects[to] ?? [];
  let standing = new Set([vertex]);
  for (let hop = at; hop < to; hop += 1) {
    const passed = hops[hop];
    if (passed) standing = yield* over(passed, standing, objects[hop + 1] ?? new Set());
  }
  return standing;
}

/** The objects among `ends` that one hop reaches from the starts. */
function* over(
  hop: SolvedHop,
  starts: ReadonlySet<Vertex>,
  ends: ReadonlySet<Vertex>,
): Generator<undefined, Set<Vertex>> {
  const found = new Set<Vertex>();
  const left = new Set<Vertex>(starts);
  let level: Iterable<Vertex> = starts;
  for (let depth = 1; depth <= hop.depth; depth += 1) {
    const next = new Set<Vertex>();
    for (const vertex of level) {
      yield undefined;
      for (const { to } of hop.from.get(vertex) ?? []) {
        if (ends.has(to)) found.add(to);
        if (!left.has(to) && !to.isEnd) next.add(to);
      }
    }
    for (const vertex of next) left.add(vertex);
    if (next.size === 0) break;
    level = next;
  }
  return found;
}
