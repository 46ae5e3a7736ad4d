import { AppError } from "../../../../common/errors.ts";
import { unknownName } from "../../../../common/text/nearest.ts";
import { GRAPH_CHAINS_MAX, GRAPH_DEPTH_MAX, GRAPH_STEPS_MAX } from "../../../../common/limits.ts";
import type { Chain, Field, GraphStep, Match, PathMode } from "../../../../common/mql/index.ts";
import type { BoundField } from "../expressions/fields.ts";
import { commonRelations, type RelationPlan } from "../plan/relations.ts";
import { about } from "../expressions/placing.ts";
import { type Scope, scopeOf } from "../plan/names/scope.ts";
import { timeOfState } from "../plan/plan.ts";
import { conditionsOf } from "./conditions.ts";
import { idMatcher } from "./ids.ts";
import { bindNode, type NodePattern, type PatternContext } from "./patterns.ts";

/** The plan of a MATCH, as data. */
export interface GraphPlan {
  /** The scope of all objects that the principal may see. */
  readonly scope: Scope;
  readonly chains: readonly ChainPlan[];
  readonly returns: readonly BoundField[];
  /** Relations that conditions follow; absent: none. */
  readonly relations: RelationPlan | undefined;
  /** True for ids at which every path ends. */
  readonly until: ((id: string) => boolean) | undefined;
  readonly paths: PathPlan | undefined;
  readonly asOfMs: number | undefined;
}

export interface ChainPlan {
  /** Nodes of the chain: one more than hops. */
  readonly nodes: readonly NodePattern[];
  readonly hops: readonly Hop[];
  /** Index of the node where reading begins: the first node that is not open, or 0 if all are open. */
  readonly anchor: number;
  /** Names of the nodes, in their order; undefined for nodes without one. */
  readonly tags: readonly (string | undefined)[];
}

export interface Hop {
  readonly direction: GraphStep["direction"];
  /** Absent: edges of every type. */
  readonly type: string | undefined;
  /** Maximum number of edges; `Infinity`: any number. */
  readonly depth: number;
}

export interface PathPlan {
  readonly mode: PathMode;
  /** Keys of the maps, in this order. */
  readonly tags: readonly string[];
}

/**
 * Plans a MATCH before anything is read. `AppError` for unknown classes, fields, edge types and names, and for a MATCH
 * beyond the limits.
 */
export function planMatch(
  match: Match,
  context: Omit<PatternContext, "asOfMs">,
  asOfMs = timeOfState(match.asOf, context.values),
): GraphPlan {
  checkSize(match);
  const { principal, catalog, values } = context;
  const scope = scopeOf(principal, catalog, { path: "/", subtree: true, alias: undefined });
  const conditions = conditionsOf(match);
  const isNamed = match.chains.some((chain) => nodesOf(chain).some((node) => node.name !== undefined));
  const chains = match.chains.map((chain): ChainPlan => {
    const nodes = nodesOf(chain).map((node, at) => bindNode(node, conditions(node, at), { ...context, asOfMs }));
    const anchor = Math.max(
      0,
      nodes.findIndex((node) => !node.isOpen),
    );
    return {
      nodes,
      hops: chain.steps.map((step) => about(step.span, () => hopOf(step, context))),
      anchor,
      tags: tagsOf(nodes, isNamed),
    };
  });
  const returns = match.returns.map((name) => scope.bind(fieldNamed(name, match), values));
  return {
    scope,
    chains,
    returns,
    relations: commonRelations(chains.flatMap(({ nodes }) => nodes.flatMap(({ relations }) => relations ?? []))),
    until: match.until === undefined ? undefined : idMatcher(match.until),
    paths: pathsOf(match, chains),
    asOfMs,
  };
}

function nodesOf(chain: Chain): readonly Chain["start"][] {
  return [chain.start, ...chain.steps.map((step) => step.node)];
}

function hopOf(step: GraphStep, { catalog }: Pick<PatternContext, "catalog">): Hop {
  const { direction, type, depth } = step;
  const known = catalog.edgeTypes().map(({ name }) => name);
  if (type !== undefined && !known.includes(type))
    throw unknownName(`[NotExist] edge type ${type} does not exist.`, { name: type, among: known });
  if (depth !== "any" && depth > GRAPH_DEPTH_MAX) throw tooDeep();
  return { direction, type, depth: depth === "any" ? Infinity : depth };
}

/** Names of the nodes. If no node has a name, each is named by its position. */
function tagsOf(nodes: readonly NodePattern[], isNamed: boolean): readonly (string | undefined)[] {
  const tags = nodes.map((node, at) => (isNamed ? node.name : `n${at + 1}`));
  const twice = tags.find((tag, at) => tag !== undefined && tags.indexOf(tag) !== at);
  if (twice !== undefined) throw new AppError("invalid", `[Valid] Two nodes of one chain are called ${twice}.`);
  return tags;
}

function pathsOf({ pathMode, pathTags }: Match, chains: readonly ChainPlan[]): PathPlan | undefined {
  if (pathMode === undefined) return undefined;
  const known = new Set(chains.flatMap((chain) => chain.tags).filter((tag) => tag !== undefined));
  const unknown = pathTags.find((tag) => !known.has(tag));
  if (unknown !== undefined)
    throw unknownName(`[NotExist] No node is called ${unknown}.`, { name: unknown, among: known });
  return { mode: pathMode, tags: pathTags.length > 0 ? [...new Set(pathTags)] : [...known] };
}

function fieldNamed(name: string, { span }: Match): Field {
  return { kind: "field", parts: [name], span };
}

function checkSize({ chains }: Match): void {
  const steps = Math.max(...chains.map((chain) => chain.steps.length));
  if (chains.length > GRAPH_CHAINS_MAX)
    throw tooLarge(`MATCH unites at most ${GRAPH_CHAINS_MAX} chains`, "GRAPH_CHAINS_MAX");
  if (steps > GRAPH_STEPS_MAX)
    throw tooLarge(`A chain of MATCH has at most ${GRAPH_STEPS_MAX} edges`, "GRAPH_STEPS_MAX");
}

export function tooDeep(): AppError {
  return tooLarge(`MATCH follows at most ${GRAPH_DEPTH_MAX} edges for one step of a chain`, "GRAPH_DEPTH_MAX");
}

export function tooLarge(complaint: string, limit: string): AppError {
  return new AppError("too_large", `[Exec] ${complaint}.`, { details: { limit } });
}
