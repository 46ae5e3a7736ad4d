import type { AggregateName } from "./aggregates/aggregate.ts";

/** Entry of the users' reference for a call that is not in `FUNCTIONS`. */
export interface Declared {
  /** How it is called. */
  readonly form: string;
  readonly about: string;
  /** An example: a field of a SELECT over the rows that are shown above the table. */
  readonly example: string;
}

export const DECLARED_AGGREGATES: Readonly<Record<AggregateName, Declared>> = {
  count: {
    form: "count(*), count(x), count(distinct x)",
    about: "The rows; those where it is set; its different values.",
    example: "count(distinct s)",
  },
  min: { form: "min(x)", about: "The least.", example: "min(n)" },
  max: { form: "max(x)", about: "The greatest.", example: "max(s)" },
  sum: { form: "sum(number)", about: "All added up; of integers exact.", example: "sum(n)" },
  avg: { form: "avg(number)", about: "The mean.", example: "avg(n)" },
  first: { form: "first(x)", about: "That of the object that was written first.", example: "first(n)" },
  last: { form: "last(x)", about: "That of the object that was written last, and has one.", example: "last(n)" },
  rate: {
    form: "rate(number)",
    about:
      "By how much it grew for each second from the first write to the last; what is less than before began again at 0.",
    example: "rate(n)",
  },
  stddev: { form: "stddev(number)", about: "The standard deviation of a sample.", example: "round(stddev(n), 3)" },
  percentile: {
    form: "percentile(number, share)",
    about: "The value that so many percent are not above; between two values in proportion.",
    example: "percentile(n, 75)",
  },
  top: {
    form: "top(x, [count])",
    about: "The most frequent values, 10 when no number is written, as `[value, count]`.",
    example: "top(s, 1)",
  },
  histogram: {
    form: "histogram(number, [count])",
    about:
      "Steps of equal width between the least and the greatest, 10 when no number is written, as `[from, to, count]`.",
    example: "histogram(n, 2)",
  },
};

/**
 * Calls that are no functions of one row: they choose among values, use several values of a row, or are replaced before
 * rows are read.
 */
export const DECLARED_OTHERS: Readonly<Record<"any" | "coalesce" | "cast" | "now" | "ago", Declared>> = {
  any: {
    form: "any(x)",
    about:
      "On one side of `=`, `>`, IN, LIKE and every other comparison but IS NULL: true where one element of a set or list, or one value of a map, does what is asked. " +
      "Of what is empty none does.",
    example: "'b' = any(split('a,b', ','))",
  },
  coalesce: { form: "coalesce(x, …)", about: "The first that is set.", example: "coalesce(null, s, 'none')" },
  cast: {
    form: "cast(x AS type)",
    about: "The value as one of that type; not set where it cannot be one.",
    example: "cast('12.9' AS int)",
  },
  now: { form: "now()", about: "The time at which the statement began.", example: "now() > '2026-01-01'" },
  ago: { form: "ago('1 hour')", about: "So long before `now()`.", example: "ago('1 hour') < now()" },
};
