import type { Row } from "../../../../common/value.ts";
import { canonical } from "../questions.ts";
import { Slices } from "../slice.ts";
import { type Candidates, candidatesOf } from "./candidates.ts";
import { checkCount, pathsOf } from "./paths.ts";
import type { GraphPlan } from "./plan.ts";
import { type GraphContext, GraphReader } from "./reader.ts";
import { type Solution, solve } from "./solution.ts";
import type { GraphEdge, Vertex } from "./types.ts";

/** What a MATCH found, each object, edge and combination once. */
interface Graph {
  readonly nodes: ReadonlyMap<string, Row>;
  readonly edges: ReadonlyMap<string, Row>;
  readonly paths: readonly Row[];
}

/** The one row of a MATCH. With `earlier` also what has come and what has gone since. */
export async function* runMatch(plan: GraphPlan, earlier: GraphPlan | undefined, context: GraphContext): AsyncGenerator<readonly Row[]> {
  const graph = await graphOf(plan, context);
  const before = earlier && (await graphOf(earlier, context));
  const pathtags = plan.paths?.mode === "back" ? [...plan.paths.tags].reverse() : (plan.paths?.tags ?? []);
  const row: Row = { ...listsOf(graph), paths: graph.paths, pathtags };
  if (before) row.diff = { add: without(graph, before), del: without(before, graph) };
  yield [{ graph: row }];
}

async function graphOf(plan: GraphPlan, context: GraphContext): Promise<Graph> {
  const slices = new Slices(context.clock, context.signal);
  const reader = new GraphReader(plan, context, slices);
  const nodes = new Map<string, Row>();
  const edges = new Map<string, Row>();
  const paths: Row[] = [];
  for (const chain of plan.chains) {
    slices.check();
    const candidates = await candidatesOf(chain, reader);
    const solution = await solve(chain, candidates, slices);
    for (const { key, shown } of objectsOf(solution, candidates)) nodes.set(key, shown);
    for (const { key, shown } of edgesOf(solution)) edges.set(key, shown);
    if (plan.paths) paths.push(...(await pathsOf(solution, plan.paths, slices)));
    checkCount(paths);
  }
  return { nodes, edges, paths: plan.paths?.mode === "any" ? distinct(paths) : paths };
}

/** What the start names belongs to the answer, whether or not a way leads on from it. */
function objectsOf({ plan, hops }: Solution, candidates: Candidates): ReadonlySet<Vertex> {
  const isNamed = plan.nodes[0]?.isOpen === false || hops.length === 0;
  const objects = new Set(isNamed ? candidates.objects[0] : []);
  for (const hop of hops) {
    for (const { from, to } of [...hop.from.values()].flat()) objects.add(from).add(to);
  }
  return objects;
}

function edgesOf({ hops }: Solution): readonly GraphEdge[] {
  return hops.flatMap((hop) => [...hop.from.values()].flatMap((links) => links.map((link) => link.edge)));
}

function distinct(rows: readonly Row[]): readonly Row[] {
  return [...new Map(rows.map((row) => [canonical(row), row])).values()];
}

function without(graph: Graph, other: Graph): { nodes: Row[]; edges: Row[] } {
  return {
    nodes: [...graph.nodes].flatMap(([key, row]) => (other.nodes.has(key) ? [] : [row])),
    edges: [...graph.edges].flatMap(([key, row]) => (other.edges.has(key) ? [] : [row])),
  };
}

function listsOf(graph: Graph): { nodes: Row[]; edges: Row[] } {
  return { nodes: [...graph.nodes.values()], edges: [...graph.edges.values()] };
}
