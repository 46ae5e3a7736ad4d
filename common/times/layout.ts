import { AppError } from "../errors.ts";
import { TIME_LAYOUT_MAX_CHARACTERS, TIME_LAYOUTS_KEPT } from "../limits.ts";
import { Kept } from "../kept.ts";
import type { TimeFault, TimeFields } from "./types.ts";
import { monthNamed, weekdayNamed } from "./names.ts";
import { Scanner } from "./scanner.ts";
import { offsetZone, unknownZone, zoneInText } from "./zones.ts";

/** A notation of times: letters stand for the parts of a time, other characters for themselves. */
export interface Layout {
  /** Reads the fields of a time; returns the reason if the text does not match the layout. */
  read(text: string): TimeFields | TimeFault;
}

/** Reads one part; false if the text does not match. */
type Step = (scanner: Scanner, fields: TimeFields) => boolean | TimeFault;
type NumberField = "year" | "month" | "day" | "dayOfYear" | "weekYear" | "week" | "weekday";
type ClockField = "hour" | "hour12" | "minute" | "second";

/** A year of two digits is in the 1900s from this number on, otherwise in the 2000s. */
const LAST_CENTURY_FROM = 69;
const OFFSET = /Z|[+-]\d\d:?(?:\d\d)?/y;
const ZONE_NAME = /[A-Za-z][A-Za-z0-9_+/-]*|[+-]\d\d:?(?:\d\d)?/y;

const STEPS: Readonly<Record<string, Step>> = {
  yyyy: digits("year", 4),
  yy: shortYear,
  MM: digits("month", 2),
  M: digits("month", 1, 2),
  MMM: monthName,
  MMMM: monthName,
  dd: digits("day", 2),
  d: paddedDay,
  DDD: digits("dayOfYear", 3),
  D: digits("dayOfYear", 1, 3),
  YYYY: digits("weekYear", 4),
  ww: digits("week", 2),
  e: digits("weekday", 1),
  E: weekdayName,
  EEE: weekdayName,
  EEEE: weekdayName,
  HH: digits("hour", 2),
  H: digits("hour", 1, 2),
  hh: digits("hour12", 2),
  h: digits("hour12", 1, 2),
  mm: digits("minute", 2),
  m: digits("minute", 1, 2),
  ss: digits("second", 2),
  s: digits("second", 1, 2),
  f: fraction(1, 9),
  a: half,
  Z: offset,
  X: offset,
  XX: offset,
  XXX: offset,
  z: zoneName,
  ...Object.fromEntries(Array.from({ length: 9 }, (_, at) => ["S".repeat(at + 1), fraction(at + 1, at + 1)])),
};

/** The letters that have a meaning, each with its possible repetitions. */
export const LAYOUT_LETTERS: readonly string[] = Object.keys(STEPS);

const layouts = new Kept(TIME_LAYOUTS_KEPT, compile);

/** Compiles a layout. `AppError("invalid")` says what is wrong with it. */
export function layoutOf(text: string): Layout {
  return layouts.of(text);
}

function compile(text: string): Layout {
  if (text === "") throw wrong("is empty");
  if (text.length > TIME_LAYOUT_MAX_CHARACTERS) throw wrong(`has more than ${TIME_LAYOUT_MAX_CHARACTERS} characters`);
  const parts = partsOf(text);
  checkLetters(parts.flatMap(({ letters }) => letters ?? []));
  const steps = parts.map(({ step }) => step);
  const misfit = { reason: `is no time of the layout ${text}`, isMisfit: true } as const;
  return {
    read(given) {
      const [scanner, fields]: [Scanner, TimeFields] = [new Scanner(given), {}];
      for (const step of steps) {
        const outcome = step(scanner, fields);
        if (outcome !== true) return outcome === false ? misfit : outcome;
      }
      return scanner.isAtEnd ? fields : misfit;
    },
  };
}

interface Part {
  readonly step: Step;
  readonly letters?: string;
}

const PART = /'((?:[^']|'')*)'|([A-Za-z])\2*|([.,])(?=[Sf])|[ \t]+|[^]/gu;

function partsOf(text: string): readonly Part[] {
  return Array.from(text.matchAll(PART), ([part, quoted, letter, point]): Part => {
    if (quoted !== undefined) return { step: literal(quoted === "" ? "'" : quoted.replaceAll("''", "'")) };
    if (letter !== undefined) return { step: stepOf(part), letters: part };
    if (point !== undefined) return { step: (scanner) => scanner.takes(".") || scanner.takes(",") };
    if (part.trim() === "") return { step: (scanner) => scanner.blanks() };
    if (part === "'") throw wrong("has a ' without another");
    return { step: literal(part) };
  });
}

function stepOf(letters: string): Step {
  const step = Object.hasOwn(STEPS, letters) ? STEPS[letters] : undefined;
  if (step !== undefined) return step;
  throw wrong(`has ${letters}, which means nothing: text stands in quotes, as 'T'`);
}

/** Letters that mean the same part of a time. A layout may have only one of each line. */
const SAME: readonly (readonly [string, RegExp])[] = [
  ["a year", /^[yY]/],
  ["a month", /^M/],
  ["a day", /^[dD]/],
  ["a week", /^w/],
  ["a day of the week", /^e/],
  ["an hour", /^[Hh]/],
  ["a minute", /^m/],
  ["a second", /^s/],
  ["a fraction", /^[Sf]/],
  ["AM or PM", /^a/],
  ["a zone", /^[XZz]/],
];
/** A layout with one of the first letters must also have one of the second. */
const TOGETHER = [
  ["d", "M", "a day d needs a month M"],
  ["Y", "w", "YYYY is the year of a week w; the year of a date is yyyy"],
  ["w", "Y", "a week w needs its year YYYY"],
  ["e", "w", "a day of a week e needs the week w"],
  ["h", "a", "an hour h of twelve needs a, AM or PM"],
  ["a", "h", "AM or PM a needs an hour h of twelve"],
  ["m", "Hh", "a minute m needs an hour H or h"],
  ["s", "m", "a second s needs a minute m"],
  ["Sf", "s", "a fraction S needs a second s"],
] as const;

function checkLetters(letters: readonly string[]): void {
  for (const [what, expression] of SAME) {
    const [, second] = letters.filter((one) => expression.test(one));
    if (second !== undefined) throw wrong(`has ${what} twice, the second time as ${second}`);
  }
  const has = (any: string): boolean => letters.some((one) => any.includes(one.slice(0, 1)));
  for (const [these, those, why] of TOGETHER) if (has(these) && !has(those)) throw wrong(`is incomplete: ${why}`);
  if (has("D") && has("M")) throw wrong("has a day of the year D and a month M");
  if (has("Y") && has("MdD")) throw wrong("has YYYY, the year of a week, and another date; the year of a date is yyyy");
  if (letters.length === 0) throw wrong("has no letters that mean something");
}

function wrong(what: string): AppError {
  return new AppError("invalid", `The layout of times ${what}.`);
}

function literal(text: string): Step {
  return (scanner) => scanner.takes(text);
}

function digits(field: NumberField | ClockField, least: number, most = least): Step {
  return (scanner, fields) => {
    const value = scanner.number(least, most);
    fields[field] = value;
    return value >= 0;
  };
}

function fraction(least: number, most: number): Step {
  return (scanner, fields) => {
    const value = scanner.fraction(least, most);
    fields.milliseconds = value;
    return value >= 0;
  };
}

function shortYear(scanner: Scanner, fields: TimeFields): boolean {
  const value = scanner.number(2, 2);
  fields.year = value + (value < LAST_CENTURY_FROM ? 2_000 : 1_900);
  return value >= 0;
}

/** A day of one digit may have a blank before it. */
function paddedDay(scanner: Scanner, fields: TimeFields): boolean {
  const isPadded = scanner.takes(" ");
  const value = scanner.number(1, isPadded ? 1 : 2);
  fields.day = value;
  return value >= 0;
}

function monthName(scanner: Scanner, fields: TimeFields): boolean | TimeFault {
  const name = scanner.letters();
  if (name === "") return false;
  const month = monthNamed(name);
  if (typeof month !== "number") return month;
  fields.month = month;
  return true;
}

/** Reads the name, but does not compare it with the date. */
function weekdayName(scanner: Scanner): boolean | TimeFault {
  const name = scanner.letters();
  if (name === "") return false;
  const day = weekdayNamed(name);
  return typeof day === "number" ? true : day;
}

function half(scanner: Scanner, fields: TimeFields): boolean {
  const name = scanner.letters().toLowerCase();
  fields.isAfternoon = name === "pm";
  return name === "am" || name === "pm";
}

function offset(scanner: Scanner, fields: TimeFields): boolean {
  const zone = offsetZone(scanner.take(OFFSET));
  if (zone === undefined) return false;
  fields.zone = zone;
  return true;
}

function zoneName(scanner: Scanner, fields: TimeFields): boolean | TimeFault {
  const name = scanner.take(ZONE_NAME);
  if (name === "") return false;
  const zone = zoneInText(name);
  if (zone === undefined) return unknownZone(name);
  fields.zone = zone;
  return true;
}
