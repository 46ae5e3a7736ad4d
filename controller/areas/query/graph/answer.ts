import type { Row } from "../../../../common/value.ts";
import { freeing, PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import { canonical } from "../expressions/questions.ts";
import { Slices } from "../run/slice.ts";
import { type Candidates, candidatesOf } from "./candidates.ts";
import { checkCount, pathsOf } from "./paths.ts";
import type { GraphPlan } from "./plan.ts";
import { type GraphContext, GraphReader } from "./reader.ts";
import { Register } from "./register.ts";
import { type Solution, solve } from "./solution.ts";
import { edgeRow, type GraphEdge, type VertexRef } from "./types.ts";

/** The objects and edges that a MATCH found. */
interface Graph {
  readonly nodes: Map<VertexRef, Row>;
  readonly edges: Map<GraphEdge, Row>;
  paths: readonly Row[];
}

/** The one row of a MATCH. With `earlier` it also has what was added and removed since. */
export function runMatch(
  plan: GraphPlan,
  earlier: GraphPlan | undefined,
  context: Omit<GraphContext, "register" | "memory">,
): AsyncIterable<readonly Row[]> {
  const memory = PROCESS_MEMORY.share(context.tenant);
  return freeing(memory, matchedHolding(plan, earlier, { ...context, memory }));
}

async function* matchedHolding(
  plan: GraphPlan,
  earlier: GraphPlan | undefined,
  context: Omit<GraphContext, "register">,
): AsyncGenerator<readonly Row[]> {
  const register = new Register();
  const graph = await graphOf(plan, { ...context, register });
  const before = earlier && (await graphOf(earlier, { ...context, register }));
  const pathtags = plan.paths?.mode === "back" ? [...plan.paths.tags].reverse() : (plan.paths?.tags ?? []);
  const row: Row = { nodes: [...graph.nodes.values()], edges: [...graph.edges.values()], paths: graph.paths, pathtags };
  if (before) row.diff = { add: without(graph, before), del: without(before, graph) };
  yield [{ graph: row }];
}

async function graphOf(plan: GraphPlan, context: GraphContext): Promise<Graph> {
  const slices = new Slices(context);
  const reader = new GraphReader(plan, context, slices);
  const graph: Graph = { nodes: new Map(), edges: new Map(), paths: [] };
  for (const chain of plan.chains) {
    slices.check();
    const candidates = await candidatesOf(chain, reader);
    const solution = await solve(chain, candidates, slices);
    await addTo(graph, { solution, candidates }, slices);
    if (plan.paths)
      graph.paths = [...graph.paths, ...(await pathsOf(solution, plan.paths, { slices, memory: context.memory }))];
    checkCount(graph.paths);
  }
  if (plan.paths?.mode === "any") graph.paths = distinct(graph.paths);
  return graph;
}

/** Adds what was found to the graph. Objects that match a named start are added even if no way begins at them. */
async function addTo(
  graph: Graph,
  found: { readonly solution: Solution; readonly candidates: Candidates },
  slices: Slices,
): Promise<void> {
  const { plan, hops } = found.solution;
  const isNamed = plan.nodes[0]?.isOpen === false || hops.length === 0;
  for (const { ref, shown } of isNamed ? (found.candidates.objects[0] ?? []) : []) graph.nodes.set(ref, shown);
  for (const hop of hops) {
    for (const { from, to, edge } of [...hop.from.values()].flat()) {
      if (slices.isOver()) await slices.pause();
      graph.nodes.set(from.ref, from.shown).set(to.ref, to.shown);
      if (!graph.edges.has(edge)) graph.edges.set(edge, edgeRow(edge));
    }
  }
}

function distinct(rows: readonly Row[]): readonly Row[] {
  return [...new Map(rows.map((row) => [canonical(row), row])).values()];
}

function without(graph: Graph, other: Graph): { nodes: Row[]; edges: Row[] } {
  return {
    nodes: [...graph.nodes].flatMap(([ref, row]) => (other.nodes.has(ref) ? [] : [row])),
    edges: [...graph.edges].flatMap(([edge, row]) => (other.edges.has(edge) ? [] : [row])),
  };
}
