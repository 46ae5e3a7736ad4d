import { AppError } from "../../../common/errors.ts";
import { OBJECT_PAGE_MAX, QUERY_DISTINCT_MAX_ROWS } from "../../../common/limits.ts";
import { type Call, type Field, printCall } from "../../../common/mql/index.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { ObjectRow, ReadRequest } from "../objects/index.ts";
import { aggregateKind, type AggregateSpec, type GroupRow, Grouping, onlyKind } from "./aggregate.ts";
import type { Kind } from "./kind.ts";
import type { Expression, GroupPlan, Output, SelectPlan } from "./plan.ts";
import { compilePredicate, type Predicate, type Source } from "./predicate.ts";
import { PSEUDO_FIELDS, readPseudo, type Scope, visibility } from "./scope.ts";
import { Slices } from "./slice.ts";
import { Sorter, sortKey } from "./sort.ts";
import { canonical } from "./questions.ts";

export interface RunContext {
  readonly read: (request: ReadRequest) => AsyncIterable<readonly ObjectRow[]>;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/** The rows of a SELECT, page by page; nothing is read before the first page is asked for. */
export function runSelect(plan: SelectPlan, context: RunContext): AsyncIterable<readonly Row[]> {
  const slices = new Slices(context.clock, context.signal);
  const filter = filterOf(plan);
  const source = matching({ reads: plan.reads, filter, slices }, context);
  const sized = plan.grouping ? grouped(plan, plan.grouping, { source, slices }) : listed(plan, { source, slices });
  return windowed(sized, plan);
}

/** The rows that exist for the principal and fulfil the condition, whatever the store answered. */
export async function* matching(
  work: { readonly reads: readonly ReadRequest[]; readonly filter: Predicate<ObjectRow>; readonly slices: Slices },
  context: RunContext,
): AsyncIterable<readonly ObjectRow[]> {
  const { reads, filter, slices } = work;
  for (const read of reads) {
    slices.check();
    for await (const page of context.read({ ...read, ...(context.signal ? { signal: context.signal } : {}) })) {
      const kept: ObjectRow[] = [];
      for (const row of page) {
        if (filter(row) === true) kept.push(row);
        if (slices.isOver()) await slices.pause();
      }
      if (kept.length > 0) yield kept;
    }
  }
}

/** Bound now, so that a wrong name or value is an error before anything is read. */
export function filterOf(plan: Pick<SelectPlan, "scope" | "where" | "values">): Predicate<ObjectRow> {
  const { scope, where, values } = plan;
  const visible = visibility(scope);
  if (!where) return visible;
  const wanted = compilePredicate(where, { values, resolve: (operand) => rowSource(operand, scope) });
  return (row) => visible(row) === true && wanted(row);
}

function rowSource(operand: Field | Call, scope: Scope): Source<ObjectRow> {
  if (operand.kind === "field") return scope.source(scope.bind(operand));
  throw new AppError("invalid", `[Valid] ${printCall(operand)} cannot stand in WHERE: use HAVING.`);
}

interface Input {
  readonly source: AsyncIterable<readonly ObjectRow[]>;
  readonly slices: Slices;
}

function listed(plan: SelectPlan, input: Input): AsyncIterable<readonly Row[]> {
  const project = projection(plan.outputs, plan.scope);
  const isNew = plan.distinct ? distinctRows() : () => true;
  if (plan.sort === "none" || plan.sort === "stored") return streamed(input, project, isNew);
  const keys = plan.orderBy.map((item) => keyReader(item.value, plan.scope));
  const sorter = sorterOf(plan);
  return sorted(input, sorter, (row) => {
    const result = project(row);
    if (isNew(result)) sorter.add({ keys: keys.map((key) => key(row)), row: result });
  });
}

async function* streamed(input: Input, project: (row: ObjectRow) => Row, isNew: (row: Row) => boolean): AsyncIterable<readonly Row[]> {
  for await (const page of input.source) yield page.map(project).filter(isNew);
}

async function* sorted(input: Input, sorter: Sorter, add: (row: ObjectRow) => void): AsyncIterable<readonly Row[]> {
  for await (const page of input.source) {
    for (const row of page) {
      add(row);
      if (input.slices.isOver()) await input.slices.pause();
    }
  }
  yield* paged(sorter.rows(), input.slices);
}

async function* grouped(plan: SelectPlan, group: GroupPlan, input: Input): AsyncIterable<readonly Row[]> {
  const keys = group.keys.map((field) => plan.scope.source(field));
  const specs = group.aggregates.map(({ name, field, distinct }): AggregateSpec => ({ name, distinct, source: field && plan.scope.source(field) }));
  const shape: GroupShape = { plan, group, keyKinds: keys.map(onlyKind), resultKinds: specs.map(aggregateKind) };
  const passes = havingOf(shape);
  const grouping = new Grouping(keys, specs);
  for await (const page of input.source) {
    for (const row of page) {
      grouping.add(row);
      if (input.slices.isOver()) await input.slices.pause();
    }
  }
  yield* paged(groupRows(grouping, shape, passes), input.slices);
}

interface GroupShape {
  readonly plan: SelectPlan;
  readonly group: GroupPlan;
  readonly keyKinds: readonly Kind[];
  readonly resultKinds: readonly Kind[];
}

function* groupRows(grouping: Grouping, shape: GroupShape, passes: Predicate<GroupRow>): Iterable<Row> {
  const { plan } = shape;
  const isNew = plan.distinct ? distinctRows() : () => true;
  const sorter = plan.orderBy.length > 0 ? sorterOf(plan) : undefined;
  for (const row of grouping.rows()) {
    if (passes(row) !== true) continue;
    const result = groupOutput(plan.outputs, row);
    if (!isNew(result)) continue;
    if (!sorter) yield result;
    else sorter.add({ keys: plan.orderBy.map((item) => sortKey(groupKind(item.value, shape), groupValue(item.value, row))), row: result });
  }
  if (sorter) yield* sorter.rows();
}

function groupOutput(outputs: readonly Output[], row: GroupRow): Row {
  const result: Row = {};
  for (const output of outputs) if (output.kind === "value") result[output.name] = groupValue(output.value, row) ?? null;
  return result;
}

function groupValue(value: Expression, row: GroupRow): Value | undefined {
  return value.kind === "key" ? row.keys[value.index] : value.kind === "aggregate" ? row.results[value.index] : undefined;
}

function groupKind(value: Expression, shape: GroupShape): Kind {
  const kind = value.kind === "key" ? shape.keyKinds[value.index] : value.kind === "aggregate" ? shape.resultKinds[value.index] : undefined;
  if (!kind) throw new RangeError("a grouped query has only keys and aggregates");
  return kind;
}

function havingOf(shape: GroupShape): Predicate<GroupRow> {
  const { having } = shape.group;
  if (!having) return () => true;
  return compilePredicate(having, {
    values: shape.plan.values,
    resolve(operand) {
      const value = havingExpression(operand, shape);
      const kind = groupKind(value, shape);
      const label = operand.kind === "call" ? printCall(operand) : operand.parts.join(".");
      return { label, kinds: [kind], read: (row) => groupValue(value, row) ?? null, kind: () => kind };
    },
  });
}

function havingExpression(operand: Field | Call, { plan, group }: GroupShape): Expression {
  if (operand.kind === "call") return { kind: "aggregate", index: group.aggregates.findIndex((aggregate) => aggregate.label === printCall(operand)) };
  const alias = operand.parts.length === 1 ? group.aliases.get(operand.parts[0] ?? "") : undefined;
  if (alias) return alias;
  const { label } = plan.scope.bind(operand);
  const index = group.keys.findIndex((key) => key.label === label);
  if (index === -1) throw new AppError("invalid", `[Valid] ${label} in HAVING must stand in GROUP BY or inside an aggregate.`);
  return { kind: "key", index };
}

function sorterOf(plan: SelectPlan): Sorter {
  const keep = plan.sort === "top" && plan.limit !== undefined ? plan.offset + plan.limit : undefined;
  return new Sorter(plan.orderBy.map((item) => item.descending), keep);
}

function keyReader(value: Expression, scope: Scope): (row: ObjectRow) => ReturnType<typeof sortKey> {
  if (value.kind !== "field") throw new RangeError("rows are ordered by their own fields");
  const source = scope.source(value.field);
  return (row) => sortKey(source.kind(row), source.read(row));
}

/** Columns a row's class lacks are left out; columns that are not set are null. */
function projection(outputs: readonly Output[], scope: Scope): (row: ObjectRow) => Row {
  const parts = outputs.map((output) => (output.kind === "star" ? starProjection(scope) : fieldProjection(output.name, output.value, scope)));
  return (row) => {
    const result: Row = {};
    for (const part of parts) part(row, result);
    return result;
  };
}

function fieldProjection(name: string, value: Expression, scope: Scope): (row: ObjectRow, result: Row) => void {
  if (value.kind !== "field") throw new RangeError("only a group has keys and aggregates");
  const source = scope.source(value.field);
  return (row, result) => {
    const own = source.read(row);
    if (own !== undefined) result[name] = own;
  };
}

function starProjection(scope: Scope): (row: ObjectRow, result: Row) => void {
  const names = new Map<number, readonly string[]>();
  return (row, result) => {
    let columns = names.get(row.class.cid);
    if (!columns) names.set(row.class.cid, (columns = scope.columnsOf(row.class).map((column) => column.name)));
    for (const pseudo of PSEUDO_FIELDS) result[pseudo] = readPseudo(pseudo, row);
    for (const name of columns) result[name] = row.values[name] ?? null;
  };
}

function distinctRows(): (row: Row) => boolean {
  const seen = new Set<string>();
  return (row) => {
    const name = canonical(row);
    if (seen.has(name)) return false;
    if (seen.size >= QUERY_DISTINCT_MAX_ROWS) {
      throw new AppError("too_large", `[Exec] DISTINCT over more than ${QUERY_DISTINCT_MAX_ROWS} rows.`, { details: { limit: "QUERY_DISTINCT_MAX_ROWS" } });
    }
    seen.add(name);
    return true;
  };
}

async function* paged(rows: Iterable<Row>, slices: Slices): AsyncIterable<readonly Row[]> {
  let page: Row[] = [];
  for (const row of rows) {
    page.push(row);
    if (slices.isOver()) await slices.pause();
    if (page.length < OBJECT_PAGE_MAX) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

/** OFFSET and LIMIT; stops reading as soon as enough rows are there. */
async function* windowed(pages: AsyncIterable<readonly Row[]>, plan: Pick<SelectPlan, "offset" | "limit">): AsyncIterable<readonly Row[]> {
  let skip = plan.offset;
  let left = plan.limit ?? Infinity;
  if (left === 0) return;
  for await (const page of pages) {
    const rows = page.slice(skip, skip + left);
    skip = Math.max(0, skip - page.length);
    left -= rows.length;
    if (rows.length > 0) yield rows;
    if (left <= 0) return;
  }
}
