import { AppError } from "../../../../common/errors.ts";
import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import type {
  ClassCount,
  Entity,
  FindRequest,
  ObjectStore,
  RecordSpan,
  TimelineRequest,
} from "../../../store/objects.ts";
import { PSEUDO_COLUMNS } from "../definitions/definition.ts";
import type { LoadedClass, LoadedColumn } from "../definitions/views.ts";
import type { CountRequest, Pushdown, Tally } from "../types.ts";
import { decodeCell } from "../values/codec.ts";
import { mayBeCut, valueTerm } from "../values/terms.ts";
import { canonicalText } from "../values/values.ts";
import { recordValue } from "../values/records.ts";
import type { Narrowing } from "./narrowing.ts";
import type { Branch, Find, ReadPlan, Timeline } from "./readplan.ts";
import { timelineRequest } from "./timelines.ts";

/**
 * Part of a count by one read of the store: all objects that the read names, or those whose cells have the wanted
 * values.
 */
export type Count =
  | { readonly kind: "class"; readonly term: string }
  | {
      readonly kind: "find";
      readonly request: FindRequest;
      readonly cids: ReadonlySet<number>;
      readonly wanted: readonly WantedCell[];
      readonly by: LoadedColumn | undefined;
    }
  | { readonly kind: "records"; readonly span: RecordSpan }
  | {
      readonly kind: "timeline";
      readonly request: TimelineRequest;
      readonly wanted: readonly WantedCell[];
      readonly by: LoadedColumn | undefined;
    };

/**
 * The cell that decides if an object has one of the values, because an index may name objects that no longer have it.
 */
interface WantedCell {
  readonly column: LoadedColumn;
  readonly terms: ReadonlySet<string>;
}

/** Types that are stored in one cell, and whose values are equal exactly if their terms are equal. */
const COUNTED_TYPES: ReadonlySet<string> = new Set([
  "varchar",
  "text",
  "boolean",
  "int",
  "smallint",
  "bigint",
  "long",
  "varint",
]);

/** The parts of the count. `undefined` if the condition or the classes require reading whole rows. */
export function planCount(plan: ReadPlan, request: CountRequest): readonly Count[] | undefined {
  if (plan.byId !== undefined || plan.provided.length > 0) return undefined;
  const counts: Count[] = [];
  for (const branch of plan.branches) {
    const counted = countedBy(branch, request, (pushdown) => pushdown.kind === "equals");
    if (counted === undefined) return undefined;
    for (const find of branch.finds) {
      const wanted = wantedCells(branch.narrowing, find.unionAt);
      if (!wanted.every(isTold)) return undefined;
      counts.push(countOf(find, wanted, counted.column));
    }
  }
  for (const timeline of plan.timelines) {
    const { view, narrowing, unionAt } = timeline;
    const counted = countedBy({ views: [view], narrowing }, request, isOfTimeline);
    const wanted = wantedCells(narrowing, unionAt);
    if (counted === undefined || !wanted.every(isTold)) return undefined;
    counts.push(...recordCounts(timeline, wanted, counted.column));
  }
  return counts;
}

/** The column to count by, if indexes can answer the whole condition; otherwise `undefined`. */
function countedBy(
  { views, narrowing }: Pick<Branch, "views" | "narrowing">,
  { where = [], by }: CountRequest,
  isCounted: (pushdown: Pushdown) => boolean,
): { readonly column: LoadedColumn | undefined } | undefined {
  if (narrowing.used.length < where.length || !where.every(isCounted)) return undefined;
  const column = by === undefined ? undefined : columnOf(views, by);
  return by !== undefined && column === undefined ? undefined : { column };
}

/**
 * True for a condition that a read of records by time can answer. Ranges of times are such, because the id of a record
 * contains its time.
 */
function isOfTimeline(pushdown: Pushdown): boolean {
  return pushdown.kind === "equals" || (pushdown.kind === "range" && PSEUDO_COLUMNS.has(pushdown.column));
}

function isTold({ column: { type }, terms }: WantedCell): boolean {
  return COUNTED_TYPES.has(type) && ![...terms].some(mayBeCut);
}

/** The column of that name, if it is the same in all classes and its type can be counted; otherwise `undefined`. */
function columnOf(views: readonly LoadedClass[], name: string): LoadedColumn | undefined {
  const [first, ...others] = views.map((view) => view.column(name));
  const isOne = others.every((other) => other?.number === first?.number && other?.type === first?.type);
  return first !== undefined && isOne && COUNTED_TYPES.has(first.type) ? first : undefined;
}

function wantedCells(narrowing: Narrowing, unionAt: number | undefined): readonly WantedCell[] {
  const { union, columns, terms } = narrowing;
  const single = columns
    .filter((column) => column !== union?.column)
    .map((column) => ({ column, terms: new Set(terms.filter((term) => isOf(term, column))) }));
  const chosen = unionAt === undefined ? undefined : union?.terms[unionAt];
  return union?.column === undefined || chosen === undefined
    ? single
    : [...single, { column: union.column, terms: new Set([chosen]) }];
}

function isOf(term: string, column: LoadedColumn): boolean {
  return term.startsWith(valueTerm(column.number, ""));
}

function countOf(
  { request, cids, isWholeScope }: Find,
  wanted: readonly WantedCell[],
  by: LoadedColumn | undefined,
): Count {
  const [term] = request.terms;
  if (wanted.length === 0 && by === undefined && isWholeScope && request.terms.length === 1 && term !== undefined)
    return { kind: "class", term };
  const keys = new Set([...wanted.map(({ column }) => column.cellKey), ...(by ? [by.cellKey] : [])]);
  return {
    kind: "find",
    request: { terms: request.terms, cells: { keys: [...keys], prefixes: [] } },
    cids,
    wanted,
    by,
  };
}

/** Empty if the range of times is empty. */
function recordCounts(
  timeline: Timeline,
  wanted: readonly WantedCell[],
  by: LoadedColumn | undefined,
): readonly Count[] {
  const request = timelineRequest(timeline);
  if (request === undefined) return [];
  const { terms, ...span } = request;
  return terms.length === 0 && by === undefined
    ? [{ kind: "records", span }]
    : [{ kind: "timeline", request, wanted, by }];
}

/** Yields the counts page by page. The counts of all pages add up. */
export async function* tallies(
  store: ObjectStore,
  counts: readonly Count[],
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly Tally[]> {
  for (const count of counts) {
    let cursor: string | undefined;
    do {
      if (signal?.aborted) throw new AppError("cancelled", "The read was stopped.");
      const part = await nextPart(store, count, cursor);
      yield part.tallies;
      cursor = part.cursor;
    } while (cursor !== undefined);
  }
}

interface Part {
  readonly tallies: readonly Tally[];
  readonly cursor?: string | undefined;
}

async function nextPart(store: ObjectStore, count: Count, cursor: string | undefined): Promise<Part> {
  if (count.kind === "class") return whole(await store.countClass(count.term, cursor));
  if (count.kind === "records") return whole(await store.countRecords(count.span, cursor));
  const page = { limit: OBJECT_PAGE_MAX, ...(cursor === undefined ? {} : { cursor }) };
  if (count.kind === "timeline") {
    const { items, cursor: next } = await store.timeline({ ...count.request, valuesOnly: true }, page);
    return { tallies: tallied(items, count, recordValue), cursor: next };
  }
  const { items, cursor: next } = await store.find(count.request, page);
  const own = items.filter(({ key }) => count.cids.has(key.cid));
  return { tallies: tallied(own, count, valueOf), cursor: next };
}

function whole({ count, cursor }: ClassCount): Part {
  return { tallies: [{ count }], cursor };
}

type ReadValue<T> = (of: T, column: LoadedColumn) => Value | undefined;

/** Counts the items that have the wanted cells. */
function tallied<T>(
  items: readonly T[],
  { wanted, by }: { readonly wanted: readonly WantedCell[]; readonly by: LoadedColumn | undefined },
  read: ReadValue<T>,
): readonly Tally[] {
  const counted = items.filter((item) => wanted.every((cell) => holds(read(item, cell.column), cell)));
  return by === undefined ? [{ count: counted.length }] : byValue(counted.map((item) => read(item, by)));
}

function holds(value: Value | undefined, { column, terms }: WantedCell): boolean {
  return value !== undefined && terms.has(valueTerm(column.number, canonicalText(value)));
}

function byValue(values: readonly (Value | undefined)[]): readonly Tally[] {
  const tally = new Map<Value | undefined, number>();
  for (const value of values) tally.set(value, (tally.get(value) ?? 0) + 1);
  return Array.from(tally, ([value, count]) => (value === undefined ? { count } : { value, count }));
}

function valueOf({ cells }: Entity, { cellKey }: LoadedColumn): Value | undefined {
  const place = cells.keys.indexOf(cellKey);
  return place < 0 ? undefined : decodeCell(cells.bytes(place), cells.start(place), cells.end(place));
}
