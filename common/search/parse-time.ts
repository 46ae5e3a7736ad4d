import { parseTimestamp } from "../timestamps.ts";
import type { Duration, DurationUnit, Moment, Period, When } from "./ast.ts";
import type { Scanner } from "./scanner.ts";

const MOMENT =
  /\d{10,16}(?![\p{L}\p{N}:])|\d{4}-\d{1,2}-\d{1,2}(?:[ T]+\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?(?:\s*Z|[+-]\d{2}:?\d{2})?(?![\p{L}\p{N}:])/uy;
const DAY = /^\d{4}-\d{1,2}-\d{1,2}$/;
/** Must fill its segment. A unit of one letter needs `nearest`, because `5 m` may be words. */
const ALONE = /(?=\d{1,5}\s*\p{L}{2,}\s*(?:[|;；]|$|for\s))(\d{1,5})\s*(\p{L}+)/iuy;
const DURATION = /(\d{1,5})\s*(\p{L}+)/uy;
const PERIOD = /(?:last\s+(?:day|week|month|year)|today|yesterday|week|month|year)(?=\s*(?:[|;；]|$|for\s))/iuy;
const QUOTED_PERIOD = /"(last\s+(?:day|week|month|year))"(?=\s*(?:[|;；]|$|for\s))/iuy;
const UNITS: Readonly<Record<DurationUnit, readonly string[]>> = {
  second: ["s", "sec", "secs", "second", "seconds"],
  minute: ["m", "min", "mins", "minute", "minutes"],
  hour: ["h", "hour", "hours"],
  day: ["d", "day", "days"],
  week: ["w", "week", "weeks"],
  month: ["mon", "month", "months"],
  year: ["y", "year", "years"],
};
const UNIT_OF: ReadonlyMap<string, DurationUnit> = new Map(
  Object.entries(UNITS).flatMap(([unit, words]) => words.map((word) => [word, unit as DurationUnit] as const)),
);

/** Parses a time segment without its `for`; `undefined` for other segments. */
export function parseWhen(scanner: Scanner): When | undefined {
  const period = scanner.match(PERIOD)?.[0] ?? scanner.match(QUOTED_PERIOD)?.[1];
  if (period !== undefined) return { kind: "period", name: period.toLowerCase().replace(/\s+/, " ") as Period };
  const latest = lengthAlone(scanner);
  if (latest !== undefined) return { kind: "nearest", duration: latest };
  if (scanner.acceptWord("nearest")) return { kind: "nearest", duration: duration(scanner) };
  if (scanner.acceptWord("within")) return { kind: "within", duration: duration(scanner) };
  if (scanner.acceptWord("window")) return window(scanner);
  if (!scanner.acceptWord("at")) return undefined;
  const at = moment(scanner);
  return { kind: "at", moment: at, within: scanner.acceptWord("within") ? duration(scanner) : undefined };
}

function window(scanner: Scanner): When {
  const from = moment(scanner);
  if (!scanner.acceptWord("to")) throw scanner.fail("TO");
  return { kind: "window", from, to: moment(scanner) };
}

function moment(scanner: Scanner): Moment {
  const { at } = scanner;
  const text = scanner.isAtQuote ? scanner.quoted().text : (scanner.match(MOMENT)?.[0] ?? "");
  const timeMs = parseTimestamp(text.replace(/\s+/, " "));
  if (timeMs === undefined) {
    scanner.at = at;
    throw scanner.fail("a time as YYYY-MM-DD HH:mm:ss");
  }
  scanner.skipBlanks();
  return { timeMs, isDay: DAY.test(text) };
}

function duration(scanner: Scanner): Duration {
  const found = lengthOf(scanner, DURATION);
  if (found !== undefined) return found;
  throw scanner.fail(`a length of time such as 15 minutes (units: ${Object.keys(UNITS).join(", ")})`);
}

/** Parses `15 minutes` without `nearest`. Words that only look similar are not a length. */
function lengthAlone(scanner: Scanner): Duration | undefined {
  return lengthOf(scanner, ALONE);
}

function lengthOf(scanner: Scanner, form: RegExp): Duration | undefined {
  const { at } = scanner;
  const [, amount, word = ""] = scanner.match(form) ?? [];
  const unit = UNIT_OF.get(word.toLowerCase());
  if (unit === undefined) {
    scanner.at = at;
    return undefined;
  }
  scanner.skipBlanks();
  return { amount: Number(amount), unit };
}
