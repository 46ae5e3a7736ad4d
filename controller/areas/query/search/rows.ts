import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { HISTORY_READS_IN_FLIGHT_MAX, QUERY_DISTINCT_MAX_ROWS } from "../../../../common/limits.ts";
import type { ObjectRef, ObjectRow, UnrestrictedObjects } from "../../objects/index.ts";
import { bytesOf, freeing, type MemoryShare, PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import type { Predicate } from "../expressions/predicate.ts";
import { canonical } from "../expressions/questions.ts";
import { orderOf, type SortKey, sortKey } from "../expressions/sort.ts";
import { matching, type RunContext } from "../run/run.ts";
import type { Slices } from "../run/slice.ts";
import type { SearchPlan } from "./plan.ts";
import type { Versioned } from "./reads.ts";

export interface RowsContext extends RunContext {
  readonly history: (
    ref: ObjectRef,
    range: { readonly fromMs?: number; readonly toMs?: number },
  ) => ReturnType<UnrestrictedObjects["history"]>;
  readonly removed: (path: string, range: { readonly fromMs?: number }) => ReturnType<UnrestrictedObjects["removed"]>;
  readonly slices: Slices;
}

/**
 * The rows that are found, before they are grouped, sorted and cut. With UNIQ, the first of equal rows in the order
 * asked for.
 */
export function foundRows(plan: SearchPlan, context: RowsContext): AsyncIterable<readonly ObjectRow[]> {
  const all = allRows(plan, context);
  if (plan.uniq.length === 0) return all;
  const isSorted = !plan.grouping && (plan.sort === "top" || plan.sort === "all");
  const memory = PROCESS_MEMORY.share(context.tenant);
  return freeing(
    memory,
    isSorted ? bestRows(plan, all, { slices: context.slices, memory }) : firstRows(plan, all, memory),
  );
}

async function* allRows(plan: SearchPlan, context: RowsContext): AsyncIterable<readonly ObjectRow[]> {
  for (const { reads, filter } of plan.branches)
    yield* matching({ reads, filter, slices: context.slices, rowWork: plan.rowWork }, context);
  if (plan.versioned) yield* versionRows(plan.versioned, plan.filter, context);
}

/** Objects as they are, their earlier versions, and the versions of removed objects. */
async function* versionRows(
  versioned: Versioned,
  filter: Predicate<ObjectRow>,
  context: RowsContext,
): AsyncIterable<readonly ObjectRow[]> {
  const objects = matching({ reads: versioned.reads, filter: () => true, slices: context.slices }, context);
  for await (const rows of objects) {
    const found = rows.filter((row) => filter(row) === true);
    if (found.length > 0) yield found;
    yield* pasts(
      rows.map((row) => ({ id: row.id, class: row.class.path, beforeMs: row.vtimeMs })),
      { versioned, filter, context },
    );
  }
  for (const path of versioned.classes) {
    for await (const refs of context.removed(path, startOf(versioned))) {
      const wanted = versioned.ids ? refs.filter(({ id }) => versioned.ids?.has(id)) : refs;
      yield* pasts(wanted, { versioned, filter, context });
    }
  }
}

interface Past extends ObjectRef {
  /** Only versions before this time; absent: all. */
  readonly beforeMs?: number;
}

interface VersionSearch {
  readonly versioned: Versioned;
  readonly filter: Predicate<ObjectRow>;
  readonly context: RowsContext;
}

async function* pasts(all: readonly Past[], search: VersionSearch): AsyncIterable<readonly ObjectRow[]> {
  for (let at = 0; at < all.length; at += HISTORY_READS_IN_FLIGHT_MAX)
    yield* sideBySide(all.slice(at, at + HISTORY_READS_IN_FLIGHT_MAX), search);
}

/**
 * Versions of objects. The first page of each object is read in parallel with those of the others; later pages are read
 * one by one.
 */
async function* sideBySide(some: readonly Past[], search: VersionSearch): AsyncIterable<readonly ObjectRow[]> {
  const rest = some.map((past) => versionsOf(past, search)[Symbol.asyncIterator]());
  const pages = await mapLimited(rest, rest.length, (versions) => versions.next());
  for (const [at, versions] of rest.entries()) {
    for (let page = pages[at]; page && !page.done; page = await versions.next()) {
      search.context.slices.check();
      if (page.value.length > 0) yield page.value;
    }
  }
}

async function* versionsOf(
  { beforeMs, ...ref }: Past,
  { versioned, filter, context }: VersionSearch,
): AsyncIterable<readonly ObjectRow[]> {
  const toMs = Math.min(versioned.toMs, beforeMs === undefined ? Infinity : beforeMs - 1);
  for await (const versions of context.history(ref, {
    ...startOf(versioned),
    ...(Number.isFinite(toMs) ? { toMs } : {}),
  })) {
    const rows = versions.flatMap(({ values, ...version }): ObjectRow[] => (values ? [{ ...version, values }] : []));
    yield rows.filter((row) => filter(row) === true);
  }
}

function startOf({ fromMs }: Versioned): { readonly fromMs?: number } {
  return Number.isFinite(fromMs) ? { fromMs } : {};
}

async function* firstRows(
  plan: SearchPlan,
  pages: AsyncIterable<readonly ObjectRow[]>,
  memory: MemoryShare,
): AsyncIterable<readonly ObjectRow[]> {
  const seen = new Set<string>();
  const nameOf = naming(plan);
  for await (const page of pages) {
    const fresh = page.filter((row) => {
      const name = nameOf(row);
      if (seen.has(name)) return false;
      memory.take(bytesOf(name));
      seen.add(name);
      return true;
    });
    checkSize(seen.size);
    if (fresh.length > 0) yield fresh;
  }
}

interface Holding {
  readonly slices: Slices;
  readonly memory: MemoryShare;
}

async function* bestRows(
  plan: SearchPlan,
  pages: AsyncIterable<readonly ObjectRow[]>,
  { slices, memory }: Holding,
): AsyncIterable<readonly ObjectRow[]> {
  const best = new Map<string, { readonly row: ObjectRow; readonly keys: readonly SortKey[] }>();
  const nameOf = naming(plan);
  const keysOf = keysReader(plan);
  const order = orderOf(plan.orderBy.map(({ descending }) => descending));
  for await (const page of pages) {
    for (const row of page) {
      const name = nameOf(row);
      const known = best.get(name);
      const keys = keysOf(row);
      if (!known || order(keys, known.keys) < 0) {
        memory.take(bytesOf(row.values) + (known ? -bytesOf(known.row.values) : bytesOf(name)));
        best.set(name, { row, keys });
      }
      if (slices.isOver()) await slices.pause();
    }
    checkSize(best.size);
  }
  yield [...best.values()].map(({ row }) => row);
}

function naming({ uniq, scope }: SearchPlan): (row: ObjectRow) => string {
  const sources = uniq.map((field) => scope.source(field));
  return (row) => canonical(sources.map((source) => source.read(row) ?? null));
}

function keysReader({ orderBy, scope }: SearchPlan): (row: ObjectRow) => readonly SortKey[] {
  const sources = orderBy.flatMap(({ value }) => (value.kind === "field" ? [scope.source(value.field)] : []));
  return (row) => sources.map((source) => sortKey(source.kind(row), source.read(row)));
}

function checkSize(size: number): void {
  if (size <= QUERY_DISTINCT_MAX_ROWS) return;
  throw new AppError("too_large", `[Exec] UNIQ over more than ${QUERY_DISTINCT_MAX_ROWS} rows.`, {
    details: { limit: "QUERY_DISTINCT_MAX_ROWS" },
  });
}
