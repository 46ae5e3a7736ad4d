import { AppError } from "../../../common/errors.ts";
import { QUERY_GROUPS_MAX } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";
import type { ObjectRow } from "../objects/index.ts";
import { ANY, compare, type Comparable, type Kind, NUMBER, toComparable } from "./kind.ts";
import { canonical } from "./questions.ts";
import type { Source } from "./predicate.ts";

export const AGGREGATES = ["count", "min", "max", "sum", "avg", "first", "last"] as const;
export type AggregateName = (typeof AGGREGATES)[number];

export interface AggregateSpec {
  readonly name: AggregateName;
  /** Absent for `count(*)`. */
  readonly source: Source<ObjectRow> | undefined;
  readonly distinct: boolean;
}

/** What a group has become. */
export interface GroupRow {
  readonly keys: readonly Value[];
  readonly results: readonly Value[];
}

interface Accumulator {
  add(row: ObjectRow): void;
  result(): Value;
}

interface Group {
  readonly keys: readonly Value[];
  readonly accumulators: readonly Accumulator[];
}

export function isAggregate(name: string): name is AggregateName {
  return (AGGREGATES as readonly string[]).includes(name);
}

/** The kind of an aggregate's result. */
export function aggregateKind(spec: AggregateSpec): Kind {
  return spec.name === "count" || spec.name === "sum" || spec.name === "avg" ? NUMBER : onlyKind(spec.source);
}

export function onlyKind(source: Source<ObjectRow> | undefined): Kind {
  const [kind] = source?.kinds ?? [];
  return source?.kinds.length === 1 && kind ? kind : ANY;
}

/** Groups rows as they come; memory grows with the groups, not with the rows. Without keys there is exactly one group. */
export class Grouping {
  readonly #keys: readonly Source<ObjectRow>[];
  readonly #specs: readonly AggregateSpec[];
  readonly #groups = new Map<string, Group>();

  constructor(keys: readonly Source<ObjectRow>[], specs: readonly AggregateSpec[]) {
    this.#keys = keys;
    this.#specs = specs;
    if (keys.length === 0) this.#open("", []);
  }

  add(row: ObjectRow): void {
    const keys = this.#keys.map((source) => source.read(row) ?? null);
    const name = this.#keys.length === 0 ? "" : canonical(keys);
    const group = this.#groups.get(name) ?? this.#open(name, keys);
    for (const accumulator of group.accumulators) accumulator.add(row);
  }

  #open(name: string, keys: readonly Value[]): Group {
    if (this.#groups.size >= QUERY_GROUPS_MAX) {
      throw new AppError("too_large", `[Exec] GROUP BY makes more than ${QUERY_GROUPS_MAX} groups.`, { details: { limit: "QUERY_GROUPS_MAX" } });
    }
    const group = { keys, accumulators: this.#specs.map(accumulatorOf) };
    this.#groups.set(name, group);
    return group;
  }

  *rows(): Iterable<GroupRow> {
    for (const { keys, accumulators } of this.#groups.values()) {
      yield { keys, results: accumulators.map((accumulator) => accumulator.result()) };
    }
  }
}

function accumulatorOf(spec: AggregateSpec): Accumulator {
  if (spec.distinct) return distinct(spec);
  switch (spec.name) {
    case "count":
      return count(spec.source);
    case "sum":
    case "avg":
      return sum(spec);
    case "min":
    case "max":
      return extreme(spec);
    case "first":
    case "last":
      return outermost(spec);
  }
}

function count(source: Source<ObjectRow> | undefined): Accumulator {
  let rows = 0;
  return {
    add(row) {
      if (source === undefined || isSet(source.read(row))) rows += 1;
    },
    result: () => rows,
  };
}

/** Counts or adds every value once. */
function distinct(spec: AggregateSpec): Accumulator {
  const seen = new Set<string>();
  const inner = accumulatorOf({ ...spec, distinct: false });
  return {
    add(row) {
      const value = spec.source?.read(row);
      if (!isSet(value)) return;
      const name = canonical(value);
      if (seen.has(name)) return;
      if (seen.size >= QUERY_GROUPS_MAX) throw new AppError("too_large", `[Exec] DISTINCT sees more than ${QUERY_GROUPS_MAX} values.`);
      seen.add(name);
      inner.add(row);
    },
    result: () => inner.result(),
  };
}

function sum(spec: AggregateSpec): Accumulator {
  let total = 0;
  let values = 0;
  return {
    add(row) {
      const value = spec.source?.read(row);
      const number = isSet(value) ? toComparable(NUMBER, value) : undefined;
      if (number === undefined) return;
      total += Number(number);
      values += 1;
    },
    result: () => (values === 0 ? null : spec.name === "sum" ? total : total / values),
  };
}

function extreme(spec: AggregateSpec): Accumulator {
  const sign = spec.name === "min" ? 1 : -1;
  let best: Comparable | undefined;
  let result: Value = null;
  return {
    add(row) {
      const value = spec.source?.read(row);
      const own = isSet(value) && spec.source ? toComparable(spec.source.kind(row), value) : undefined;
      if (own === undefined || value === undefined || (best !== undefined && compare(own, best) * sign >= 0)) return;
      best = own;
      result = value;
    },
    result: () => result,
  };
}

/** By the time of the rows' latest write. */
function outermost(spec: AggregateSpec): Accumulator {
  let timeMs: number | undefined;
  let result: Value = null;
  return {
    add(row) {
      const value = spec.source?.read(row);
      if (!isSet(value) || value === undefined) return;
      const isFurther = timeMs === undefined || (spec.name === "first" ? row.vtimeMs < timeMs : row.vtimeMs >= timeMs);
      if (!isFurther) return;
      timeMs = row.vtimeMs;
      result = value;
    },
    result: () => result,
  };
}

function isSet(value: Value | undefined): value is Exclude<Value, null> {
  return value !== undefined && value !== null;
}
