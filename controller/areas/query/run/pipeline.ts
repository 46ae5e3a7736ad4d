import { AppError } from "../../../../common/errors.ts";
import { QUERY_DISTINCT_MAX_ROWS } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { setMember } from "../../../../common/members.ts";
import { type GroupRow, Grouping } from "../expressions/aggregates/aggregate.ts";
import type { Fields } from "../expressions/fields.ts";
import { bytesOf, freeing, type MemoryShare, PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import { canonical } from "../expressions/questions.ts";
import { orderOf, type SortEntry, Sorter, sortKey, type SortKey } from "../expressions/sort.ts";
import type { Expression, GroupPlan, Output, Paging, Shape } from "../plan/outputs.ts";
import { filled } from "./fill.ts";
import { answerOf, type GroupAnswer, type Groups, groupsOf } from "./groups.ts";
import { cutAt, paged, projected, windowed } from "./pages.ts";
import type { Slices } from "./slice.ts";
import { type StepTimes, timed } from "./steps.ts";
import { SpillingSorter } from "./spill.ts";
import { WindowValues } from "./windows.ts";
import { rowWorkOf } from "./work.ts";

/** Makes the answer from the rows that fulfil the condition, page by page. */
export function shaped<R>(written: Shape<R>, input: Input<R>): AsyncIterable<readonly Row[]> {
  const { shape, given } = written.windows.length > 0 ? overWindows(written, input) : { shape: written, given: input };
  if (!shape.isCut || shape.limit === undefined) return shapedWhole(shape, given);
  return cutAt(shapedWhole({ ...shape, limit: shape.limit + 1 }, given), shape.limit, given.onMore);
}

/** Does the same for rows that are all in memory, with the values that are computed from several rows. */
function overWindows<R>(shape: Shape<R>, given: Input<R>): { readonly shape: Shape<R>; readonly given: Input<R> } {
  const memory = PROCESS_MEMORY.share(given.slices.tenant);
  const windows = new WindowValues(shape, memory);
  const held = freeing(memory, windows.held(given.source, given.slices, given.bytesOf ?? (() => 0)));
  const source = timed(given.steps, "windows", held);
  return { shape: { ...shape, fields: windows.fields }, given: { ...given, source } };
}

function shapedWhole<R>(shape: Shape<R>, given: Input<R>): AsyncIterable<readonly Row[]> {
  const rowWork = rowWorkOf(shape);
  if (!shape.paging && !shape.grouping && !shape.distinct && (shape.sort === "none" || shape.sort === "stored")) {
    // The case of most queries: no rows are held, and only rows of the answer are made.
    const answered = windowed(given.source, shape, {
      project: noting(projection(shape.outputs, shape.fields), given.onRow),
      rowWork,
      slices: given.slices,
    });
    return timed(given.steps, "select list", answered);
  }
  const memory = PROCESS_MEMORY.share(given.slices.tenant);
  return freeing(memory, shapedHolding(shape, { ...given, memory, rowWork }));
}

function shapedHolding<R>(shape: Shape<R>, input: HoldingInput<R>): AsyncIterable<readonly Row[]> {
  const { steps } = input;
  if (shape.paging) return timed(steps, "sort", onePage(shape, shape.paging, input));
  if (shape.grouping) return windowed(timed(steps, "group", grouped(shape, shape.grouping, input)), shape);
  if (shape.sort !== "none" && shape.sort !== "stored")
    return windowed(timed(steps, "sort", ordered(shape, input)), shape);
  return windowed(timed(steps, "distinct", different(input, projection(shape.outputs, shape.fields))), shape);
}

export interface Input<R> {
  readonly source: AsyncIterable<readonly R[]>;
  readonly slices: Slices;
  readonly steps?: StepTimes | undefined;
  /** Estimated bytes of a row; called only if OVER (…) holds the rows. */
  readonly bytesOf?: (row: R) => number;
  /** Called when the page is full, with the sort keys of its last row. */
  readonly onPageEnd?: (keys: readonly SortKey[]) => void;
  /** Called with each row of an unsorted answer, and with the row that it was made from. */
  readonly onRow?: ((answered: Row, row: R) => void) | undefined;
  /** Called when the default limit left rows out, before the first row of the answer. */
  readonly onMore?: (() => void) | undefined;
  /** Folder for sorts that exceed memory. Absent: they are refused beyond `QUERY_SORT_MAX_ROWS`. */
  readonly sortFolder?: string | undefined;
}

/** Input of steps that hold rows in memory. */
export interface HoldingInput<R> extends Input<R> {
  readonly memory: MemoryShare;
  /** Cost of one of these rows, in ordinary rows. */
  readonly rowWork: number;
}

function ordered<R>(shape: Shape<R>, input: HoldingInput<R>): AsyncIterable<readonly Row[]> {
  const project = projection(shape.outputs, shape.fields);
  const isNew = shape.distinct ? distinctRows(input.memory) : () => true;
  const readers = shape.orderBy.map((item) => keyReader(item.value, shape.fields));
  return sorted(shape, input, (row, isBeyond) => {
    const keys = readers.map((key) => key(row));
    // DISTINCT compares with all rows, so every row is made.
    if (!shape.distinct && isBeyond(keys)) return undefined;
    const result = project(row);
    return isNew(result) ? { keys, row: result } : undefined;
  });
}

async function* different<R>(input: HoldingInput<R>, project: (row: R) => Row): AsyncIterable<readonly Row[]> {
  const isNew = distinctRows(input.memory);
  const projectNew = (row: R): Row | undefined => {
    const result = project(row);
    return isNew(result) ? result : undefined;
  };
  for await (const page of input.source) yield* paged(projected(page, projectNew), input.slices, input.rowWork);
}

/**
 * Returns undefined for a row to leave out. `isBeyond` is true for keys whose row cannot be in the answer, so the row
 * need not be made.
 */
type EntryOf<R> = (row: R, isBeyond: (keys: readonly SortKey[]) => boolean) => SortEntry | undefined;

/** The rows that `entryOf` makes, in order. */
export function sorted<R>(shape: Sorted, input: HoldingInput<R>, entryOf: EntryOf<R>): AsyncIterable<readonly Row[]> {
  const { sortFolder } = input;
  const isSpilling = shape.sort === "all" && sortFolder !== undefined;
  return isSpilling
    ? sortedOnDisk({ ...input, sortFolder }, shape, entryOf)
    : sortedInMemory(input, sorterOf(shape, input.memory), entryOf);
}

type Sorted = Pick<Shape<never>, "sort" | "limit" | "offset"> & {
  readonly orderBy: readonly { readonly descending: boolean }[];
};

async function* sortedInMemory<R>(
  input: HoldingInput<R>,
  sorter: Sorter,
  entryOf: EntryOf<R>,
): AsyncIterable<readonly Row[]> {
  const isBeyond = (keys: readonly SortKey[]): boolean => sorter.isBeyond(keys);
  await addAll(input, (row) => {
    const entry = entryOf(row, isBeyond);
    if (entry) sorter.add(entry);
  });
  yield* paged(sorter.rows(), input.slices);
}

async function* sortedOnDisk<R>(
  input: HoldingInput<R> & { readonly sortFolder: string },
  shape: Sorted,
  entryOf: EntryOf<R>,
): AsyncIterable<readonly Row[]> {
  const sorter = new SpillingSorter(
    { folder: input.sortFolder, share: input.memory },
    shape.orderBy.map((item) => item.descending),
  );
  try {
    for await (const page of input.source) {
      for (const row of page) {
        const entry = entryOf(row, () => false);
        if (entry) sorter.add(entry);
        if (sorter.isFull) await sorter.spill();
        if (input.slices.isOver(input.rowWork)) await input.slices.pause();
      }
    }
    for await (const page of sorter.pages()) {
      yield page;
      if (input.slices.isOverNow()) await input.slices.pause();
    }
  } finally {
    await sorter.close();
  }
}

function addAll<R>(input: HoldingInput<R>, add: (row: R) => void): Promise<void> {
  return addUntil(input, (row) => {
    add(row);
    return false;
  });
}

/** Adds rows until `add` says that no more are needed. */
async function addUntil<R>({ source, slices, rowWork }: HoldingInput<R>, add: (row: R) => boolean): Promise<void> {
  for await (const page of source) {
    for (const row of page) {
      if (add(row)) return;
      if (slices.isOver(rowWork)) await slices.pause();
    }
  }
}

function grouped<R>(shape: Shape<R>, group: GroupPlan, input: HoldingInput<R>): AsyncIterable<readonly Row[]> {
  const { keys, specs, groups } = groupsOf(shape, group);
  const answer = answerOf(shape, groups, input.memory);
  return collected(input, new Grouping(keys, specs, input.memory), (grouping) =>
    groupRows(rowsOf(grouping.rows(), groups, input.memory), groups, answer),
  );
}

function rowsOf(
  rows: Iterable<GroupRow>,
  { group, resultKinds }: Groups,
  memory: MemoryShare,
): Iterable<GroupRow | undefined> {
  return group.fill ? filled(rows, { plan: group.fill, kinds: resultKinds, memory }) : rows;
}

export async function* collected<R>(
  input: HoldingInput<R>,
  grouping: Grouping<R>,
  rowsOf: (grouping: Grouping<R>) => Iterable<Row | undefined>,
): AsyncIterable<readonly Row[]> {
  await addAll(input, (row) => grouping.add(row));
  yield* paged(rowsOf(grouping), input.slices, input.rowWork);
}

/**
 * Yields the rows of groups. Yields undefined for each group without a row at this moment, so that the caller can
 * pause.
 */
export function* groupRows(
  rows: Iterable<GroupRow | undefined>,
  groups: Groups,
  answer: GroupAnswer,
): Iterable<Row | undefined> {
  const { shape } = groups;
  const { memory } = answer;
  const isNew = shape.distinct ? distinctRows(memory) : () => true;
  const sorter = shape.orderBy.length > 0 ? sorterOf(shape, memory) : undefined;
  for (const row of rows) {
    const result = row && answer.passes(row) === true ? rowOfGroup(row, answer) : undefined;
    const isAnswered = result !== undefined && isNew(result);
    if (row && isAnswered && sorter)
      sorter.add({ keys: answer.orders.map((order) => sortKey(order.kind(row), order.read(row))), row: result });
    yield isAnswered && !sorter ? result : undefined;
  }
  if (sorter) yield* sorter.rows();
}

function rowOfGroup(row: GroupRow, { outputs }: GroupAnswer): Row {
  const result: Row = {};
  for (const { name, source } of outputs) setMember(result, name, source.read(row) ?? null);
  return result;
}

/** The rows that follow those of the previous page. */
function onePage<R>(shape: Shape<R>, { after, stored }: Paging, input: HoldingInput<R>): AsyncIterable<readonly Row[]> {
  const project = projection(shape.outputs, shape.fields);
  const keys = shape.orderBy.map((item) => keyReader(item.value, shape.fields));
  const order = orderOf(shape.orderBy.map((item) => item.descending));
  const sorter = sorterOf(shape, input.memory);
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
  { input, sorter }: { readonly input: HoldingInput<R>; readonly sorter: Sorter },
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

function sorterOf(shape: Sorted, memory: MemoryShare): Sorter {
  const keep = shape.sort === "top" && shape.limit !== undefined ? shape.offset + shape.limit : undefined;
  return new Sorter(
    shape.orderBy.map((item) => item.descending),
    { keep, memory },
  );
}

function keyReader<R>(value: Expression, fields: Fields<R>): (row: R) => ReturnType<typeof sortKey> {
  if (value.kind !== "field") throw new RangeError("rows are ordered by their own fields");
  const source = fields.source(value.field);
  return (row) => sortKey(source.kind(row), source.read(row));
}

function noting<R>(project: (row: R) => Row, onRow: Input<R>["onRow"]): (row: R) => Row {
  if (onRow === undefined) return project;
  return (row) => {
    const result = project(row);
    onRow(result, row);
    return result;
  };
}

/** Columns that a row's class lacks are left out; columns that are not set are null. */
export function projection<R>(outputs: readonly Output[], fields: Fields<R>): (row: R) => Row {
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
    if (own !== undefined) setMember(result, name, own);
  };
}

/** Returns a test that is true for every row that did not come before. */
export function distinctRows(memory: MemoryShare): (row: Row) => boolean {
  const seen = new Set<string>();
  return (row) => {
    const name = canonical(row);
    if (seen.has(name)) return false;
    if (seen.size >= QUERY_DISTINCT_MAX_ROWS) {
      throw new AppError("too_large", `[Exec] DISTINCT over more than ${QUERY_DISTINCT_MAX_ROWS} rows.`, {
        details: { limit: "QUERY_DISTINCT_MAX_ROWS" },
      });
    }
    memory.take(bytesOf(name));
    seen.add(name);
    return true;
  };
}
