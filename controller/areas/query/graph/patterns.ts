import { AppError } from "../../../../common/errors.ts";
import { type Condition, type GraphNode, printCondition } from "../../../../common/mql/index.ts";
import {
  type ClassCatalog,
  type ClassView,
  type ObjectRow,
  readablePaths,
  type ReadRequest,
} from "../../objects/index.ts";
import { classAccess, type Principal } from "../../permissions/index.ts";
import { type Arguments, rowCount } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";
import { readsOf } from "../plan/plan.ts";
import { askedPlan, type RelationPlan, splitCondition } from "../plan/relations.ts";
import { filterOf } from "../run/run.ts";
import { workOf } from "../run/work.ts";
import { Scope } from "../plan/names/scope.ts";
import { relationsOf, VisibleTree, visibleTree } from "../plan/names/tree.ts";
import { idsMatcher, isPattern, labelOf } from "./ids.ts";

/** Patterns that are compared with an id in the time of reading an ordinary row. */
const ID_PATTERNS_PER_ROW = 8;

/** The conditions of one node of a chain on the object that matches it. */
export interface NodePattern {
  /** For EXPLAIN. */
  readonly label: string;
  readonly name: string | undefined;
  /** Asks nothing: `()`, `(m)`. */
  readonly isOpen: boolean;
  /** Maximum number of objects that match it. */
  readonly limit: number | undefined;
  /**
   * True if the object matches the node. Bound when it was planned. False for objects that the principal may not see.
   */
  readonly fits: (row: ObjectRow) => boolean;
  /** Test without related objects. If it is false, `fits` is false, too. */
  readonly mayFit: (row: ObjectRow) => boolean;
  /** Relations of the object that `fits` needs; absent: none. */
  readonly relations: RelationPlan | undefined;
  /** Cost of the check of one object, in ordinary rows. */
  readonly work: number;
  /**
   * Reads that together return every object that fits. With `veiled` they are not narrowed by the row condition of the
   * principal, which EXPLAIN must not show.
   */
  reads(options?: { readonly veiled: boolean }): readonly ReadRequest[];
}

export interface PatternContext {
  readonly principal: Principal;
  readonly catalog: ClassCatalog;
  readonly values: Arguments;
  readonly asOfMs: number | undefined;
}

/** `and`: conditions on this node from the WHERE after the chains. */
export function bindNode(node: GraphNode, and: readonly Condition[], context: PatternContext): NodePattern {
  const scope = scopeOfNode(node, context);
  const conditions = node.where ? [node.where, ...and] : and;
  const [first] = conditions;
  const where: Condition | undefined =
    conditions.length > 1 ? { kind: "and", items: conditions, span: node.span } : first;
  const { values, asOfMs } = context;
  const split = splitCondition(where, scope);
  const passes = filterOf({ scope, where: split.own, values });
  const follows = askedPlan(split, scope, { values, asOfMs });
  const leads = split.related && filterOf({ scope, where: split.related, values });
  const known = new Set(scope.classes.map((view) => view.path));
  const isNamed = node.ids.length === 0 ? () => true : idsMatcher(node.ids);
  const mayFit = (row: ObjectRow) => isNamed(row.id) && known.has(row.class.path) && passes(row) === true;
  const limit = node.limit && rowCount(node.limit, values);
  return {
    label: labelOfNode(node, where),
    name: node.name,
    isOpen: node.ids.length === 0 && node.class === undefined && where === undefined && node.limit === undefined,
    limit,
    fits: (row) => mayFit(row) && (leads === undefined || leads(row) === true),
    mayFit,
    relations: follows?.asked,
    work: workOf(where) + node.ids.filter(isPattern).length / ID_PATTERNS_PER_ROW,
    reads: (options) =>
      readsOfNode(node, scope, { where: split.own, expected: split.related ? undefined : limit, context, ...options }),
  };
}

/** The classes of objects that can match the node. */
function scopeOfNode(node: GraphNode, { principal, catalog }: PatternContext): Scope {
  const make = (path: string, found: readonly ClassView[]): Scope => {
    const among = (): Iterable<string> => {
      const paths = Array.from(readablePaths(principal, catalog));
      return path.startsWith("/") ? paths : paths.map((one) => one.slice(one.lastIndexOf("/") + 1));
    };
    const everything = () => visibleTree(principal, catalog, { path: "/", subtree: true });
    const content = { among, found, relations: relationsOf(catalog), everything };
    const tree = about(node.span, () => new VisibleTree(principal, { path, subtree: true }, content));
    return new Scope(principal, node.name, tree, { follows: true });
  };
  if (node.ids.length > 0) return make(node.ids.join(", "), classesOfIds(node.ids, principal, catalog));
  if (node.class === undefined) return make("/", catalog.tree("/"));
  if (!node.class.startsWith("/")) return make(node.class, catalog.byLabel(node.class));
  const path = node.class.replace(/(?<=.)\/$/, "");
  const root = catalog.get(path);
  const isTree = node.class.endsWith("/");
  return make(path, isTree ? catalog.tree(path) : root ? [root] : []);
}

/**
 * The classes of these ids. Ids of classes that are unknown or may not be read are skipped, like ids of objects that do
 * not exist. `AppError("not_found")` if no class is left.
 */
function classesOfIds(ids: readonly string[], principal: Principal, catalog: ClassCatalog): readonly ClassView[] {
  const labels = new Set(ids.map(labelOf));
  if (labels.has(undefined)) return catalog.tree("/");
  const views = [...labels]
    .flatMap((label = "") => catalog.byLabel(label))
    .filter((view) => classAccess(principal, view).readable);
  if (views.length > 0) return views;
  throw new AppError("not_found", `[NotExist] Not Found Class For ID ${ids.join(", ")}`);
}

interface Wanted {
  readonly where: Condition | undefined;
  readonly expected: number | undefined;
  readonly context: PatternContext;
  readonly veiled?: boolean;
}

/** One read for each class, because the classes that ids and labels name need not form a tree. */
function readsOfNode(
  node: GraphNode,
  scope: Scope,
  { where, expected, context, veiled = false }: Wanted,
): readonly ReadRequest[] {
  const { values, asOfMs } = context;
  const [shape] = readsOf(scope, where, { values, expected, asOfMs, veiled });
  if (!shape) return [];
  const byLabel = idsByLabel(node.ids);
  return scope.classes.flatMap((view): readonly ReadRequest[] => {
    const request = { ...shape, class: view.path, subtree: false };
    if (node.ids.length === 0) return [request];
    const own = [...(byLabel.get(undefined) ?? []), ...(byLabel.get(view.label) ?? [])];
    if (own.length === 0) return [];
    return own.some(isPattern) ? [request] : [{ ...request, ids: own }];
  });
}

/** Ids by label. Ids whose label is a pattern are under `undefined`. */
function idsByLabel(ids: readonly string[]): ReadonlyMap<string | undefined, readonly string[]> {
  const groups = new Map<string | undefined, string[]>();
  for (const id of ids) {
    const label = labelOf(id);
    const group = groups.get(label);
    if (group) group.push(id);
    else groups.set(label, [id]);
  }
  return groups;
}

function labelOfNode(node: GraphNode, where: Condition | undefined): string {
  const what = node.ids.length > 0 ? node.ids.join(", ") : (node.class ?? "any object");
  return `${what}${where ? ` where ${printCondition(where)}` : ""}`;
}
