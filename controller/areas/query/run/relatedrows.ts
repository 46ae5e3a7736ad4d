import { AppError } from "../../../../common/errors.ts";
import { OBJECT_PAGE_MAX, QUERY_FOLLOWED_MAX } from "../../../../common/limits.ts";
import type { ObjectEdge, ObjectRow, Unrestricted } from "../../objects/index.ts";
import type { RelationPath } from "../expressions/fields.ts";
import { LIST_OF_TEXT } from "../expressions/kind.ts";
import { bytesOf, freeing, type MemoryShare, PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import { compilePredicate, type Predicate } from "../expressions/predicate.ts";
import type { SelectPlan } from "../plan/plan.ts";
import { isRelated, type Related, type RelatedRow, together } from "../plan/names/related.ts";
import { type RelationPlan, type Step, stepsOf } from "../plan/relations.ts";
import { isSchemaClass } from "../plan/names/schema-class.ts";
import { visibility } from "../plan/names/scope.ts";
import { sourceInWhere } from "./run.ts";
import type { Slices } from "./slice.ts";
import { workOf } from "./work.ts";

export interface RelationReader {
  readonly objects: Unrestricted<"edges" | "get">;
  readonly read: (request: {
    readonly class: string;
    readonly subtree: boolean;
    readonly ids: readonly string[];
    readonly asOfMs: number;
  }) => AsyncIterable<readonly ObjectRow[]>;
  readonly slices: Slices;
  readonly signal?: AbortSignal | undefined;
}

type Pages = AsyncIterable<readonly ObjectRow[]>;

/** Estimated bytes of a held object besides its values. */
const ROW_BYTES = 128;

export function rowBytes(row: ObjectRow): number {
  const related = isRelated(row) ? [...row.related.values()] : [];
  return related.reduce((bytes, { value }) => bytes + bytesOf(value), ROW_BYTES + bytesOf(row.values));
}

/** Adds to rows what the plan's relations lead to, and keeps the rows that fulfil the plan's condition on relations. */
export function followed({
  follows,
  scope,
  values,
}: Pick<SelectPlan, "follows" | "scope" | "values">): (found: Pages, reader: RelationReader) => Pages {
  const { asked, where, answered } = follows ?? {};
  const passes =
    where && compilePredicate(where, { values, resolve: (operand) => sourceInWhere(operand, scope, values) });
  return (found, reader) => {
    const known = asked ? withRelations(found, asked, reader) : found;
    const kept = passes ? filtered(known, passes, { slices: reader.slices, rowWork: workOf(where) }) : known;
    return answered ? withRelations(kept, answered, reader) : kept;
  };
}

async function* filtered(
  pages: Pages,
  passes: Predicate<ObjectRow>,
  { slices, rowWork }: { readonly slices: Slices; readonly rowWork: number },
): Pages {
  for await (const page of pages) {
    const kept: ObjectRow[] = [];
    for (const row of page) {
      if (passes(row) === true) kept.push(row);
      if (slices.isOver(rowWork)) await slices.pause();
    }
    if (kept.length > 0) yield kept;
  }
}

/**
 * The rows with what their relations lead to. `AppError("too_large")` if that is more than `QUERY_FOLLOWED_MAX` objects
 * for one page of rows.
 */
export function withRelations(pages: Pages, plan: RelationPlan, reader: RelationReader): Pages {
  const memory = PROCESS_MEMORY.share(reader.slices.tenant);
  return freeing(memory, relatedPages(pages, { plan, steps: stepsOf(plan.paths), reader, memory }));
}

interface Work {
  readonly plan: RelationPlan;
  readonly steps: readonly Step[];
  readonly reader: RelationReader;
  readonly memory: MemoryShare;
}

async function* relatedPages(pages: Pages, work: Work): Pages {
  for await (const page of pages) {
    for (let from = 0; from < page.length; from += OBJECT_PAGE_MAX) {
      yield await related(page.slice(from, from + OBJECT_PAGE_MAX), work);
      work.memory.close();
    }
  }
}

/** An object that a relation leads to. */
interface End {
  readonly id: string;
  readonly class: string;
  /** Absent if only the id is needed. */
  readonly row: ObjectRow | undefined;
}

/** The objects that one step leads to, for each row in the order of the rows. */
type Ends = readonly (readonly End[])[];

async function related(rows: readonly ObjectRow[], work: Work): Promise<readonly RelatedRow[]> {
  const found = rows.map((row) => new Map<string, Related>(isRelated(row) ? row.related : []));
  const starts: Ends = rows.map((row) => (mayHaveEdges(row) ? [{ id: row.id, class: row.class.path, row }] : []));
  const reached = new Map<string, Ends>();
  const met = { objects: 0 };
  for (const step of work.steps) {
    const from = step.before === undefined ? starts : (reached.get(step.before) ?? []);
    const ends = await nextEnds(from, step, { work, met });
    reached.set(step.key, ends);
    for (const path of step.paths) await put(path, { ends, found }, work);
  }
  return rows.map((row, at) => ({ ...row, related: found[at] ?? new Map<string, Related>() }));
}

/** Records and rows of the schema class have no edges. */
function mayHaveEdges(row: ObjectRow): boolean {
  return row.class.kind === "entity" && !isSchemaClass(row.class);
}

async function put(
  { key, end }: RelationPath,
  { ends, found }: { readonly ends: Ends; readonly found: readonly Map<string, Related>[] },
  { plan, reader }: Work,
): Promise<void> {
  const source = end && plan.everything.source(end);
  for (const [at, own] of ends.entries()) {
    const value = source ? together(own.flatMap(({ row }) => (row ? valueOf(row, source) : []))) : idsOf(own);
    if (value) found[at]?.set(key, value);
    if (reader.slices.isOver(1 + own.length)) await reader.slices.pause();
  }
}

function idsOf(ends: readonly End[]): Related | undefined {
  return ends.length === 0 ? undefined : { value: ends.map(({ id }) => id), kind: LIST_OF_TEXT };
}

function valueOf(row: ObjectRow, source: ReturnType<RelationPlan["everything"]["source"]>): readonly Related[] {
  const value = source.read(row) ?? null;
  return value === null ? [] : [{ value, kind: source.kind(row) }];
}

interface Meeting {
  readonly work: Work;
  /** Number of objects reached so far for this page of rows. */
  readonly met: { objects: number };
}

/** The objects one edge further. Each object occurs once for a row, in the order of the ids. */
async function nextEnds(from: Ends, { type, paths }: Step, { work, met }: Meeting): Promise<Ends> {
  const { reader } = work;
  const sources = new Map(from.flat().map((end) => [nameOf(end.class, end.id), end]));
  const isWanted = paths.some(({ end }) => end !== undefined);
  const targets = await endsBySource(
    [...sources.values()],
    { type, isWanted, limit: QUERY_FOLLOWED_MAX - met.objects },
    work,
  );
  const reached: (readonly End[])[] = [];
  for (const ends of from) {
    const own = new Map<string, End>();
    for (const end of ends)
      for (const target of targets.get(nameOf(end.class, end.id)) ?? [])
        own.set(nameOf(target.class, target.id), target);
    met.objects += own.size;
    if (met.objects > QUERY_FOLLOWED_MAX) throw tooMany(type);
    reached.push([...own.values()].sort(byId));
    if (reader.slices.isOver(1 + own.size)) await reader.slices.pause();
  }
  return reached;
}

function byId(left: End, right: End): number {
  if (left.id !== right.id) return left.id < right.id ? -1 : 1;
  return left.class < right.class ? -1 : Number(left.class > right.class);
}

interface Wanted {
  readonly type: string;
  /** True if the values of the objects are needed, not only their ids. */
  readonly isWanted: boolean;
  readonly limit: number;
}

async function endsBySource(
  sources: readonly End[],
  { type, isWanted, limit }: Wanted,
  work: Work,
): Promise<ReadonlyMap<string, readonly End[]>> {
  const edges: ObjectEdge[] = [];
  for (let at = 0; at < sources.length; at += OBJECT_PAGE_MAX) {
    for await (const page of edgesOf(sources.slice(at, at + OBJECT_PAGE_MAX), type, work)) {
      work.reader.slices.check();
      edges.push(...page);
      if (edges.length > limit) throw tooMany(type);
    }
  }
  const seen = await seenEnds(edges, isWanted, work);
  const ends = new Map<string, End[]>();
  for (const edge of edges) {
    const end = seen.get(nameOf(edge.targetClass, edge.target));
    const source = nameOf(edge.sourceClass, edge.source);
    const known = ends.get(source);
    if (end && known) known.push(end);
    else if (end) ends.set(source, [end]);
    if (work.reader.slices.isOver()) await work.reader.slices.pause();
  }
  return ends;
}

function edgesOf(sources: readonly End[], type: string, { plan, reader }: Work): AsyncIterable<readonly ObjectEdge[]> {
  const { asOfMs, everything } = plan;
  const options = { ...(asOfMs === undefined ? {} : { asOfMs }), ...(reader.signal ? { signal: reader.signal } : {}) };
  const refs = sources
    .filter(({ row }) => !row || mayHaveEdges(row))
    .map(({ id, class: path }) => ({ id, class: path }));
  return reader.objects.unrestricted.edges(everything.principal, refs, { direction: "out", type, ...options });
}

/**
 * The ends without those that a row condition or their owner hides. No edge here leads to a class that may not be read:
 * the objects area leaves such edges out.
 */
async function seenEnds(
  edges: readonly ObjectEdge[],
  isWanted: boolean,
  work: Work,
): Promise<ReadonlyMap<string, End>> {
  const { everything } = work.plan;
  const ruled = new Set(everything.classes.filter((view) => everything.isRuled(view)).map((view) => view.path));
  const seen = new Map<string, End>();
  const asked = new Map<string, ObjectEdge>();
  for (const edge of edges) {
    const { target: id, targetClass: path } = edge;
    if (isWanted || ruled.has(path)) asked.set(nameOf(path, id), edge);
    else seen.set(nameOf(path, id), { id, class: path, row: undefined });
  }
  const visible = visibility(everything);
  for await (const row of endRows([...asked.values()], work)) {
    if (visible(row) !== true) continue;
    work.memory.take(rowBytes(row));
    seen.set(nameOf(row.class.path, row.id), { id: row.id, class: row.class.path, row });
  }
  return seen;
}

async function* endRows(edges: readonly ObjectEdge[], { plan, reader }: Work): AsyncIterable<ObjectRow> {
  const { asOfMs, everything } = plan;
  for (let from = 0; from < edges.length; from += OBJECT_PAGE_MAX) {
    const refs = edges
      .slice(from, from + OBJECT_PAGE_MAX)
      .map(({ target, targetClass }) => ({ id: target, class: targetClass }));
    if (asOfMs === undefined) {
      yield* (await reader.objects.unrestricted.get(everything.principal, refs)).filter((row) => row !== undefined);
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
    `[Exec] ${type} leads to more than ${QUERY_FOLLOWED_MAX} objects from one page of rows: narrow it by WHERE.`,
    { details: { limit: "QUERY_FOLLOWED_MAX" } },
  );
}
