import type { Row } from "../../../../common/value.ts";
import type { Solution, SolvedHop } from "./solution.ts";
import type { Vertex } from "./types.ts";

/** Objects chosen so far that together match the nodes of some tags. */
interface Choice {
  readonly row: Row;
  /** Where in the chain the latest was chosen; absent before the first. */
  readonly at: number | undefined;
  readonly vertex: Vertex | undefined;
}

/**
 * Every combination of objects that match the tagged nodes on one way, each once. Does not enumerate the ways, as there
 * can be far more of them. Yields at every step, so that it can be interrupted, and yields a combination when one is
 * complete.
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

/** Where one hop leads. */
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
