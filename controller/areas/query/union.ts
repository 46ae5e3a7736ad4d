import { AppError } from "../../../common/errors.ts";
import { QUERY_DEFAULT_LIMIT_ROWS } from "../../../common/limits.ts";
import type { OrderItem, Union } from "../../../common/mql/index.ts";
import type { Row } from "../../../common/value.ts";
import type { Names } from "./fields.ts";
import { ANY, type Kind } from "./kind.ts";
import { type Arguments, rowCount } from "./literal.ts";
import { callName, type Output, type Shape } from "./outputs.ts";
import { pagingRefused } from "./paging.ts";
import { distinctRows, type Input, sorted, windowed } from "./pipeline.ts";
import { sortOf } from "./plan.ts";
import { type SortEntry, sortKey } from "./sort.ts";

/** What is made of the rows of all parts together. Columns belong together by name; a row has those that its own part has. */
export interface UnionPlan {
  readonly isAll: boolean;
  readonly orderBy: readonly UnionOrder[];
  readonly sort: Shape<never>["sort"];
  readonly offset: number;
  readonly limit: number | undefined;
}

interface UnionOrder {
  readonly name: string;
  readonly kind: Kind;
  readonly descending: boolean;
}

/** Of a part: what its rows have. */
export type Part = Pick<Shape<never>, "outputs" | "grouping"> & { readonly fields: Names };

export function planUnion(union: Union, parts: readonly Part[], values: Arguments): UnionPlan {
  if (union.cursor) throw pagingRefused();
  const orderBy = union.orderBy.map((item) => orderOf(item, parts));
  const offset = union.offset ? (rowCount(union.offset, values) ?? 0) : 0;
  const usual = parts.every((part) => part.grouping) ? undefined : QUERY_DEFAULT_LIMIT_ROWS;
  const limit = union.limit ? rowCount(union.limit, values) : usual;
  return {
    isAll: union.all,
    orderBy,
    sort: sortOf(orderBy.length, false, limit === undefined ? undefined : offset + limit),
    offset,
    limit,
  };
}

export function united(
  plan: UnionPlan,
  parts: readonly AsyncIterable<readonly Row[]>[],
  input: Omit<Input<Row>, "source">,
): AsyncIterable<readonly Row[]> {
  const rows = plan.isAll ? chained(parts) : distinct(chained(parts));
  if (plan.sort === "none") return windowed(rows, plan);
  const entryOf = (row: Row): SortEntry => ({
    keys: plan.orderBy.map(({ kind, name }) => sortKey(kind, row[name])),
    row,
  });
  return windowed(sorted(plan, { ...input, source: rows }, entryOf), plan);
}

export function chained(parts: readonly AsyncIterable<readonly Row[]>[]): AsyncIterable<readonly Row[]> {
  const [only] = parts;
  return only && parts.length === 1 ? only : allOf(parts);
}

async function* allOf(parts: readonly AsyncIterable<readonly Row[]>[]): AsyncIterable<readonly Row[]> {
  for (const part of parts) for await (const page of part) yield page;
}

async function* distinct(pages: AsyncIterable<readonly Row[]>): AsyncIterable<readonly Row[]> {
  const isNew = distinctRows();
  for await (const page of pages) yield page.filter(isNew);
}

function orderOf(item: OrderItem, parts: readonly Part[]): UnionOrder {
  const name = item.value.kind === "call" ? callName(item.value) : item.value.parts.join(".");
  const kinds = new Set(parts.flatMap((part) => part.outputs.flatMap((output) => kindsOf(output, name, part))));
  if (kinds.size === 0)
    throw new AppError("not_found", `Field ${name} Not Exist: a UNION is ordered by what its parts answer.`);
  const [only = ANY] = kinds;
  return { name, kind: kinds.size === 1 ? only : ANY, descending: item.descending };
}

function kindsOf(output: Output, name: string, part: Part): readonly Kind[] {
  if (output.kind === "star") return part.fields.kindsNamed(name);
  if (output.name !== name) return [];
  const { value } = output;
  const field =
    value.kind === "field" ? value.field : value.kind === "key" ? part.grouping?.keys[value.index] : undefined;
  return field ? part.fields.kindsOf(field) : [ANY];
}
