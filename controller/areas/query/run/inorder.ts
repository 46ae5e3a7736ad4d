import { QUERY_IN_ORDER_MAX_ROWS } from "../../../../common/limits.ts";
import type { ObjectRow, ReadRequest } from "../../objects/index.ts";
import type { Predicate, Source } from "../expressions/predicate.ts";
import { orderOf, sortKey } from "../expressions/sort.ts";
import { type InOrderPlan, isPlainId } from "../plan/inorder.ts";
import type { SelectPlan } from "../plan/plan.ts";
import { matching, type RunContext } from "./run.ts";
import type { Slices } from "./slice.ts";

interface Work {
  readonly order: InOrderPlan;
  readonly reads: readonly ReadRequest[];
  readonly filter: Predicate<ObjectRow>;
  readonly slices: Slices;
  readonly rowWork?: number;
}

/**
 * Yields passing rows. The first rows of the order are among them, no matter how equal rows are ordered. Reads along an
 * index until there are enough rows. If that ends before, it yields all other rows, too, unless the index had all.
 */
export async function* foundInOrder(
  plan: SelectPlan,
  work: Work,
  context: RunContext,
): AsyncIterable<readonly ObjectRow[]> {
  const { order, slices, rowWork = 1 } = work;
  const [read] = work.reads;
  const signal = context.signal ? { signal: context.signal } : {};
  slices.check();
  const walk = read && (await context.inOrder?.({ ...read, ...signal, order: order.order, expected: order.rows }));
  const first = new First(plan, { ...work, isById: () => order.isById && walk?.isById() === true });
  if (walk) {
    for await (const page of walk.pages) {
      if (slices.isOverNow()) await slices.pause();
      const kept: ObjectRow[] = [];
      for (const row of page) {
        if (first.isEnoughBefore(row)) break;
        if (first.takes(row)) kept.push(row);
        if (slices.isOver(rowWork)) await slices.pause();
      }
      if (kept.length > 0) yield kept;
      if (first.isEnough) return;
      if (first.isFull) break;
    }
    if (order.isOfAll && walk.isWhole()) return;
  }
  for await (const page of matching(work, context)) yield first.isEmpty ? page : page.filter((row) => !first.has(row));
}

/** The rows that were found in order. */
class First {
  readonly #work: Work & { readonly isById: () => boolean };
  readonly #number: (row: ObjectRow) => number;
  readonly #isBehind: (row: ObjectRow) => boolean;
  readonly #isAnyEqual: boolean;
  readonly #names = new Set<string>();
  /** Value of the last row that is needed. */
  #last: number | undefined;
  #isEnough = false;

  constructor(plan: SelectPlan, work: Work & { readonly isById: () => boolean }) {
    this.#work = work;
    const sources = plan.orderBy.flatMap(({ value }) =>
      value.kind === "field" ? [plan.scope.source(value.field)] : [],
    );
    const [own] = sources;
    this.#number = (row) => (own ? numberOf(own, row) : Number.NaN);
    this.#isBehind = behind(plan, sources);
    this.#isAnyEqual = plan.orderBy.length === 1;
  }

  get isEmpty(): boolean {
    return this.#names.size === 0;
  }

  /** True if as many ids are held as allowed. */
  get isFull(): boolean {
    return this.#names.size >= Math.max(QUERY_IN_ORDER_MAX_ROWS, this.#work.order.rows);
  }

  get isEnough(): boolean {
    return this.#isEnough;
  }

  has(row: ObjectRow): boolean {
    return this.#names.has(nameOf(row));
  }

  /** True if this row, and so all rows after it, come after the needed ones. */
  isEnoughBefore(row: ObjectRow): boolean {
    if (this.#last === undefined || this.#isEnough) return this.#isEnough;
    const number = this.#number(row);
    this.#isEnough = this.#work.order.order.descending ? number < this.#last : number > this.#last;
    return this.#isEnough;
  }

  /** True if the row passes and did not come before. A row that is written meanwhile may come again. */
  takes(row: ObjectRow): boolean {
    if (this.#work.filter(row) !== true || !this.#isBehind(row) || this.has(row)) return false;
    this.#names.add(nameOf(row));
    if (this.#names.size === this.#work.order.rows) {
      this.#last = this.#number(row);
      const isNext = this.#isAnyEqual || (this.#work.isById() && isPlainId(row.id));
      this.#isEnough = isNext && Number.isSafeInteger(Math.trunc(this.#last));
    }
    return true;
  }
}

/** Returns a test that is true for rows behind the previous page. */
function behind({ paging, orderBy }: SelectPlan, sources: readonly Source<ObjectRow>[]): (row: ObjectRow) => boolean {
  const after = paging?.after;
  if (!after) return () => true;
  const order = orderOf(orderBy.map(({ descending }) => descending));
  return (row) =>
    order(
      sources.map((source) => sortKey(source.kind(row), source.read(row))),
      after,
    ) > 0;
}

/** Not a number for a row without a number. */
function numberOf(source: Source<ObjectRow>, row: ObjectRow): number {
  const key = sortKey(source.kind(row), source.read(row));
  return typeof key === "number" || typeof key === "bigint" ? Number(key) : Number.NaN;
}

function nameOf({ class: { cid }, id }: ObjectRow): string {
  return `${cid} ${id}`;
}
