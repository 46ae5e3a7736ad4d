import { AppError } from "../../../../common/errors.ts";
import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import type { Entity, FindRequest, ObjectStore } from "../../../store/objects.ts";
import type { LoadedColumn } from "../definitions/views.ts";
import type { CountRequest, Tally } from "../types.ts";
import { decodeCell } from "../values/codec.ts";
import { mayBeCut, valueTerm } from "../values/terms.ts";
import { canonicalText } from "../values/values.ts";
import type { Branch, Find, ReadPlan } from "./readplan.ts";

/** What one find adds to a count: all that it names, or those of it whose cells hold what was asked for. */
export type Count =
  | { readonly kind: "class"; readonly term: string }
  | {
      readonly kind: "find";
      readonly request: FindRequest;
      readonly cids: ReadonlySet<number>;
      readonly wanted: readonly WantedCell[];
      readonly by: LoadedColumn | undefined;
    };

/** An index may name objects that have the value no more: the cell tells. */
interface WantedCell {
  readonly column: LoadedColumn;
  readonly terms: ReadonlySet<string>;
}

/** Types of one cell whose values are equal exactly where their terms are. */
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

/** `undefined` where something of the condition or of the classes has to be looked at in whole rows. */
export function planCount(plan: ReadPlan, { where = [], by }: CountRequest): readonly Count[] | undefined {
  if (plan.byId !== undefined || plan.provided.length > 0 || plan.timelines.length > 0) return undefined;
  const counts: Count[] = [];
  for (const branch of plan.branches) {
    const { narrowing } = branch;
    if (narrowing.used.length < where.length || where.some((pushdown) => pushdown.kind !== "equals")) return undefined;
    const column = by === undefined ? undefined : columnOf(branch, by);
    if (by !== undefined && column === undefined) return undefined;
    for (const find of branch.finds) {
      const wanted = wantedCells(branch, find);
      if (wanted.some(({ column: { type }, terms }) => !COUNTED_TYPES.has(type) || [...terms].some(mayBeCut)))
        return undefined;
      counts.push(countOf(find, wanted, column));
    }
  }
  return counts;
}

/** The column of that name, if it is the same one in all classes of the branch. */
function columnOf({ views }: Branch, name: string): LoadedColumn | undefined {
  const [first, ...others] = views.map((view) => view.column(name));
  const isOne = others.every((other) => other?.number === first?.number && other?.type === first?.type);
  return first !== undefined && isOne && COUNTED_TYPES.has(first.type) ? first : undefined;
}

function wantedCells({ narrowing }: Branch, { unionAt }: Find): readonly WantedCell[] {
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

/** Page by page, of each what it adds. */
export async function* tallies(
  store: ObjectStore,
  counts: readonly Count[],
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly Tally[]> {
  for (const count of counts) {
    let cursor: string | undefined;
    do {
      if (signal?.aborted) throw new AppError("cancelled", "The read was stopped.");
      if (count.kind === "class") {
        const part = await store.countClass(count.term, cursor);
        yield [{ count: part.count }];
        cursor = part.cursor;
      } else {
        const page = { limit: OBJECT_PAGE_MAX, ...(cursor === undefined ? {} : { cursor }) };
        const part = await store.find(count.request, page);
        const counted = part.items.filter((entity) => count.cids.has(entity.key.cid) && holds(entity, count.wanted));
        yield count.by === undefined ? [{ count: counted.length }] : byValue(counted, count.by);
        cursor = part.cursor;
      }
    } while (cursor !== undefined);
  }
}

function holds(entity: Entity, wanted: readonly WantedCell[]): boolean {
  return wanted.every(({ column, terms }) => {
    const value = valueOf(entity, column);
    return value !== undefined && terms.has(valueTerm(column.number, canonicalText(value)));
  });
}

function byValue(entities: readonly Entity[], by: LoadedColumn): readonly Tally[] {
  const tally = new Map<Value | undefined, number>();
  for (const entity of entities) {
    const value = valueOf(entity, by);
    tally.set(value, (tally.get(value) ?? 0) + 1);
  }
  return Array.from(tally, ([value, count]) => (value === undefined ? { count } : { value, count }));
}

function valueOf({ cells }: Entity, { cellKey }: LoadedColumn): Value | undefined {
  const place = cells.keys.indexOf(cellKey);
  return place < 0 ? undefined : decodeCell(cells.bytes(place), cells.start(place), cells.end(place));
}
