import { AppError } from "../../../../../common/errors.ts";
import { type Call, printCall, type TimeWindow } from "../../../../../common/mql/index.ts";
import type { Value } from "../../../../../common/value.ts";
import { STEPPED_AGGREGATES, type SteppedAggregate } from "./aggregate.ts";
import { durationSeconds } from "../functions/duration.ts";
import { compare, NUMBER, TIME, toComparable } from "../kind.ts";
import { type Arguments, isList, literal } from "../literal.ts";
import { Sum } from "./sum.ts";

/**
 * Part of a time series, which is a list of `[time, value]`: the points from `fromMs` (included) to `toMs` (excluded),
 * optionally combined in steps.
 */
export interface SeriesPart {
  readonly fromMs: number;
  readonly toMs: number;
  readonly steps?: Steps | undefined;
}

export interface Steps {
  readonly name: SteppedAggregate;
  readonly widthMs: number;
}

export const WHOLE_SERIES: SeriesPart = { fromMs: -Infinity, toMs: Infinity };

export function windowOf({ from, to }: TimeWindow, values: Arguments): SeriesPart {
  const part = {
    fromMs: from ? timeOf(literal(from, values)) : -Infinity,
    toMs: to ? timeOf(literal(to, values)) : Infinity,
  };
  if (part.fromMs <= part.toMs) return part;
  throw new AppError("invalid", "[Valid] A window begins before it ends.");
}

/** Steps of a call such as `avg(load, '5 minute')`; absent without a width. */
export function stepsOf(call: Call, values: Arguments): Steps | undefined {
  if (!call.step) return undefined;
  const { name } = call;
  if (!isStepped(name) || call.distinct)
    throw new AppError(
      "invalid",
      `[Valid] ${printCall(call)}: points are put together by ${STEPPED_AGGREGATES.join(", ")}.`,
    );
  const width = literal(call.step, values);
  const [amount = "", unit = "", ...more] = String(width).trim().split(/\s+/);
  const seconds = more.length === 0 ? durationSeconds(amount, unit) : undefined;
  if (seconds !== undefined && seconds > 0) return { name, widthMs: seconds * 1_000 };
  throw new AppError(
    "invalid",
    `[Valid] ${JSON.stringify(width)} is no width of steps: a whole number and a unit, such as '5 minute'.`,
  );
}

function isStepped(name: string): name is SteppedAggregate {
  return (STEPPED_AGGREGATES as readonly string[]).includes(name);
}

/** The part of a series. Values that are not points are left out. Null if no point is in the part. */
export function partOf(series: Value, { fromMs, toMs, steps }: SeriesPart): Value {
  const points = pointsOf(series).filter(({ timeMs }) => timeMs >= fromMs && timeMs < toMs);
  if (points.length === 0) return null;
  if (!steps) return points.map(({ point }) => point);
  return inSteps(points, steps.widthMs).map(([timeMs, inside]) => [timeMs, aggregated(inside, steps.name)]);
}

interface Point {
  readonly timeMs: number;
  readonly value: Value;
  readonly point: Value;
}

function pointsOf(series: Value): readonly Point[] {
  if (!isList(series)) return [];
  return series.flatMap((point) => {
    const [time = null, value = null] = isList(point) ? point : [];
    const timeMs = time === null ? undefined : toComparable(TIME, time);
    return typeof timeMs === "number" ? [{ timeMs, value, point }] : [];
  });
}

/**
 * Points by step, in the order of time. Steps begin at multiples of their width since 1970. Steps without points are
 * left out.
 */
function inSteps(points: readonly Point[], widthMs: number): readonly (readonly [number, readonly Point[]])[] {
  const steps = new Map<number, Point[]>();
  for (const point of points) {
    const beginMs = Math.floor(point.timeMs / widthMs) * widthMs;
    const step = steps.get(beginMs);
    if (step) step.push(point);
    else steps.set(beginMs, [point]);
  }
  return [...steps].sort(([left], [right]) => left - right);
}

function aggregated(points: readonly Point[], name: SteppedAggregate): Value {
  const set = points.filter(({ value }) => value !== null);
  switch (name) {
    case "count":
      return set.length;
    case "first":
      return (
        set.reduce<Point | undefined>((best, point) => (best && best.timeMs <= point.timeMs ? best : point), undefined)
          ?.value ?? null
      );
    case "last":
      return (
        set.reduce<Point | undefined>((best, point) => (best && best.timeMs > point.timeMs ? best : point), undefined)
          ?.value ?? null
      );
    default:
      return ofNumbers(set, name);
  }
}

function ofNumbers(points: readonly Point[], name: "min" | "max" | "sum" | "avg"): Value {
  const numbers = points.flatMap(({ value }) => {
    const number = toComparable(NUMBER, value);
    return typeof number === "number" || typeof number === "bigint" ? [{ number, value }] : [];
  });
  if (numbers.length === 0) return null;
  if (name === "sum" || name === "avg") {
    const sum = new Sum();
    for (const { number } of numbers) sum.add(number);
    return name === "sum" ? sum.total() : sum.mean();
  }
  const sign = name === "min" ? 1 : -1;
  return numbers.reduce((best, other) => (compare(other.number, best.number) * sign < 0 ? other : best)).value;
}

function timeOf(value: Value): number {
  const timeMs = value === null ? undefined : toComparable(TIME, value);
  if (typeof timeMs === "number") return timeMs;
  throw new AppError("invalid", `[Format] ${JSON.stringify(value)} is no time: YYYY-MM-DD HH:mm:ss or milliseconds.`);
}
