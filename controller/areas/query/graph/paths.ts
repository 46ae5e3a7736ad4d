import { GRAPH_PATH_SEARCH_MAX_STEPS, GRAPH_PATHS_MAX } from "../../../../common/limits.ts";
import { setMember } from "../../../../common/members.ts";
import type { PathMode } from "../../../../common/mql/index.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { bytesOf, type MemoryShare } from "../expressions/aggregates/memory.ts";
import type { Slices } from "../run/slice.ts";
import { combinations } from "./combinations.ts";
import { type PathPlan, tooLarge } from "./plan.ts";
import { shortest } from "./shortest.ts";
import type { Solution } from "./solution.ts";
import { edgeRow } from "./types.ts";
import { trails, type Way } from "./ways.ts";

/** Cost of writing down a way, in ordinary rows. */
const WAY_WORK = 8;

export interface Search {
  readonly slices: Slices;
  /** Counts the memory of the rows. */
  readonly memory: Pick<MemoryShare, "take">;
}

/** The entries of `paths` for one chain, in no order. */
export async function pathsOf(solution: Solution, paths: PathPlan, search: Search): Promise<readonly Row[]> {
  const { slices } = search;
  if (!solution.plan.tags.some((tag) => tag !== undefined && paths.tags.includes(tag))) return [];
  switch (paths.mode) {
    case "any":
      return held(await taken(combinations(solution, paths.tags), slices), (row) => row, search);
    case "short":
      return held(await taken(shortest(solution), slices), (way) => mapOf(way, solution, paths), search);
    case "long":
      return held(longestOf(await taken(trails(solution), slices)), (way) => mapOf(way, solution, paths), search);
    case "all":
    case "detail":
    case "back":
      return held(await taken(trails(solution), slices), (way) => mapOf(way, solution, paths), search);
  }
}

/** The rows for what was found. Memory is counted for each, because a row may be many times larger than its way. */
async function held<T>(
  found: readonly T[],
  rowOf: (one: T) => Row,
  { slices, memory }: Search,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const one of found) {
    const row = rowOf(one);
    memory.take(bytesOf(row));
    rows.push(row);
    if (slices.isOver(WAY_WORK)) await slices.pause();
  }
  return rows;
}

async function taken<T>(search: Iterable<T | undefined>, slices: Slices): Promise<readonly T[]> {
  const found: T[] = [];
  let steps = 0;
  for (const one of search) {
    steps += 1;
    if (slices.isOver()) await slices.pause();
    if (steps > GRAPH_PATH_SEARCH_MAX_STEPS)
      throw tooLarge(
        `The search for paths takes more than ${GRAPH_PATH_SEARCH_MAX_STEPS} steps`,
        "GRAPH_PATH_SEARCH_MAX_STEPS",
      );
    if (one !== undefined) found.push(one);
    checkCount(found);
  }
  return found;
}

export function checkCount(paths: readonly unknown[]): void {
  if (paths.length > GRAPH_PATHS_MAX)
    throw tooLarge(`MATCH finds more than ${GRAPH_PATHS_MAX} paths`, "GRAPH_PATHS_MAX");
}

/** The ways with the most edges for each pair of a start and an end. */
function longestOf(ways: readonly Way[]): readonly Way[] {
  const most = new Map<string, number>();
  const ends = new Map(ways.map((way) => [way, endsOf(way)]));
  for (const [way, name] of ends) most.set(name, Math.max(most.get(name) ?? 0, way.length));
  return ways.filter((way) => most.get(ends.get(way) ?? "") === way.length);
}

function endsOf(way: Way): string {
  return `${stepsOf(way)[0]?.vertex.ref.number ?? 0} ${way.vertex.ref.number}`;
}

/** The parts of a way, from its start to its end. */
function stepsOf(way: Way): readonly Way[] {
  const steps: Way[] = [];
  for (let at: Way | undefined = way; at !== undefined; at = at.before) steps.push(at);
  return steps.reverse();
}

function mapOf(way: Way, { plan }: Solution, { mode, tags }: PathPlan): Row {
  const steps = stepsOf(way);
  const row: Row = {};
  for (const step of steps) {
    const tag = step.depth === 0 ? plan.tags[step.hop] : undefined;
    if (tag !== undefined && tags.includes(tag)) setMember<Value>(row, tag, step.vertex.ref.id);
  }
  return withDetails(row, mode === "back" ? [...steps].reverse() : steps, mode);
}

function withDetails(row: Row, steps: readonly Way[], mode: PathMode): Row {
  if (mode !== "detail" && mode !== "back") return row;
  const edges = steps.flatMap((step) => (step.link ? [edgeRow(step.link.edge)] : []));
  return { nodes: steps.map((step) => step.vertex.ref.id), edges, ...row };
}
