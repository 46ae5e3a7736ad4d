import { millisecondsOf, timeOf } from "./fields.ts";
import { monthNamed } from "./names.ts";
import type { ReadTime, TimeContext, TimeFault, TimeFields } from "./types.ts";
import { unknownZone, zoneInText } from "./zones.ts";

/**
 * A time of day such as `10:15`, `10:15:02`, `10:15:02.250` or `10:15:02,250`, each also with AM or PM: five groups.
 */
const CLOCK = String.raw`(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?:\s*([AaPp][Mm])(?![\w/]))?`;
/** An offset, or the name of a zone: one group. */
const ZONE = String.raw`(?:\s*([Zz]|[+-]\d{2}(?::?\d{2})?|(?<=\s)[A-Za-z][A-Za-z0-9_+/-]*))`;
const CLOCK_AND_ZONE = `(?:(?:[Tt]|\\s+)${CLOCK})?${ZONE}?`;
const WORD = String.raw`([\p{L}\p{M}]{2,}\.?)`;

interface Format {
  readonly expression: RegExp;
  /** Names of the groups, in their order. */
  readonly groups: readonly Group[];
}

type NumberName = Exclude<keyof TimeFields, "zone" | "milliseconds" | "isAfternoon" | "hour12">;
type Group = NumberName | "monthName" | "fraction" | "half" | "zone";

const OF_BASIC_CLOCK = ["hour", "minute", "second", "fraction"] as const;
const OF_CLOCK = [...OF_BASIC_CLOCK, "half"] as const;

/** A text that matches several of them means the same time in each. */
const NUMERIC: readonly Format[] = [
  // ISO 8601 and RFC 3339, Java, Python, PostgreSQL; nginx and Go have slashes.
  format(String.raw`(\d{4})-(\d{1,2})-(\d{1,2})${CLOCK_AND_ZONE}`, ["year", "month", "day", ...OF_CLOCK, "zone"]),
  format(String.raw`(\d{4})/(\d{1,2})/(\d{1,2})${CLOCK_AND_ZONE}`, ["year", "month", "day", ...OF_CLOCK, "zone"]),
  // Apache and nginx, access.
  format(String.raw`(\d{1,2})/${WORD}/(\d{4})[: ]${CLOCK}${ZONE}?`, ["day", "monthName", "year", ...OF_CLOCK, "zone"]),
  // RFC 5322 without its weekday; the same with dashes.
  format(String.raw`(\d{1,2}) ${WORD} (\d{4}),?\s+${CLOCK}${ZONE}?`, ["day", "monthName", "year", ...OF_CLOCK, "zone"]),
  format(String.raw`(\d{1,2})-${WORD}-(\d{4})\s+${CLOCK}${ZONE}?`, ["day", "monthName", "year", ...OF_CLOCK, "zone"]),
  format(String.raw`(\d{4})-?W(\d{2})(?:-?([1-7]))?${CLOCK_AND_ZONE}`, [
    "weekYear",
    "week",
    "weekday",
    ...OF_CLOCK,
    "zone",
  ]),
  format(String.raw`(\d{4})-(\d{3})${CLOCK_AND_ZONE}`, ["year", "dayOfYear", ...OF_CLOCK, "zone"]),
  // Basic ISO 8601.
  format(String.raw`(\d{4})(\d{2})(\d{2})[Tt](\d{2})(\d{2})(?:(\d{2})(?:[.,](\d{1,9}))?)?${ZONE}?`, [
    "year",
    "month",
    "day",
    ...OF_BASIC_CLOCK,
    "zone",
  ]),
];
const NAMED: readonly Format[] = [
  // RFC 3164, also with a year before or after the time. The output of `date` has the zone before the year.
  format(String.raw`${WORD}\s+(\d{1,2})(?:,?\s+(\d{4}))?,?\s+${CLOCK}${ZONE}?`, [
    "monthName",
    "day",
    "year",
    ...OF_CLOCK,
    "zone",
  ]),
  format(String.raw`${WORD}\s+(\d{1,2})\s+${CLOCK}${ZONE}?\s+(\d{4})`, [
    "monthName",
    "day",
    ...OF_CLOCK,
    "zone",
    "year",
  ]),
];
const WEEKDAY = /^(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs?)?|Fri|Sat(?:ur)?|Sun)(?:day)?,?\s+/i;

/** Reads a time in one of the formats that are known without a layout. A plain number is not one of them. */
export function recognised(given: string, context: TimeContext): ReadTime {
  const text = given.replace(WEEKDAY, "");
  const first = text.charCodeAt(0);
  for (const { expression, groups } of first >= 48 && first <= 57 ? NUMERIC : NAMED) {
    const match = expression.exec(text);
    if (match === null) continue;
    const fields = fieldsOf(match, groups);
    return "reason" in fields ? fields : timeOf(fields, context);
  }
  return UNKNOWN;
}

const UNKNOWN = { reason: "is in no format that is known without a layout (--time_layout)" };

function format(source: string, groups: Format["groups"]): Format {
  return { expression: new RegExp(`^${source}$`, "u"), groups };
}

function fieldsOf(match: RegExpExecArray, groups: Format["groups"]): TimeFields | TimeFault {
  const fields: TimeFields = {};
  for (const [at, group] of groups.entries()) {
    const text = match[at + 1];
    const fault = text === undefined ? undefined : setField(fields, group, text);
    if (fault !== undefined) return fault;
  }
  return fields;
}

function setField(fields: TimeFields, group: Group, text: string): TimeFault | undefined {
  if (group === "fraction") fields.milliseconds = millisecondsOf(text);
  else if (group === "half") {
    fields.hour12 = fields.hour ?? 0;
    fields.isAfternoon = /^p/i.test(text);
    delete fields.hour;
  } else if (group === "zone") {
    const zone = zoneInText(text);
    if (zone === undefined) return unknownZone(text);
    fields.zone = zone;
  } else if (group === "monthName") {
    const month = monthNamed(text.endsWith(".") ? text.slice(0, -1) : text);
    if (typeof month !== "number") return month;
    fields.month = month;
  } else fields[group] = Number(text);
  return undefined;
}
