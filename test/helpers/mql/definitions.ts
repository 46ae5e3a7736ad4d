import type { Value } from "../../../common/value.ts";
import type { Type } from "./types.ts";

/**
 * Definitions of operators, functions and aggregates according to the user reference, as simple as possible. Nothing
 * here calls the product's own computations.
 */

const HOUR_MS = 3_600_000;
const UNITS_MS: Readonly<Record<string, number>> = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 168 * HOUR_MS };
const UNITS_MONTHS: Readonly<Record<string, number>> = { month: 1, quarter: 3, year: 12 };

type Definition = (...values: readonly Value[]) => Value;

const DEFINITIONS: Readonly<Record<string, Definition>> = {
  "+": (left = null, right = null) => Number(left) + Number(right),
  "-": (left = null, right) => (right === undefined ? 0 - Number(left) : Number(left) - Number(right)),
  "*": (left, right) => Number(left) * Number(right),
  "/": (left, right) => (Number(right) === 0 ? null : Number(left) / Number(right)),
  "||": (...texts) => texts.map(String).join(""),
  lower: (text) => String(text).toLowerCase(),
  upper: (text) => String(text).toUpperCase(),
  trim: (text) => String(text).replace(/^\s+|\s+$/g, ""),
  length: (text) => Array.from(String(text)).length,
  substring: (text, from, count = Infinity) =>
    Array.from(String(text))
      .filter((_, at) => at + 1 >= Number(from) && at + 1 < Number(from) + Number(count))
      .join(""),
  concat: (...texts) => texts.map(String).join(""),
  replace: (text, old, next) => replaced(String(text), String(old), String(next)),
  split: (text, separator) => parts(String(text), String(separator)),
  regexp_match: (text, pattern) => new RegExp(String(pattern)).exec(String(text)) !== null,
  regexp_extract: (text, pattern, group) => extracted(new RegExp(String(pattern)).exec(String(text)), group),
  abs: (number) => (Number(number) < 0 ? 0 - Number(number) : Number(number)),
  floor: (number) => Number(number) - remainder(Number(number), 1),
  ceil: (number) => 0 - (0 - Number(number) - remainder(0 - Number(number), 1)),
  round: (number, places = 0) => rounded(Number(number), Number(places)),
  mod: (number, by) => (Number(by) === 0 ? null : Number(number) % Number(by)),
  year: (time, zone = "UTC") => Number(clockText(time, zone).slice(0, 4)),
  month: (time, zone = "UTC") => Number(clockText(time, zone).slice(5, 7)),
  day: (time, zone = "UTC") => Number(clockText(time, zone).slice(8, 10)),
  hour: (time, zone = "UTC") => Number(clockText(time, zone).slice(11, 13)),
  minute: (time, zone = "UTC") => Number(clockText(time, zone).slice(14, 16)),
  second: (time, zone = "UTC") => Number(clockText(time, zone).slice(17, 19)),
  /** 1970 began on a Thursday. */
  weekday: (time, zone = "UTC") => remainder(Math.floor((Number(time) + offsetOf(zone)) / (24 * HOUR_MS)) + 3, 7) + 1,
  time_text: (time, zone = "UTC") => clockText(time, zone).replace("T", " ").slice(0, -1),
  bucket: (time, width, zone = "UTC") => stepOf(Number(time) + offsetOf(zone), width) - offsetOf(zone),
  date_trunc: (unit, time, zone = "UTC") => stepOf(Number(time) + offsetOf(zone), `1 ${String(unit)}`) - offsetOf(zone),
  size: (value = null) => (typeof value === "object" && value !== null ? Object.keys(value).length : lengthOf(value)),
  member: (value = null, key = null) =>
    (Array.isArray(value)
      ? (value as readonly Value[]).find((_, at) => at + 1 === Number(key))
      : Object.entries(value ?? {}).find(([name]) => name === key)?.[1]) ?? null,
  contains: (value = null, wanted = null) => {
    if (Array.isArray(value)) return value.includes(wanted);
    return typeof value === "object" && value !== null
      ? Object.keys(value).includes(String(wanted))
      : String(value).split(String(wanted)).length > 1 || wanted === "";
  },
};

/** `from`: type of the first value, which only a cast needs. */
export function computed(name: string, values: readonly Value[], from: Type): Value {
  if (name === "coalesce") return values.find((value) => value !== null) ?? null;
  if (values.includes(null)) return null;
  const [first = null, second = null] = values;
  if (name === "cast") return castTo(String(second), first, from);
  const definition = DEFINITIONS[name];
  if (!definition) throw new Error(`${name} is not defined here`);
  return definition(...values);
}

function lengthOf(value: Value): number {
  return Array.from(String(value)).length;
}

function replaced(text: string, old: string, next: string): string {
  if (old === "" || text === "") return text;
  return text.startsWith(old)
    ? next + replaced(text.slice(old.length), old, next)
    : text.charAt(0) + replaced(text.slice(1), old, next);
}

function parts(text: string, separator: string): readonly string[] {
  const at = separator === "" ? -1 : text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), ...parts(text.slice(at + separator.length), separator)];
}

/** Without a number: the first group if the expression has one. */
function extracted(found: RegExpExecArray | null, group: Value | undefined): Value {
  return found?.[group === undefined ? Math.min(1, found.length - 1) : Number(group)] ?? null;
}

/** Distance to the next lower multiple of `width`. */
function remainder(number: number, width: number): number {
  const left = number % width;
  return left < 0 ? left + width : left;
}

/** Rounds digit by digit, halves away from 0. */
function rounded(number: number, places: number): number {
  const [whole = "", fraction = ""] = plainDigits(Math.abs(number)).split(".");
  const digits = `000${whole}${fraction}000000`;
  const end = 3 + whole.length + places;
  const up = Number(digits[end]) >= 5 ? 1 : 0;
  const size = Number(`${Number(digits.slice(0, end)) + up}e${-places}`);
  return number < 0 ? 0 - size : size;
}

/** Digits without an exponent. A number so small that it has one counts as 0 where it is rounded here. */
function plainDigits(size: number): string {
  return size < 1e-6 ? "0" : String(size);
}

/** A time by the clocks of a zone that has one offset. */
function clockText(time: Value | undefined, zone: Value): string {
  return dateText(Number(time) + offsetOf(zone));
}

function dateText(time: Value | undefined): string {
  return new Date(Number(time)).toISOString();
}

/** Start of the step in UTC. The first Monday of 1970 was January 5. */
export function stepOf(timeMs: number, width: Value | undefined): number {
  const [amount = "", unit = ""] = String(width).split(" ");
  const name = unit.replace(/s$/, "");
  const widthMs = Number(amount) * (UNITS_MS[name] ?? NaN);
  if (name === "week") return timeMs - remainder(timeMs - 96 * HOUR_MS, widthMs);
  const months = Number(amount) * (UNITS_MONTHS[name] ?? NaN);
  if (Number.isNaN(months)) return timeMs - remainder(timeMs, widthMs);
  const text = dateText(timeMs);
  const month = (Number(text.slice(0, 4)) - 1970) * 12 + Number(text.slice(5, 7)) - 1;
  const first = month - remainder(month, months);
  const own = remainder(first, 12);
  return Date.parse(`${1970 + (first - own) / 12}-${String(own + 1).padStart(2, "0")}-01T00:00:00Z`);
}

/** Milliseconds by which the zone is ahead of UTC. `zone`: UTC, or an offset such as +05:45. */
function offsetOf(zone: Value): number {
  const [, sign = "+", hours = "0", minutes = "0"] = /^([+-])(\d\d):(\d\d)$/.exec(String(zone)) ?? [];
  return Number(`${sign}1`) * (Number(hours) * HOUR_MS + (Number(minutes) * HOUR_MS) / 60);
}

const NUMERIC = /^\s*[+-]?\d+(\.\d+)?(e[+-]?\d+)?\s*$/i;

function castTo(type: string, value: Value, from: Type): Value {
  const iso = from === "time" ? dateText(value) : "";
  switch (type) {
    case "text":
    case "varchar":
      return from === "time" ? `${iso.slice(0, 10)} ${iso.slice(11, 23)}` : String(value);
    case "date":
      return iso.slice(0, 10);
    case "boolean":
      return /^(true|false)$/i.test(String(value)) ? /^true$/i.test(String(value)) : null;
    case "timestamp":
      return typeof value === "number" ? value : timeOf(String(value));
    default: {
      const number = typeof value === "string" && !NUMERIC.test(value) ? NaN : Number(value);
      if (Number.isNaN(number)) return null;
      return type === "double" || type === "float" ? number : number - (number % 1);
    }
  }
}

export function timeOf(text: string): Value {
  const ms = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/.test(text) ? Date.parse(`${text.replace(" ", "T")}Z`) : NaN;
  return Number.isNaN(ms) ? null : ms;
}

/** A value of a row, and the time at which the row was written. */
export interface Known {
  readonly value: Value;
  readonly ms: number;
}

/** The aggregate of non-null values. */
export function aggregate(name: string, known: readonly Known[], parameter = 10): Value {
  const values = known.map((one) => one.value);
  if (name === "count") return values.length;
  if (values.length === 0) return null;
  const ordered = values.toSorted((left, right) => order(left, right));
  const timed = known.toSorted((left, right) => left.ms - right.ms);
  const total = values.reduce<number>((sum, value) => sum + Number(value), 0);
  switch (name) {
    case "sum":
      return total;
    case "avg":
      return total / values.length;
    case "min":
      return ordered[0] ?? null;
    case "max":
      return ordered.at(-1) ?? null;
    case "first":
      return timed[0]?.value ?? null;
    case "last":
      return timed.at(-1)?.value ?? null;
    case "rate":
      return growth(timed);
    case "stddev":
      return deviation(values.map(Number), total / values.length);
    case "percentile":
      return percentile(ordered.map(Number), parameter / 100);
    case "top":
      return mostFrequent(values, parameter);
    case "histogram":
      return histogram(ordered.map(Number), parameter);
    default:
      throw new Error(`${name} is not defined here`);
  }
}

/** Growth per second from the first to the last value. A smaller value means that the counter restarted at 0. */
function growth(timed: readonly Known[]): Value {
  const seconds = ((timed.at(-1)?.ms ?? 0) - (timed[0]?.ms ?? 0)) / 1_000;
  const steps = timed.slice(1).map(({ value }, at) => [Number(timed[at]?.value), Number(value)] as const);
  const grown = steps.reduce((sum, [before, value]) => sum + (value < before ? value : value - before), 0);
  return seconds === 0 ? null : grown / seconds;
}

function deviation(numbers: readonly number[], mean: number): Value {
  const squares = numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0);
  return numbers.length < 2 ? null : Math.sqrt(squares / (numbers.length - 1));
}

function percentile(ordered: readonly number[], share: number): Value {
  const place = share * (ordered.length - 1);
  const [low = 0, high = low] = ordered.slice(Math.floor(place));
  return low + (high - low) * (place % 1);
}

function mostFrequent(values: readonly Value[], most: number): Value {
  const times = (value: Value): number => values.filter((other) => other === value).length;
  return [...new Set(values)]
    .map((value) => [value, times(value)] as const)
    .sort(([left, a], [right, b]) => b - a || order(JSON.stringify(left), JSON.stringify(right)))
    .slice(0, most);
}

function histogram(ordered: readonly number[], steps: number): Value {
  const [least = 0] = ordered;
  const greatest = ordered.at(-1) ?? 0;
  const width = (greatest - least) / steps;
  if (width === 0) return [[least, greatest, ordered.length]];
  return Array.from({ length: steps }, (_, at): Value => {
    const isLast = at === steps - 1;
    const [from, to] = [least + at * width, isLast ? greatest : least + (at + 1) * width];
    return [from, to, ordered.filter((one) => one >= from && (one < to || isLast)).length];
  });
}

/** Null comes first, false before true. */
export function order(left: Value, right: Value): number {
  if (left === null || right === null) return left === right ? 0 : left === null ? -1 : 1;
  return left < right ? -1 : left > right ? 1 : 0;
}
