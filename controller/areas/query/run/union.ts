import { AppError } from "../../../../common/errors.ts";
import { QUERY_DEFAULT_LIMIT_ROWS } from "../../../../common/limits.ts";
import { memberOf } from "../../../../common/members.ts";
import { type Operand, type OrderItem, printOperand, type Union } from "../../../../common/mql/index.ts";
import { chained } from "../../../../common/pages.ts";
import type { Row } from "../../../../common/value.ts";
import { nameAmong } from "../../objects/index.ts";
import type { Names } from "../expressions/fields.ts";
import { ANY, type Kind } from "../expressions/kind.ts";
import { type Arguments, rowCount, withValues } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";
import { freeing, type MemoryShare, PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import { type SortEntry, type SortKey, sortKey } from "../expressions/sort.ts";
import { callName, type Output, outputAt, type Shape } from "../plan/outputs.ts";
import { pagingRefused } from "../plan/paging.ts";
import { sortOf } from "../plan/plan.ts";
import type { Arrivals } from "./arrivals.ts";
import { cutAt, windowed } from "./pages.ts";
import { distinctRows, type HoldingInput, type Input, sorted } from "./pipeline.ts";

/** Steps for the rows of all parts together. Columns match by name; a row has only the columns of its own part. */
export interface UnionPlan {
  readonly isAll: boolean;
  readonly orderBy: readonly UnionOrder[];
  readonly sort: Shape<never>["sort"];
  readonly offset: number;
  readonly limit: number | undefined;
  /** As in `Shape`. */
  readonly isCut: boolean;
}

interface UnionOrder {
  readonly name: string;
  readonly kind: Kind;
  readonly descending: boolean;
}

/** The outputs of the rows of one part. */
export type Part = Pick<Shape<never>, "outputs" | "grouping"> & { readonly fields: Names };

type UnionInput = Omit<Input<Row>, "source"> & { readonly arrivals?: Arrivals };

export function planUnion(union: Union, parts: readonly Part[], values: Arguments): UnionPlan {
  if (union.cursor) throw pagingRefused();
  const orderBy = union.orderBy.map((item) => orderOf(item, parts, values));
  const offset = union.offset ? (rowCount(union.offset, values) ?? 0) : 0;
  const usual = parts.every((part) => part.grouping) ? undefined : QUERY_DEFAULT_LIMIT_ROWS;
  const limit = union.limit ? rowCount(union.limit, values) : usual;
  const isCut = !union.limit && limit !== undefined;
  const last = limit === undefined ? undefined : offset + limit + (isCut ? 1 : 0);
  return { isAll: union.all, orderBy, sort: sortOf(orderBy.length, false, last), offset, limit, isCut };
}

export function united(
  plan: UnionPlan,
  parts: readonly AsyncIterable<readonly Row[]>[],
  input: UnionInput,
): AsyncIterable<readonly Row[]> {
  if (!plan.isCut || plan.limit === undefined) return unitedWhole(plan, parts, input);
  return cutAt(unitedWhole({ ...plan, limit: plan.limit + 1 }, parts, input), plan.limit, input.onMore);
}

function unitedWhole(
  plan: UnionPlan,
  parts: readonly AsyncIterable<readonly Row[]>[],
  input: UnionInput,
): AsyncIterable<readonly Row[]> {
  if (plan.isAll && plan.sort === "none") return windowed(chained(parts), plan);
  const memory = PROCESS_MEMORY.share(input.slices.tenant);
  return freeing(memory, unitedHolding(plan, chained(parts), { ...input, memory, rowWork: 1 }));
}

function unitedHolding(
  plan: UnionPlan,
  all: AsyncIterable<readonly Row[]>,
  input: Omit<HoldingInput<Row>, "source"> & UnionInput,
): AsyncIterable<readonly Row[]> {
  const rows = plan.isAll ? all : distinct(all, input.memory);
  if (plan.sort === "none") return windowed(rows, plan);
  const { arrivals } = input;
  const keysOf = (row: Row): SortKey[] => plan.orderBy.map(({ kind, name }) => sortKey(kind, memberOf(row, name)));
  if (arrivals?.descending === undefined)
    return windowed(
      sorted(plan, { ...input, source: rows }, (row) => ({ keys: keysOf(row), row })),
      plan,
    );
  const orderBy = [...plan.orderBy, { descending: arrivals.descending }];
  const entryOf = (row: Row): SortEntry => ({ keys: [...keysOf(row), arrivals.of(row)], row });
  return windowed(sorted({ ...plan, orderBy }, { ...input, source: rows }, entryOf), plan);
}

async function* distinct(pages: AsyncIterable<readonly Row[]>, memory: MemoryShare): AsyncIterable<readonly Row[]> {
  const isNew = distinctRows(memory);
  for await (const page of pages) yield page.filter(isNew);
}

function orderOf(item: OrderItem, parts: readonly Part[], values: Arguments): UnionOrder {
  const placed = about(item.span, () => outputAt(item.value, parts[0]?.outputs ?? []));
  const written = placed?.name ?? writtenName(withValues(item.value, values));
  const name = placed?.name ?? answeredName(written, parts);
  const kinds = new Set(parts.flatMap((part) => part.outputs.flatMap((output) => kindsOf(output, name, part))));
  if (kinds.size === 0)
    throw new AppError("not_found", `Field ${written} Not Exist: a UNION is ordered by what its parts answer.`);
  const [only = ANY] = kinds;
  return { name, kind: kinds.size === 1 ? only : ANY, descending: item.descending };
}

function writtenName(value: Operand): string {
  if (value.kind === "call") return callName(value);
  return value.kind === "field" ? value.parts.join(".") : printOperand(value);
}

/** The name as the parts answer it. The case of `written` does not matter, but an exact match wins. */
function answeredName(written: string, parts: readonly Part[]): string {
  const answered = parts.flatMap((part) =>
    part.outputs.map((output) => (output.kind === "star" ? part.fields.definedName(written) : output.name)),
  );
  return (
    nameAmong(
      answered.filter((name) => name !== undefined),
      written,
    ) ?? written
  );
}

function kindsOf(output: Output, name: string, part: Part): readonly Kind[] {
  if (output.kind === "star") return part.fields.kindsNamed(name);
  if (output.name !== name) return [];
  const { value } = output;
  const field =
    value.kind === "field" ? value.field : value.kind === "key" ? part.grouping?.keys[value.index] : undefined;
  return field ? part.fields.kindsOf(field) : [ANY];
}
