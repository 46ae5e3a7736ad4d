import { AppError } from "../../../../../common/errors.ts";
import { QUERY_GROUPS_MAX, QUERY_TOP_VALUES_MAX } from "../../../../../common/limits.ts";
import type { Value } from "../../../../../common/value.ts";
import { numberValue } from "../arithmetic.ts";
import { CounterGrowth } from "./growth.ts";
import { ANY, compare, type Comparable, type Kind, LIST_OF_ANY, NUMBER, toComparable } from "../kind.ts";
import { bytesOf, type MemoryShare } from "./memory.ts";
import type { Source } from "../source.ts";
import { Quantiles } from "./quantiles.ts";
import { canonical, type Identity, identity } from "../questions.ts";
import { Sum } from "./sum.ts";

/** Aggregates that can also combine the points of one time series. */
export const STEPPED_AGGREGATES = ["count", "min", "max", "sum", "avg", "first", "last"] as const;
export const AGGREGATES = [...STEPPED_AGGREGATES, "rate", "stddev", "percentile", "top", "histogram"] as const;
export type SteppedAggregate = (typeof STEPPED_AGGREGATES)[number];
export type AggregateName = (typeof AGGREGATES)[number];

export interface AggregateSpec<R> {
  readonly name: AggregateName;
  /** Absent for `count(*)`. */
  readonly source: Source<R> | undefined;
  readonly distinct: boolean;
  /** Parameter of `percentile`, `top` and `histogram`. */
  readonly parameter: number;
  /** Time of the last write of the object that the value belongs to. */
  readonly writtenMs: (row: R) => number;
  /** Number of objects that a row stands for in `count(*)`; absent: one. */
  readonly weight?: (row: R) => number;
}

/** A group: the values of its keys and the results of its aggregates. */
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

type KeyMap<R> = Map<Identity, KeyMap<R> | Group<R>>;

export function isAggregate(name: string): name is AggregateName {
  return (AGGREGATES as readonly string[]).includes(name);
}

/** The kind of an aggregate's result. */
export function aggregateKind<R>({ name, source }: AggregateSpec<R>): Kind {
  if (answersList(name)) return LIST_OF_ANY;
  return NUMBERS.has(name) ? NUMBER : onlyKind(source);
}

export function answersList(name: AggregateName): boolean {
  return name === "top" || name === "histogram";
}

const NUMBERS: ReadonlySet<AggregateName> = new Set(["count", "sum", "avg", "rate", "stddev", "percentile"]);

/** True if the aggregate takes only numbers. */
export function needsNumbers(name: AggregateName): boolean {
  return name === "histogram" || (name !== "count" && NUMBERS.has(name));
}

interface Parameter {
  readonly least: number;
  readonly most: number;
  readonly isWhole: boolean;
  /** Default of the parameter. Absent: the parameter is required. */
  readonly otherwise?: number;
}

const PARAMETERS: Readonly<Partial<Record<AggregateName, Parameter>>> = {
  percentile: { least: 0, most: 100, isWhole: false },
  top: { least: 1, most: QUERY_TOP_VALUES_MAX, isWhole: true, otherwise: 10 },
  histogram: { least: 1, most: QUERY_TOP_VALUES_MAX, isWhole: true, otherwise: 10 },
};

/** The parameter as a number; throws `AppError("invalid")` for one that the aggregate does not take. */
export function parameterOf(name: AggregateName, given: Value | undefined): number {
  const wanted = PARAMETERS[name];
  if (!wanted && given === undefined) return 0;
  const number = given === undefined ? wanted?.otherwise : toComparable(NUMBER, given);
  const isFit =
    wanted &&
    typeof number === "number" &&
    number >= wanted.least &&
    number <= wanted.most &&
    (!wanted.isWhole || Number.isInteger(number));
  if (isFit) return number;
  const range = wanted ? `a${wanted.isWhole ? " whole" : ""} number from ${wanted.least} to ${wanted.most}` : "nothing";
  throw new AppError("invalid", `[Valid] ${name}() takes ${range} besides the field.`);
}

export function onlyKind<R>(source: Source<R> | undefined): Kind {
  const [kind] = source?.kinds ?? [];
  return source?.kinds.length === 1 && kind ? kind : ANY;
}

/**
 * Groups rows as they come. Memory grows with the number of groups, not of rows. Without keys there is exactly one
 * group.
 */
export class Grouping<R> {
  readonly #keys: readonly Source<R>[];
  readonly #specs: readonly AggregateSpec<R>[];
  readonly #memory: Memory;
  readonly #groups: Group<R>[] = [];
  /** Groups by their keys, as nested maps: one level for each key; the last level leads to the group. */
  readonly #byKeys: KeyMap<R> = new Map();

  constructor(keys: readonly Source<R>[], specs: readonly AggregateSpec<R>[], memory: Memory) {
    this.#memory = memory;
    this.#keys = keys;
    this.#specs = specs;
    if (keys.length === 0) this.#open([]);
  }

  add(row: R): void {
    const group = this.#keys.length === 0 ? this.#groups[0]! : this.#groupOf(row);
    for (const accumulator of group.accumulators) accumulator.add(row);
  }

  #groupOf(row: R): Group<R> {
    let map = this.#byKeys;
    const last = this.#keys.length - 1;
    for (let at = 0; at < last; at += 1) {
      const name = identity(this.#keys[at]!.read(row) ?? null);
      let next = map.get(name) as KeyMap<R> | undefined;
      if (next === undefined) map.set(name, (next = new Map()));
      map = next;
    }
    const name = identity(this.#keys[last]!.read(row) ?? null);
    let group = map.get(name) as Group<R> | undefined;
    if (group === undefined) {
      group = this.#open(this.#keys.map((source) => source.read(row) ?? null));
      map.set(name, group);
    }
    return group;
  }

  #open(keys: readonly Value[]): Group<R> {
    if (this.#groups.length >= QUERY_GROUPS_MAX) {
      throw new AppError("too_large", `[Exec] GROUP BY makes more than ${QUERY_GROUPS_MAX} groups.`, {
        details: { limit: "QUERY_GROUPS_MAX" },
      });
    }
    if (keys.length > 0) this.#memory.take(2 * bytesOf(keys) + (1 + this.#specs.length) * ACCUMULATOR_BYTES);
    const group = { keys, accumulators: this.#specs.map((spec) => accumulatorOf(spec, this.#memory)) };
    this.#groups.push(group);
    return group;
  }

  *rows(): Iterable<GroupRow> {
    for (const { keys, accumulators } of this.#groups) {
      yield { keys, results: accumulators.map((accumulator) => accumulator.result()) };
    }
  }
}

function accumulatorOf<R>(spec: AggregateSpec<R>, memory: Memory): Accumulator<R> {
  if (spec.distinct) return distinct(spec, memory);
  switch (spec.name) {
    case "count":
      return count(spec);
    case "sum":
    case "avg":
      return sum(spec);
    case "rate":
      return growth(spec, memory);
    case "stddev":
      return deviation(spec);
    case "percentile":
    case "histogram":
      return distribution(spec, memory);
    case "top":
      return mostFrequent(spec, memory);
    case "min":
    case "max":
      return extreme(spec, memory);
    case "first":
    case "last":
      return outermost(spec, memory);
  }
}

function count<R>({ source, weight }: AggregateSpec<R>): Accumulator<R> {
  let rows = 0;
  return {
    add(row) {
      if (source === undefined || isSet(source.read(row))) rows += weight?.(row) ?? 1;
    },
    result: () => rows,
  };
}

/** Counts or adds every value once. */
function distinct<R>(spec: AggregateSpec<R>, memory: Memory): Accumulator<R> {
  const seen = new Set<Identity>();
  const inner = accumulatorOf({ ...spec, distinct: false }, memory);
  return {
    add(row) {
      const value = spec.source?.read(row);
      if (!isSet(value)) return;
      const name = identity(value);
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

/** Standard deviation of a sample by Welford's algorithm: one pass, and no difference of large sums. */
function deviation<R>(spec: AggregateSpec<R>): Accumulator<R> {
  let count = 0;
  let mean = 0;
  let squares = 0;
  return {
    add(row) {
      const number = numberOfRow(spec, row);
      if (number === undefined) return;
      count += 1;
      const before = number - mean;
      mean += before / count;
      squares += before * (number - mean);
    },
    result: () => (count < 2 ? null : numberValue(Math.sqrt(squares / (count - 1)))),
  };
}

/** Growth per second, by the time of each row's last write. */
function growth<R>(spec: AggregateSpec<R>, memory: Memory): Accumulator<R> {
  const grown = new CounterGrowth(memory);
  return {
    add(row) {
      const number = numberOfRow(spec, row);
      if (number !== undefined) grown.add(spec.writtenMs(row), number);
    },
    result: () => numberValue(grown.perSecond()),
  };
}

/**
 * `percentile`: one number. `histogram`: a list of `[from, to, count]` for steps of equal width. The parameter is the
 * number of steps. The last step includes its end.
 */
function distribution<R>(spec: AggregateSpec<R>, memory: Memory): Accumulator<R> {
  const numbers = new Quantiles(memory);
  return {
    add(row) {
      const number = numberOfRow(spec, row);
      if (number !== undefined) numbers.add(number);
    },
    result: () =>
      spec.name === "percentile" ? numberValue(numbers.at(spec.parameter / 100)) : steps(numbers, spec.parameter),
  };
}

function steps(numbers: Quantiles, wanted: number): Value {
  if (numbers.count === 0) return null;
  const { least, greatest } = numbers;
  const width = (greatest - least) / wanted;
  const count = width > 0 ? wanted : 1;
  let below = 0;
  return Array.from({ length: count }, (_, at): Value => {
    const from = least + at * width;
    const to = at === count - 1 ? greatest : least + (at + 1) * width;
    const upTo = at === count - 1 ? numbers.count : numbers.below(to);
    const inside = upTo - below;
    below = upTo;
    return [from, to, inside];
  });
}

/** List of `[value, count]` of the most frequent values. Values with equal counts are in the order of their texts. */
function mostFrequent<R>(spec: AggregateSpec<R>, memory: Memory): Accumulator<R> {
  const counts = new Map<Identity, { readonly value: Value; count: number }>();
  return {
    add(row) {
      const value = spec.source?.read(row);
      if (!isSet(value)) return;
      const name = identity(value);
      const known = counts.get(name);
      if (known) known.count += 1;
      else {
        if (counts.size >= QUERY_GROUPS_MAX)
          throw new AppError("too_large", `[Exec] top() sees more than ${QUERY_GROUPS_MAX} values.`, {
            details: { limit: "QUERY_GROUPS_MAX" },
          });
        memory.take(bytesOf(name) + bytesOf(value));
        counts.set(name, { value, count: 1 });
      }
    },
    result: () => {
      if (counts.size === 0) return null;
      const all = Array.from(counts.values(), ({ value, count }) => ({ value, count, text: canonical(value) }));
      all.sort((a, b) => b.count - a.count || (a.text < b.text ? -1 : 1));
      return all.slice(0, spec.parameter).map(({ value, count }): Value => [value, count]);
    },
  };
}

function numberOfRow<R>({ source }: AggregateSpec<R>, row: R): number | undefined {
  const value = source?.read(row);
  const number = isSet(value) ? toComparable(NUMBER, value) : undefined;
  return typeof number === "number" || typeof number === "bigint" ? Number(number) : undefined;
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

/** The value of the earliest or the latest row, by the time of its last write. */
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

/** Counts the memory of a replaced value, because a text or a list may be long. */
function exchange(memory: Memory, held: Value, next: Value): void {
  memory.take(bytesOf(next) - (held === null ? 0 : bytesOf(held)));
}

function isSet(value: Value | undefined): value is Exclude<Value, null> {
  return value !== undefined && value !== null;
}
