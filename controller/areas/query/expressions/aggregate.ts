import { AppError } from "../../../../common/errors.ts";
import { QUERY_GROUPS_MAX } from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import { ANY, compare, type Comparable, type Kind, NUMBER, toComparable } from "./kind.ts";
import { bytesOf, type MemoryShare } from "./memory.ts";
import type { Source } from "./predicate.ts";
import { canonical } from "./questions.ts";
import { Sum } from "./sum.ts";

export const AGGREGATES = ["count", "min", "max", "sum", "avg", "first", "last"] as const;
export type AggregateName = (typeof AGGREGATES)[number];

export interface AggregateSpec<R> {
  readonly name: AggregateName;
  /** Absent for `count(*)`. */
  readonly source: Source<R> | undefined;
  readonly distinct: boolean;
  /** Time of the last write of the object that the value belongs to. */
  readonly writtenMs: (row: R) => number;
}

/** The row of a group. */
export interface GroupRow {
  readonly keys: readonly Value[];
  readonly results: readonly Value[];
}

type Memory = Pick<MemoryShare, "take" | "free">;

/** Estimated bytes of an aggregate of one group before it holds a value. */
const ACCUMULATOR_BYTES = 128;

interface Accumulator<R> {
  add(row: R): void;
  result(): Value;
}

interface Group<R> {
  readonly keys: readonly Value[];
  readonly accumulators: readonly Accumulator<R>[];
}

export function isAggregate(name: string): name is AggregateName {
  return (AGGREGATES as readonly string[]).includes(name);
}

/** The kind of an aggregate's result. */
export function aggregateKind<R>(spec: AggregateSpec<R>): Kind {
  return spec.name === "count" || spec.name === "sum" || spec.name === "avg" ? NUMBER : onlyKind(spec.source);
}

export function onlyKind<R>(source: Source<R> | undefined): Kind {
  const [kind] = source?.kinds ?? [];
  return source?.kinds.length === 1 && kind ? kind : ANY;
}

/**
 * Groups rows as they come; memory grows with the groups, not with the rows. Without keys there is exactly one group.
 */
export class Grouping<R> {
  readonly #keys: readonly Source<R>[];
  readonly #specs: readonly AggregateSpec<R>[];
  readonly #memory: Memory;
  readonly #groups = new Map<string, Group<R>>();

  constructor(keys: readonly Source<R>[], specs: readonly AggregateSpec<R>[], memory: Memory) {
    this.#memory = memory;
    this.#keys = keys;
    this.#specs = specs;
    if (keys.length === 0) this.#open("", []);
  }

  add(row: R): void {
    const keys = this.#keys.map((source) => source.read(row) ?? null);
    const name = this.#keys.length === 0 ? "" : canonical(keys);
    const group = this.#groups.get(name) ?? this.#open(name, keys);
    for (const accumulator of group.accumulators) accumulator.add(row);
  }

  #open(name: string, keys: readonly Value[]): Group<R> {
    if (this.#groups.size >= QUERY_GROUPS_MAX) {
      throw new AppError("too_large", `[Exec] GROUP BY makes more than ${QUERY_GROUPS_MAX} groups.`, {
        details: { limit: "QUERY_GROUPS_MAX" },
      });
    }
    if (keys.length > 0) this.#memory.take(bytesOf(name) + bytesOf(keys) + this.#specs.length * ACCUMULATOR_BYTES);
    const group = { keys, accumulators: this.#specs.map((spec) => accumulatorOf(spec, this.#memory)) };
    this.#groups.set(name, group);
    return group;
  }

  *rows(): Iterable<GroupRow> {
    for (const { keys, accumulators } of this.#groups.values()) {
      yield { keys, results: accumulators.map((accumulator) => accumulator.result()) };
    }
  }
}

function accumulatorOf<R>(spec: AggregateSpec<R>, memory: Memory): Accumulator<R> {
  if (spec.distinct) return distinct(spec, memory);
  switch (spec.name) {
    case "count":
      return count(spec.source);
    case "sum":
    case "avg":
      return sum(spec);
    case "min":
    case "max":
      return extreme(spec, memory);
    case "first":
    case "last":
      return outermost(spec, memory);
  }
}

function count<R>(source: Source<R> | undefined): Accumulator<R> {
  let rows = 0;
  return {
    add(row) {
      if (source === undefined || isSet(source.read(row))) rows += 1;
    },
    result: () => rows,
  };
}

/** Counts or adds every value once. */
function distinct<R>(spec: AggregateSpec<R>, memory: Memory): Accumulator<R> {
  const seen = new Set<string>();
  const inner = accumulatorOf({ ...spec, distinct: false }, memory);
  return {
    add(row) {
      const value = spec.source?.read(row);
      if (!isSet(value)) return;
      const name = canonical(value);
      if (seen.has(name)) return;
      if (seen.size >= QUERY_GROUPS_MAX)
        throw new AppError("too_large", `[Exec] DISTINCT sees more than ${QUERY_GROUPS_MAX} values.`);
      memory.take(bytesOf(name));
      seen.add(name);
      inner.add(row);
    },
    result: () => inner.result(),
  };
}

function sum<R>(spec: AggregateSpec<R>): Accumulator<R> {
  const total = new Sum();
  return {
    add(row) {
      const value = spec.source?.read(row);
      const number = isSet(value) ? toComparable(NUMBER, value) : undefined;
      if (typeof number === "number" || typeof number === "bigint") total.add(number);
    },
    result: () => (total.count === 0 ? null : spec.name === "sum" ? total.total() : total.mean()),
  };
}

function extreme<R>(spec: AggregateSpec<R>, memory: Memory): Accumulator<R> {
  const sign = spec.name === "min" ? 1 : -1;
  let best: Comparable | undefined;
  let result: Value = null;
  return {
    add(row) {
      const value = spec.source?.read(row);
      const own = isSet(value) && spec.source ? toComparable(spec.source.kind(row), value) : undefined;
      if (own === undefined || value === undefined || (best !== undefined && compare(own, best) * sign >= 0)) return;
      best = own;
      exchange(memory, result, value);
      result = value;
    },
    result: () => result,
  };
}

/** By the time of the rows' latest write. */
function outermost<R>(spec: AggregateSpec<R>, memory: Memory): Accumulator<R> {
  let timeMs: number | undefined;
  let result: Value = null;
  return {
    add(row) {
      const value = spec.source?.read(row);
      if (!isSet(value) || value === undefined) return;
      const ownMs = spec.writtenMs(row);
      const isFurther = timeMs === undefined || (spec.name === "first" ? ownMs < timeMs : ownMs >= timeMs);
      if (!isFurther) return;
      timeMs = ownMs;
      exchange(memory, result, value);
      result = value;
    },
    result: () => result,
  };
}

/** A text or a list that is held may be long. */
function exchange(memory: Memory, held: Value, next: Value): void {
  memory.take(bytesOf(next) - (held === null ? 0 : bytesOf(held)));
}

function isSet(value: Value | undefined): value is Exclude<Value, null> {
  return value !== undefined && value !== null;
}
