import { AppError } from "../../../../common/errors.ts";
import { GRAPH_EDGES_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { ObjectEdge, ObjectRow, Objects } from "../../objects/index.ts";
import type { Predicate } from "../expressions/predicate.ts";
import type { RelatedRow } from "../plan/related.ts";
import type { RelationPlan } from "../plan/relations.ts";
import { isSchemaClass } from "../plan/schema-class.ts";
import { visibility } from "../plan/scope.ts";
import type { Slices } from "./slice.ts";

export interface RelationReader {
  readonly objects: Pick<Objects, "edges" | "get">;
  readonly read: (request: {
    readonly class: string;
    readonly subtree: boolean;
    readonly ids: readonly string[];
    readonly asOfMs: number;
  }) => AsyncIterable<readonly ObjectRow[]>;
  readonly slices: Slices;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The same rows with the ids at the ends of their edges. `AppError("too_large")` when a page of them has more than
 * `GRAPH_EDGES_MAX` edges.
 */
export async function* withRelations(
  pages: AsyncIterable<readonly ObjectRow[]>,
  plan: RelationPlan,
  reader: RelationReader,
): AsyncIterable<readonly ObjectRow[]> {
  for await (const page of pages) {
    for (let from = 0; from < page.length; from += OBJECT_PAGE_MAX)
      yield await related(page.slice(from, from + OBJECT_PAGE_MAX), plan, reader);
  }
}

async function related(
  rows: readonly ObjectRow[],
  plan: RelationPlan,
  reader: RelationReader,
): Promise<readonly RelatedRow[]> {
  const ids = new Map<string, Map<string, string[]>>();
  for (const edge of await visibleEdges(rows, plan, reader)) {
    const source = nameOf(edge.sourceClass, edge.source);
    const byType = ids.get(source) ?? new Map<string, string[]>();
    ids.set(source, byType);
    const targets = byType.get(edge.type);
    if (targets) targets.push(edge.target);
    else byType.set(edge.type, [edge.target]);
    if (reader.slices.isOver()) await reader.slices.pause();
  }
  for (const byType of ids.values()) for (const targets of byType.values()) targets.sort();
  return rows.map((row) => ({
    ...row,
    related: ids.get(nameOf(row.class.path, row.id)) ?? new Map<string, string[]>(),
  }));
}

async function visibleEdges(
  rows: readonly ObjectRow[],
  plan: RelationPlan,
  reader: RelationReader,
): Promise<readonly ObjectEdge[]> {
  const edges: ObjectEdge[] = [];
  for (const type of plan.types) {
    for await (const page of edgesOf(rows, type, { plan, reader })) {
      reader.slices.check();
      edges.push(...page);
      if (edges.length > GRAPH_EDGES_MAX) throw tooMany(type);
    }
  }
  const hidden = await hiddenEnds(edges, plan, reader);
  return edges.filter((edge) => !hidden.has(nameOf(edge.targetClass, edge.target)));
}

/** Records, and objects made of the definitions, have no edges. */
function edgesOf(
  rows: readonly ObjectRow[],
  type: string,
  { plan, reader }: Work,
): AsyncIterable<readonly ObjectEdge[]> {
  const sources = rows
    .filter((row) => row.class.kind === "entity" && !isSchemaClass(row.class))
    .map((row) => ({ id: row.id, class: row.class.path }));
  const { asOfMs } = plan;
  const options = { ...(asOfMs === undefined ? {} : { asOfMs }), ...(reader.signal ? { signal: reader.signal } : {}) };
  return reader.objects.edges(plan.ends.principal, sources, { direction: "out", type, ...options });
}

interface Work {
  readonly plan: RelationPlan;
  readonly reader: RelationReader;
}

/** Ends that a row condition hides. Edges to classes that may not be read are not among the edges. */
async function hiddenEnds(
  edges: readonly ObjectEdge[],
  plan: RelationPlan,
  reader: RelationReader,
): Promise<ReadonlySet<string>> {
  const ruled = new Set(
    plan.ends.classes.filter((view) => plan.ends.rowCondition(view) !== undefined).map((view) => view.path),
  );
  const asked = new Map(
    edges.filter((edge) => ruled.has(edge.targetClass)).map((edge) => [nameOf(edge.targetClass, edge.target), edge]),
  );
  const hidden = new Set(asked.keys());
  const visible: Predicate<ObjectRow> = visibility(plan.ends);
  for await (const row of endRows([...asked.values()], { plan, reader })) {
    if (visible(row) === true) hidden.delete(nameOf(row.class.path, row.id));
  }
  return hidden;
}

async function* endRows(edges: readonly ObjectEdge[], { plan, reader }: Work): AsyncIterable<ObjectRow> {
  const { asOfMs, ends } = plan;
  for (let from = 0; from < edges.length; from += OBJECT_PAGE_MAX) {
    const refs = edges
      .slice(from, from + OBJECT_PAGE_MAX)
      .map(({ target, targetClass }) => ({ id: target, class: targetClass }));
    if (asOfMs === undefined) {
      yield* (await reader.objects.get(ends.principal, refs)).filter((row) => row !== undefined);
      continue;
    }
    for (const path of new Set(refs.map((ref) => ref.class))) {
      const ids = refs.filter((ref) => ref.class === path).map((ref) => ref.id);
      for await (const page of reader.read({ class: path, subtree: false, ids, asOfMs })) yield* page;
    }
  }
}

function nameOf(path: string, id: string): string {
  return `${path} ${id}`;
}

function tooMany(type: string): AppError {
  return new AppError(
    "too_large",
    `[Exec] ${type} leads to more than ${GRAPH_EDGES_MAX} objects from one page of rows.`,
    { details: { limit: "GRAPH_EDGES_MAX" } },
  );
}
