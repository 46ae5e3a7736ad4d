import { AppError } from "../../../../common/errors.ts";
import {
  INDEX_UNION_MAX,
  OBJECT_PAGE_MAX,
  QUERY_JOIN_MAX_ROWS,
  QUERY_JOINED_ROWS_MAX,
} from "../../../../common/limits.ts";
import type { ObjectRow, ReadRequest } from "../../objects/index.ts";
import { type Comparable, toComparable, toValue } from "../expressions/kind.ts";
import { freeing, type MemoryShare, PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import { compilePredicate, type Predicate, type Source } from "../expressions/predicate.ts";
import type { Joined, JoinPlan, Link } from "../plan/join.ts";
import type { TablePlan } from "../plan/plan.ts";
import { equalTo } from "../plan/pushdown.ts";
import { rowBytes, withRelations } from "./relatedrows.ts";
import { filterOf, matching, type RunContext, sourceInWhere } from "./run.ts";
import type { Slices } from "./slice.ts";
import { workOf } from "./work.ts";

export interface JoinContext extends RunContext {
  readonly slices: Slices;
  readonly memory: MemoryShare;
}

/** Rows by the value that joins them. */
type Built = ReadonlyMap<Comparable, readonly ObjectRow[]>;
/** Used in place of the object that a LEFT JOIN does not find. */
const NO_OBJECT: readonly undefined[] = [undefined];

/** The conditions on the objects of each class, and the one on joined rows. */
export interface JoinConditions {
  readonly filters: readonly Predicate<ObjectRow>[];
  readonly passes: Predicate<Joined>;
}

/** Binds the conditions before anything is read, so that a wrong name or value is an error at once. */
export function conditionsOf({ tables, where, values, fields }: JoinPlan): JoinConditions {
  return {
    filters: tables.map((table) => filterOf(table)),
    passes: where
      ? compilePredicate(where, { values, resolve: (operand) => sourceInWhere(operand, fields, values) })
      : () => true,
  };
}

/**
 * Joins rows by a hash join. The rows of every class except the first are held in memory by the value that joins them.
 * Then each row of the first class is combined with them. If the rows to join to have few different values, only
 * objects with one of these values are read. In a LEFT JOIN a row without a partner is kept.
 */
export function joined(
  plan: JoinPlan,
  conditions: JoinConditions,
  context: Omit<JoinContext, "memory">,
): AsyncIterable<readonly Joined[]> {
  const memory = PROCESS_MEMORY.share(context.tenant);
  return freeing(memory, stream({ plan, ...conditions, produced: { rows: 0 }, context: { ...context, memory } }));
}

interface Work extends JoinConditions {
  readonly plan: JoinPlan;
  readonly produced: { rows: number };
  readonly context: JoinContext;
}

async function* stream(work: Work): AsyncIterable<readonly Joined[]> {
  const first = tableRows(work, 0)[Symbol.asyncIterator]();
  try {
    const head = await headOf(first);
    const built = await buildAll(work, head);
    const keys = work.plan.links.map((link) => keyOf(work.plan.fields.source(link.earlier), link));
    const steps = { built, keys, links: work.plan.links };
    yield* matched(head.rows, steps, work);
    for (let next = await first.next(); !next.done; next = await first.next()) yield* matched(next.value, steps, work);
  } finally {
    await first.return?.();
  }
}

async function buildAll(work: Work, head: Head): Promise<readonly Built[]> {
  const built: Built[] = [];
  let left = QUERY_JOIN_MAX_ROWS;
  for (const link of work.plan.links) {
    const table = await build(work, link, { known: knownRows(link, head, built), left });
    left -= table.rows;
    built.push(table.built);
  }
  return built;
}

async function* matched(
  firsts: readonly ObjectRow[],
  steps: Steps,
  { plan, passes, produced, context: { slices } }: Work,
): AsyncIterable<readonly Joined[]> {
  const rowWork = workOf(plan.where);
  let page: Joined[] = [];
  for (const row of allCombined(firsts, steps)) {
    produced.rows += 1;
    if (produced.rows > QUERY_JOINED_ROWS_MAX) throw tooManyJoined();
    if (passes(row) === true) page.push(row);
    if (slices.isOver(rowWork)) await slices.pause();
    if (page.length < OBJECT_PAGE_MAX) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

function tableRows(
  { plan, filters, context }: Work,
  table: number,
  reads?: readonly ReadRequest[],
): AsyncIterable<readonly ObjectRow[]> {
  const [own, filter] = [plan.tables[table], filters[table]];
  if (!own || !filter) throw new RangeError("every class of a join has a plan");
  const { slices } = context;
  const found = matching({ reads: reads ?? own.reads, filter, slices, rowWork: workOf(own.where) }, context);
  return own.relations ? withRelations(found, own.relations, context) : found;
}

/** The first rows of the first class. */
interface Head {
  readonly rows: readonly ObjectRow[];
  readonly isAll: boolean;
}

async function headOf(pages: AsyncIterator<readonly ObjectRow[]>): Promise<Head> {
  const rows: ObjectRow[] = [];
  while (rows.length <= OBJECT_PAGE_MAX) {
    const next = await pages.next();
    if (next.done) return { rows, isAll: true };
    rows.push(...next.value);
  }
  return { rows, isAll: false };
}

/** All rows that the link can join to, if they are already known. */
function knownRows(link: Link, head: Head, built: readonly Built[]): readonly ObjectRow[] | undefined {
  if (link.earlier.table === 0) return head.isAll ? head.rows : undefined;
  return [...(built[link.earlier.table - 1]?.values() ?? [])].flat();
}

interface Bounds {
  readonly known: readonly ObjectRow[] | undefined;
  /** Number of rows that may still be held. */
  readonly left: number;
}

async function build(
  work: Work,
  link: Link,
  { known, left }: Bounds,
): Promise<{ readonly built: Built; readonly rows: number }> {
  const { slices, memory } = work.context;
  const source = scopeOf(work, link.own.table).source(link.own);
  const built = new Map<Comparable, ObjectRow[]>();
  let rows = 0;
  for await (const page of tableRows(work, link.own.table, known && narrowedReads(work, link, known))) {
    for (const row of page) {
      if (slices.isOver()) await slices.pause();
      const key = comparableOf(source, row, link);
      if (key === undefined) continue;
      rows += 1;
      if (rows > left) throw tooManyRows();
      memory.take(rowBytes(row));
      const same = built.get(key);
      if (same) same.push(row);
      else built.set(key, [row]);
    }
  }
  return { built, rows };
}

function scopeOf({ plan }: Work, table: number): TablePlan["scope"] {
  const scope = plan.fields.scopes[table];
  if (!scope) throw new RangeError("every class of a join has a scope");
  return scope;
}

/** The reads of the class. If the known rows have few different values, the reads are narrowed to these. */
function narrowedReads(work: Work, link: Link, known: readonly ObjectRow[]): readonly ReadRequest[] {
  const reads = work.plan.tables[link.own.table]?.reads ?? [];
  const source = scopeOf(work, link.earlier.table).source(link.earlier);
  const keys = new Set<Comparable>();
  for (const row of known) {
    const key = comparableOf(source, row, link);
    if (key !== undefined) keys.add(key);
    if (keys.size > INDEX_UNION_MAX) return reads;
  }
  const values = [...keys].map(toValue);
  if (values.length === 0) return [];
  if (link.own.pseudo === "id") return reads.map((read) => (read.ids ? read : { ...read, ids: values.map(String) }));
  const pushdown = equalTo(link.own, values, { scope: scopeOf(work, link.own.table), kind: link.kind });
  return pushdown ? reads.map((read) => ({ ...read, where: [...(read.where ?? []), pushdown] })) : reads;
}

function comparableOf(source: Source<ObjectRow>, row: ObjectRow, link: Link): Comparable | undefined {
  const value = source.read(row);
  return value === undefined || value === null ? undefined : toComparable(link.kind, value);
}

function keyOf(source: Source<Joined>, link: Link): (row: Joined) => Comparable | undefined {
  return (row) => {
    const value = source.read(row);
    return value === undefined || value === null ? undefined : toComparable(link.kind, value);
  };
}

interface Steps {
  readonly built: readonly Built[];
  readonly keys: readonly ((row: Joined) => Comparable | undefined)[];
  readonly links: readonly Link[];
}

function* allCombined(firsts: readonly ObjectRow[], steps: Steps): Iterable<Joined> {
  for (const first of firsts) yield* combined([first], steps);
}

/** Every way to continue the row with objects of the other classes. */
function* combined(row: Joined, steps: Steps): Iterable<Joined> {
  const at = row.length - 1;
  const [built, keyOfRow, link] = [steps.built[at], steps.keys[at], steps.links[at]];
  if (!built || !keyOfRow || !link) {
    yield row;
    return;
  }
  const key = keyOfRow(row);
  const found = key === undefined ? undefined : built.get(key);
  for (const own of found ?? (link.isOuter ? NO_OBJECT : [])) yield* combined([...row, own], steps);
}

function tooManyJoined(): AppError {
  return new AppError(
    "too_large",
    `[Exec] JOIN makes more than ${QUERY_JOINED_ROWS_MAX} rows: narrow it by WHERE or give a LIMIT.`,
    { details: { limit: "QUERY_JOINED_ROWS_MAX" } },
  );
}

function tooManyRows(): AppError {
  return new AppError(
    "too_large",
    `[Exec] JOIN holds more than ${QUERY_JOIN_MAX_ROWS} objects: narrow the joined classes by WHERE, or name the largest class after FROM.`,
    {
      details: { limit: "QUERY_JOIN_MAX_ROWS" },
    },
  );
}
