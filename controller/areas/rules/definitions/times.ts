import { AppError } from "../../../../common/errors.ts";
import { TIME_LAYOUTS_PER_RULE_MAX, WRITE_AHEAD_MAX_MS } from "../../../../common/limits.ts";
import {
  EPOCH_UNITS,
  findTimeZone,
  layoutOf,
  readTime,
  timeZoneOf,
  unitNamed,
  UTC,
  type EpochUnit,
  type ReadTime,
  type TimeContext,
} from "../../../../common/times/index.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { bodyOf, names, single, type RuleText } from "./options.ts";
import type { ParsedRow, RawRecord, RuleTarget, RuleTimes } from "../types.ts";

const OPTIONS = ["time_layout", "time_zone", "time_unit"];

/** Reads `--time`, `--time_layout`, `--time_unit` and `--time_zone`. `AppError("invalid")` for wrong values. */
export function timesOf(rule: RuleText): RuleTimes {
  const layouts = rule.options.filter(({ name }) => name === "time_layout");
  if (layouts.length > TIME_LAYOUTS_PER_RULE_MAX)
    throw new AppError("too_large", `The rule has more than ${TIME_LAYOUTS_PER_RULE_MAX} options --time_layout.`, {
      details: { limit: "TIME_LAYOUTS_PER_RULE_MAX" },
    });
  const zone = single(rule, "time_zone");
  const field = single(rule, "time")?.replace(/^OBJECT\./, "");
  if (field !== undefined && names(field).length === 0)
    throw new AppError("invalid", "--time names the field that has the time of a record.");
  return {
    layouts: layouts.map(({ value }) => layoutOf(value)),
    unit: unitOf(single(rule, "time_unit")),
    zone: zone === undefined ? undefined : timeZoneOf(zone),
    field,
  };
}

function unitOf(text: string | undefined): EpochUnit | undefined {
  if (text === undefined) return undefined;
  const unit = unitNamed(text);
  if (unit !== undefined) return unit;
  throw new AppError("invalid", `--time_unit is ${EPOCH_UNITS.join(", ")}, not ${text || "nothing"}.`);
}

/** Warnings about time options in a rule that reads no times. `patterns`: the users' grok patterns that it uses. */
export function idleTimes(
  rule: RuleText,
  { columns }: Pick<RuleTarget, "columns">,
  patterns: Readonly<Record<string, string>> = {},
): readonly string[] {
  if (timeColumns(columns).length > 0 || bodyOf(rule) || single(rule, "time") !== undefined) return [];
  const expressions = [...rule.options.map(({ value }) => value), ...Object.values(patterns)];
  if (expressions.some((expression) => expression.includes(":timestamp}"))) return [];
  return rule.options
    .filter(({ name }) => OPTIONS.includes(name))
    .map(({ name, line }) => `Line ${line}: --${name} has no effect: the class has no timestamp column.`);
}

/** Names of the columns whose values are times. */
export function timeColumns(columns: RuleTarget["columns"]): readonly string[] {
  return columns.flatMap(({ name, type }) => (type === "timestamp" ? name : []));
}

/**
 * Throws `AppError("invalid")` if a rule for a class of objects has `--time`: their time is that of their last write.
 */
export function requireRecords({ field }: RuleTimes, { path, kind }: RuleTarget): void {
  if (field === undefined || kind !== "entity") return;
  throw new AppError(
    "invalid",
    `--time=${field} is for classes of records: objects of ${path} have the time of their last write.`,
  );
}

/** Converts the time columns of a row in place. Returns the reason if a value cannot be read. */
export function readTimes(
  values: Row,
  columns: readonly string[],
  { times, record }: { readonly times: RuleTimes; readonly record: RawRecord },
): string | undefined {
  let context: TimeContext | undefined;
  for (const column of columns) {
    const value = values[column];
    if ((typeof value !== "string" && typeof value !== "number") || value === "") continue;
    const time = timeIn(value, { times, record, context: (context ??= contextOf(times, record)) });
    if (typeof time !== "number") return `The column ${column}: ${shown(value)} ${time.reason}.`;
    values[column] = time;
  }
  return undefined;
}

/** Converts a time to ISO 8601 in UTC, which any column accepts. Returns a text that is not a time unchanged. */
export function timeText(text: string, times: RuleTimes, record: Pick<RawRecord, "zone" | "timeMs">): string {
  const time = readTime(text, times, contextOf(times, record));
  return typeof time === "number" ? isoOf(time) : text;
}

/** Time options of a rule that has none. */
export const NO_TIMES: RuleTimes = { layouts: [], zone: undefined, field: undefined };

/** The time in the field that `--time` names, or the reason why it cannot be read. Empty without `--time`. */
export function ownTime(
  value: Value | undefined,
  times: RuleTimes,
  record: RawRecord,
): Pick<ParsedRow, "timeMs" | "timeFault"> {
  if (times.field === undefined) return {};
  if (value === undefined || value === null || value === "")
    return { timeFault: `It has no field ${times.field} with its time.` };
  const isScalar = typeof value === "string" || typeof value === "number";
  const time = isScalar
    ? timeIn(value, { times, record, context: contextOf(times, record) })
    : { reason: "is neither a text nor a number" };
  if (typeof time === "number") return { timeMs: time };
  return { timeFault: `The field ${times.field}: ${shown(value)} ${time.reason}.` };
}

/**
 * The reason why a record with this time is refused; `undefined` if it is accepted. `writtenMs` is the write time, so a
 * repetition with the same write time has the same result.
 */
export function refusedTime(timeMs: number, writtenMs: number): string | undefined {
  if (timeMs < 0) return `Its time ${isoOf(timeMs)} is before 1970.`;
  if (timeMs <= writtenMs + WRITE_AHEAD_MAX_MS) return undefined;
  const minutes = WRITE_AHEAD_MAX_MS / 60_000;
  return `Its time ${isoOf(timeMs)} is more than ${minutes} minutes ahead of the controller's clock (${isoOf(writtenMs)}).`;
}

const ISO_8601_IN_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

interface Reading {
  readonly times: RuleTimes;
  readonly record: RawRecord;
  readonly context: TimeContext;
}

function timeIn(value: string | number, { times, record, context }: Reading): ReadTime {
  // `_time` of the raw record is in milliseconds, even if other fields have another unit.
  if (value === record.timeMs) return value;
  // Grok's type `timestamp` and bodies give ISO 8601 in UTC, even if other fields have a layout.
  const isIso = typeof value === "string" && ISO_8601_IN_UTC.test(value);
  const time = readTime(value, times, context);
  return isIso && typeof time !== "number" ? readTime(value, NO_TIMES, context) : time;
}

function contextOf({ zone }: Pick<RuleTimes, "zone">, record: Pick<RawRecord, "zone" | "timeMs">): TimeContext {
  const ofRecord = record.zone === undefined ? UTC : (findTimeZone(record.zone) ?? UTC);
  return { zone: zone ?? ofRecord, nearMs: record.timeMs };
}

function isoOf(timeMs: number): string {
  return new Date(Math.floor(timeMs)).toISOString();
}

function shown(value: Value): string {
  const text = JSON.stringify(value);
  return text.length <= 100 ? text : `${text.slice(0, 100)}…`;
}
