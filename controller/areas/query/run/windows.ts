import { AppError } from "../../../../common/errors.ts";
import { QUERY_WINDOW_ROWS_MAX } from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import { numberValue } from "../expressions/arithmetic.ts";
import { windowSource } from "../expressions/bind.ts";
import type { Fields } from "../expressions/fields.ts";
import { NUMBER, toComparable } from "../expressions/kind.ts";
import type { MemoryShare } from "../expressions/aggregates/memory.ts";
import { canonical } from "../expressions/questions.ts";
import { orderOf, Sorter, sortKey, type SortKey } from "../expressions/sort.ts";
import { Sum } from "../expressions/aggregates/sum.ts";
import type { Source } from "../expressions/source.ts";
import type { Shape } from "../plan/outputs.ts";
import type { WindowPlan } from "../plan/windows.ts";
import type { Slices } from "./slice.ts";

/** Estimated bytes of a held row, and of each value that is added to it. */
const PLACE_BYTES = 64;
const VALUE_BYTES = 16;

/** Adds the values of `OVER (…)` to the rows of a SELECT. */
export class WindowValues<R> {
  readonly fields: Fields<R>;
  readonly #plans: readonly WindowPlan[];
  readonly #inner: Fields<R>;
  readonly #memory: Pick<MemoryShare, "take" | "free">;
  readonly #places = new Map<R, number>();
  readonly #values: Value[][];

  constructor({ fields, windows }: Pick<Shape<R>, "fields" | "windows">, memory: Pick<MemoryShare, "take" | "free">) {
    this.#inner = fields;
    this.#plans = windows;
    this.#memory = memory;
    this.#values = windows.map(() => []);
    this.fields = withSource(fields, (bound) => {
      if (!bound.window) return fields.source(bound);
      const values = this.#values[bound.window.index] ?? [];
      const read = (row: R): Value => values[this.#places.get(row) ?? -1] ?? null;
      return windowSource(bound.label, bound.window.kinds, read);
    });
  }

  /**
   * Holds all rows, then yields them in the order of arrival. `AppError("too_large")` beyond `QUERY_WINDOW_ROWS_MAX`.
   */
  async *held(
    pages: AsyncIterable<readonly R[]>,
    slices: Slices,
    bytesOf: (row: R) => number,
  ): AsyncIterable<readonly R[]> {
    const all: (readonly R[])[] = [];
    for await (const page of pages) {
      all.push(page);
      for (const row of page) {
        if (this.#places.size >= QUERY_WINDOW_ROWS_MAX) throw tooMany();
        this.#memory.take(bytesOf(row) + PLACE_BYTES + VALUE_BYTES * this.#plans.length);
        this.#places.set(row, this.#places.size);
        if (slices.isOver()) await slices.pause();
      }
    }
    for (const [index, plan] of this.#plans.entries()) {
      const steps = this.#steps(all.flat(), plan, this.#values[index] ?? [])[Symbol.iterator]();
      while (!steps.next().done) if (slices.isOver()) await slices.pause();
    }
    yield* all;
  }

  /** Computes row by row, so that the caller can pause. */
  *#steps(rows: readonly R[], plan: WindowPlan, into: Value[]): Iterable<void> {
    const sorted: Placed[] = [];
    yield* this.#sorted(rows, plan, sorted);
    const source = plan.field && this.#inner.source(plan.field);
    const samples = { rows, plan, source, into };
    const isSame = orderOf(plan.orderBy.map(() => false));
    for (let from = 0; from < sorted.length; ) {
      let to = from + 1;
      while (to < sorted.length && sorted[to]?.keys[0] === sorted[from]?.keys[0]) to += 1;
      yield* valuesOf(
        { sorted, from, to },
        samples,
        (left, right) => isSame(left.keys.slice(1), right.keys.slice(1)) === 0,
      );
      from = to;
    }
  }

  *#sorted(rows: readonly R[], { partitionBy, orderBy }: WindowPlan, into: Placed[]): Iterable<void> {
    const parts = partitionBy.map((field) => this.#inner.source(field));
    const orders = orderBy.map(({ field }) => this.#inner.source(field));
    const sorter = new Sorter([false, ...orderBy.map(({ descending }) => descending)], { memory: this.#memory });
    for (const [at, row] of rows.entries()) {
      const part = canonical(parts.map((source) => source.read(row) ?? null));
      sorter.add({ keys: [part, ...orders.map((source) => sortKey(source.kind(row), source.read(row)))], row: { at } });
      yield;
    }
    for (const { keys, row } of sorter.entries()) {
      into.push({ keys, at: Number(row.at) });
      yield;
    }
  }
}

interface Placed {
  readonly keys: readonly SortKey[];
  /** Index among all rows. */
  readonly at: number;
}

/** The rows of one partition, in the order of the window. */
interface Partition {
  readonly sorted: readonly Placed[];
  readonly from: number;
  readonly to: number;
}

interface Samples<R> {
  readonly rows: readonly R[];
  readonly plan: WindowPlan;
  readonly source: Source<R> | undefined;
  readonly into: Value[];
}

type IsPeer = (left: Placed, right: Placed) => boolean;

function valuesOf<R>(partition: Partition, samples: Samples<R>, isPeer: IsPeer): Iterable<void> {
  switch (samples.plan.name) {
    case "lag":
      return moved(partition, samples, -samples.plan.distance);
    case "lead":
      return moved(partition, samples, samples.plan.distance);
    case "row_number":
      return numbered(partition, samples);
    case "rate":
      return rates(partition, samples);
    case "sum":
    case "count":
    case "avg":
      return running(partition, samples, isPeer);
  }
}

function valueAt<R>({ sorted }: Partition, { rows, source }: Samples<R>, index: number): Value {
  const row = rows[sorted[index]?.at ?? -1];
  return row === undefined || !source ? null : (source.read(row) ?? null);
}

function* moved<R>(partition: Partition, samples: Samples<R>, by: number): Iterable<void> {
  const { sorted, from, to } = partition;
  for (let index = from; index < to; index += 1) {
    const other = index + by;
    samples.into[sorted[index]?.at ?? 0] = other >= from && other < to ? valueAt(partition, samples, other) : null;
    yield;
  }
}

function* numbered<R>({ sorted, from, to }: Partition, { into }: Samples<R>): Iterable<void> {
  for (let index = from; index < to; index += 1) {
    into[sorted[index]?.at ?? 0] = index - from + 1;
    yield;
  }
}

/** For each row, the aggregate of the rows up to it, including rows that are equal in the order, as in SQL. */
function* running<R>(partition: Partition, samples: Samples<R>, isPeer: IsPeer): Iterable<void> {
  const { sorted, from, to } = partition;
  const total = new Sum();
  let count = 0;
  let open = from;
  for (let index = from; index < to; index += 1) {
    const value = valueAt(partition, samples, index);
    if (value !== null || !samples.source) count += 1;
    const number = value === null ? undefined : toComparable(NUMBER, value);
    if (typeof number === "number" || typeof number === "bigint") total.add(number);
    yield;
    const [own, next] = [sorted[index], sorted[index + 1]];
    if (own && next && index + 1 < to && isPeer(own, next)) continue;
    const result = resultOf(samples.plan.name, total, count);
    for (; open <= index; open += 1) samples.into[sorted[open]?.at ?? 0] = result;
  }
}

function resultOf(name: WindowPlan["name"], total: Sum, count: number): Value {
  if (name === "count") return count;
  if (total.count === 0) return null;
  return name === "sum" ? total.total() : total.mean();
}

/**
 * Growth per second since the latest earlier row with a value, like Prometheus' irate. A value smaller than the one
 * before means that the counter began again at 0.
 */
function* rates<R>(partition: Partition, samples: Samples<R>): Iterable<void> {
  const { sorted, from, to } = partition;
  let before: { readonly timeMs: number; readonly value: number } | undefined;
  for (let index = from; index < to; index += 1) {
    const placed = sorted[index];
    const value = numberOf(valueAt(partition, samples, index));
    const timeMs = placed?.keys[1];
    yield;
    if (!placed || value === undefined || typeof timeMs !== "number") continue;
    if (before && timeMs > before.timeMs) {
      const growth = value < before.value ? value : value - before.value;
      samples.into[placed.at] = numberValue(growth / ((timeMs - before.timeMs) / 1_000));
    }
    before = { timeMs, value };
  }
}

function numberOf(value: Value): number | undefined {
  const number = value === null ? undefined : toComparable(NUMBER, value);
  return typeof number === "number" || typeof number === "bigint" ? Number(number) : undefined;
}

function withSource<R>(fields: Fields<R>, source: Fields<R>["source"]): Fields<R> {
  return {
    bind: (field, values) => fields.bind(field, values),
    kindsOf: (field) => fields.kindsOf(field),
    definedName: (written) => fields.definedName(written),
    kindsNamed: (name) => fields.kindsNamed(name),
    star: (alias) => fields.star(alias),
    writtenMs: (field) => fields.writtenMs(field),
    wholeRow: () => fields.wholeRow(),
    source,
  };
}

function tooMany(): AppError {
  return new AppError(
    "too_large",
    `[Exec] OVER (…) is about more than ${QUERY_WINDOW_ROWS_MAX} rows: narrow them by WHERE or group them first.`,
    { details: { limit: "QUERY_WINDOW_ROWS_MAX" } },
  );
}
