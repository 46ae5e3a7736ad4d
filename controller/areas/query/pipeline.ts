import { AppError } from "../../../common/errors.ts";
import { OBJECT_PAGE_MAX, QUERY_DISTINCT_MAX_ROWS } from "../../../common/limits.ts";
import { type Call, type Field, printCall } from "../../../common/mql/index.ts";
import type { Row, Value } from "../../../common/value.ts";
import { aggregateKind, type AggregateSpec, type GroupRow, Grouping, onlyKind } from "./aggregate.ts";
import type { Fields } from "./fields.ts";
import type { Kind } from "./kind.ts";
import type { Expression, GroupPlan, Output, Paging, Shape } from "./outputs.ts";
import { compilePredicate, type Predicate } from "./predicate.ts";
import { canonical } from "./questions.ts";
import type { Slices } from "./slice.ts";
import { SpillingSorter } from "./spill.ts";
import { orderOf, type SortEntry, Sorter, sortKey, type SortKey } from "./sort.ts";

/** The answer made of the rows that fulfil the condition, page by page. */
export function shaped<R>(shape: Shape<R>, input: Input<R>): AsyncIterable<readonly Row[]> {
  if (shape.paging) return onePage(shape, shape.paging, input);
  if (shape.grouping) return windowed(grouped(shape, shape.grouping, input), shape);
  if (shape.distinct || !(shape.sort === "none" || shape.sort === "stored"))
    return windowed(listed(shape, input), shape);
  return asTheyCome(shape, input);
}

export interface Input<R> {
  readonly source: AsyncIterable<readonly R[]>;
  readonly slices: Slices;
  /** Told what the last row is ordered by when it fills its page. */
  readonly onPageEnd?: (keys: readonly SortKey[]) => void;
  /** Where sorts may put what memory should not hold; absent: nowhere, they are refused beyond `QUERY_SORT_MAX_ROWS`. */
  readonly sortFolder?: string | undefined;
}

function listed<R>(shape: Shape<R>, input: Input<R>): AsyncIterable<readonly Row[]> {
  const project = projection(shape.outputs, shape.fields);
  const isNew = shape.distinct ? distinctRows() : () => true;
  if (shape.sort === "none" || shape.sort === "stored") return different(input, project, isNew);
  const readers = shape.orderBy.map((item) => keyReader(item.value, shape.fields));
  return sorted(shape, input, (row, isBeyond) => {
    const keys = readers.map((key) => key(row));
    // What is different is different among all rows, not among those that are kept.
    if (!shape.distinct && isBeyond(keys)) return undefined;
    const result = project(row);
    return isNew(result) ? { keys, row: result } : undefined;
  });
}

/** Most queries by far: only what is answered is made into rows. */
async function* asTheyCome<R>(shape: Shape<R>, { source }: Input<R>): AsyncIterable<readonly Row[]> {
  const project = projection(shape.outputs, shape.fields);
  const window = new Window(shape);
  if (window.isOver) return;
  for await (const page of source) {
    const rows = window.of(page);
    if (rows.length > 0) yield rows.map(project);
    if (window.isOver) return;
  }
}

async function* different<R>(
  input: Input<R>,
  project: (row: R) => Row,
  isNew: (row: Row) => boolean,
): AsyncIterable<readonly Row[]> {
  for await (const page of input.source) yield page.map(project).filter(isNew);
}

/** Nothing for a row that is left out. `isBeyond` tells which keys need no row, as enough are before them. */
type EntryOf<R> = (row: R, isBeyond: (keys: readonly SortKey[]) => boolean) => SortEntry | undefined;

/** The rows as `entryOf` makes them, in order. */
export function sorted<R>(shape: Sorted, input: Input<R>, entryOf: EntryOf<R>): AsyncIterable<readonly Row[]> {
  const { sortFolder } = input;
  const isSpilling = shape.sort === "all" && sortFolder !== undefined;
  return isSpilling
    ? sortedOnDisk({ ...input, sortFolder }, shape, entryOf)
    : sortedInMemory(input, sorterOf(shape), entryOf);
}

type Sorted = Pick<Shape<never>, "sort" | "limit" | "offset"> & {
  readonly orderBy: readonly { readonly descending: boolean }[];
};

async function* sortedInMemory<R>(input: Input<R>, sorter: Sorter, entryOf: EntryOf<R>): AsyncIterable<readonly Row[]> {
  const isBeyond = (keys: readonly SortKey[]): boolean => sorter.isBeyond(keys);
  await addAll(input, (row) => {
    const entry = entryOf(row, isBeyond);
    if (entry) sorter.add(entry);
  });
  yield* paged(sorter.rows(), input.slices);
}

async function* sortedOnDisk<R>(
  input: Input<R> & { readonly sortFolder: string },
  shape: Sorted,
  entryOf: EntryOf<R>,
): AsyncIterable<readonly Row[]> {
  const sorter = new SpillingSorter(
    input.sortFolder,
    shape.orderBy.map((item) => item.descending),
  );
  try {
    for await (const page of input.source) {
      for (const row of page) {
        const entry = entryOf(row, () => false);
        if (entry) sorter.add(entry);
        if (sorter.isFull) await sorter.spill();
        if (input.slices.isOver()) await input.slices.pause();
      }
    }
    for await (const page of sorter.pages()) {
      yield page;
      if (input.slices.isOver()) await input.slices.pause();
    }
  } finally {
    await sorter.close();
  }
}

function addAll<R>(input: Input<R>, add: (row: R) => void): Promise<void> {
  return addUntil(input, (row) => {
    add(row);
    return false;
  });
}

/** Until one row says that no more are needed. */
async function addUntil<R>({ source, slices }: Input<R>, add: (row: R) => boolean): Promise<void> {
  for await (const page of source) {
    for (const row of page) {
      if (add(row)) return;
      if (slices.isOver()) await slices.pause();
    }
  }
}

function grouped<R>(shape: Shape<R>, group: GroupPlan, input: Input<R>): AsyncIterable<readonly Row[]> {
  const { fields } = shape;
  const keys = group.keys.map((field) => fields.source(field));
  const specs = group.aggregates.map(({ name, field, distinct }): AggregateSpec<R> => {
    return { name, distinct, source: field && fields.source(field), writtenMs: fields.writtenMs(field) };
  });
  const groups: Groups = { shape, group, keyKinds: keys.map(onlyKind), resultKinds: specs.map(aggregateKind) };
  const passes = havingOf(groups);
  return collected(input, new Grouping(keys, specs), (grouping) => groupRows(grouping.rows(), groups, passes));
}

async function* collected<R>(
  input: Input<R>,
  grouping: Grouping<R>,
  rowsOf: (grouping: Grouping<R>) => Iterable<Row>,
): AsyncIterable<readonly Row[]> {
  await addAll(input, (row) => grouping.add(row));
  yield* paged(rowsOf(grouping), input.slices);
}

interface Groups {
  readonly shape: Shape<never>;
  readonly group: GroupPlan;
  readonly keyKinds: readonly Kind[];
  readonly resultKinds: readonly Kind[];
}

function* groupRows(rows: Iterable<GroupRow>, groups: Groups, passes: Predicate<GroupRow>): Iterable<Row> {
  const { shape } = groups;
  const isNew = shape.distinct ? distinctRows() : () => true;
  const sorter = shape.orderBy.length > 0 ? sorterOf(shape) : undefined;
  for (const row of rows) {
    if (passes(row) !== true) continue;
    const result = groupOutput(shape.outputs, row);
    if (!isNew(result)) continue;
    if (!sorter) yield result;
    else
      sorter.add({
        keys: shape.orderBy.map((item) => sortKey(groupKind(item.value, groups), groupValue(item.value, row))),
        row: result,
      });
  }
  if (sorter) yield* sorter.rows();
}

function groupOutput(outputs: readonly Output[], row: GroupRow): Row {
  const result: Row = {};
  for (const output of outputs)
    if (output.kind === "value") result[output.name] = groupValue(output.value, row) ?? null;
  return result;
}

function groupValue(value: Expression, row: GroupRow): Value | undefined {
  return value.kind === "key"
    ? row.keys[value.index]
    : value.kind === "aggregate"
      ? row.results[value.index]
      : undefined;
}

function groupKind(value: Expression, groups: Groups): Kind {
  const kind =
    value.kind === "key"
      ? groups.keyKinds[value.index]
      : value.kind === "aggregate"
        ? groups.resultKinds[value.index]
        : undefined;
  if (!kind) throw new RangeError("a grouped query has only keys and aggregates");
  return kind;
}

function havingOf(groups: Groups): Predicate<GroupRow> {
  const { having } = groups.group;
  if (!having) return () => true;
  return compilePredicate(having, {
    values: groups.shape.values,
    resolve(operand) {
      const value = havingExpression(operand, groups);
      const kind = groupKind(value, groups);
      const label = operand.kind === "call" ? printCall(operand) : operand.parts.join(".");
      return { label, kinds: [kind], read: (row) => groupValue(value, row) ?? null, kind: () => kind };
    },
  });
}

function havingExpression(operand: Field | Call, { shape, group }: Groups): Expression {
  if (operand.kind === "call")
    return {
      kind: "aggregate",
      index: group.aggregates.findIndex((aggregate) => aggregate.label === printCall(operand)),
    };
  const alias = operand.parts.length === 1 ? group.aliases.get(operand.parts[0] ?? "") : undefined;
  if (alias) return alias;
  const { label } = shape.fields.bind(operand, shape.values);
  const index = group.keys.findIndex((key) => key.label === label);
  if (index === -1)
    throw new AppError("invalid", `[Valid] ${label} in HAVING must stand in GROUP BY or inside an aggregate.`);
  return { kind: "key", index };
}

/** The rows behind those of the page before. */
function onePage<R>(shape: Shape<R>, { after, stored }: Paging, input: Input<R>): AsyncIterable<readonly Row[]> {
  const project = projection(shape.outputs, shape.fields);
  const keys = shape.orderBy.map((item) => keyReader(item.value, shape.fields));
  const order = orderOf(shape.orderBy.map((item) => item.descending));
  const sorter = sorterOf(shape);
  let left = shape.limit ?? Infinity;
  let filledBy: SortKey | undefined;
  return pageOf(shape, { input, sorter }, (row) => {
    const own = keys.map((key) => key(row));
    if (after && order(own, after) <= 0) return false;
    sorter.add({ keys: own, row: project(row) });
    left -= 1;
    if (left === 0) filledBy = own[0];
    return stored && left < 0 && own[0] !== filledBy;
  });
}

async function* pageOf<R>(
  shape: Shape<R>,
  { input, sorter }: { readonly input: Input<R>; readonly sorter: Sorter },
  add: (row: R) => boolean,
): AsyncIterable<readonly Row[]> {
  await addUntil(input, add);
  const entries: SortEntry[] = [];
  for (const entry of sorter.entries()) {
    if (shape.limit !== undefined && entries.length >= shape.limit) break;
    entries.push(entry);
  }
  const last = entries.at(-1);
  if (last && entries.length === shape.limit) input.onPageEnd?.(last.keys);
  yield* paged(
    entries.map((entry) => entry.row),
    input.slices,
  );
}

function sorterOf(shape: Sorted): Sorter {
  const keep = shape.sort === "top" && shape.limit !== undefined ? shape.offset + shape.limit : undefined;
  return new Sorter(
    shape.orderBy.map((item) => item.descending),
    keep,
  );
}

function keyReader<R>(value: Expression, fields: Fields<R>): (row: R) => ReturnType<typeof sortKey> {
  if (value.kind !== "field") throw new RangeError("rows are ordered by their own fields");
  const source = fields.source(value.field);
  return (row) => sortKey(source.kind(row), source.read(row));
}

/** Columns a row's class lacks are left out; columns that are not set are null. */
function projection<R>(outputs: readonly Output[], fields: Fields<R>): (row: R) => Row {
  const parts = outputs.map((output) =>
    output.kind === "star" ? fields.wholeRow() : fieldProjection(output.name, output.value, fields),
  );
  return (row) => {
    const result: Row = {};
    for (const part of parts) part(row, result);
    return result;
  };
}

function fieldProjection<R>(name: string, value: Expression, fields: Fields<R>): (row: R, result: Row) => void {
  if (value.kind !== "field") throw new RangeError("only a group has keys and aggregates");
  const source = fields.source(value.field);
  return (row, result) => {
    const own = source.read(row);
    if (own !== undefined) result[name] = own;
  };
}

/** True for every row that was not there before. */
export function distinctRows(): (row: Row) => boolean {
  const seen = new Set<string>();
  return (row) => {
    const name = canonical(row);
    if (seen.has(name)) return false;
    if (seen.size >= QUERY_DISTINCT_MAX_ROWS) {
      throw new AppError("too_large", `[Exec] DISTINCT over more than ${QUERY_DISTINCT_MAX_ROWS} rows.`, {
        details: { limit: "QUERY_DISTINCT_MAX_ROWS" },
      });
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
export async function* windowed(
  pages: AsyncIterable<readonly Row[]>,
  shape: Pick<Shape<never>, "offset" | "limit">,
): AsyncIterable<readonly Row[]> {
  const window = new Window(shape);
  if (window.isOver) return;
  for await (const page of pages) {
    const rows = window.of(page);
    if (rows.length > 0) yield rows;
    if (window.isOver) return;
  }
}

/** What OFFSET and LIMIT let through of pages that follow each other. */
class Window {
  #skip: number;
  #left: number;

  constructor({ offset, limit }: Pick<Shape<never>, "offset" | "limit">) {
    this.#skip = offset;
    this.#left = limit ?? Infinity;
  }

  get isOver(): boolean {
    return this.#left <= 0;
  }

  of<R>(page: readonly R[]): readonly R[] {
    const rows = this.#skip === 0 && page.length <= this.#left ? page : page.slice(this.#skip, this.#skip + this.#left);
    this.#skip = Math.max(0, this.#skip - page.length);
    this.#left -= rows.length;
    return rows;
  }
}
