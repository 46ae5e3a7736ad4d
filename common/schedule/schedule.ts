import { type Zone, zoneNamed } from "../calendar/zones.ts";
import { AppError } from "../errors.ts";
import { Kept } from "../kept.ts";
import {
  SCHEDULE_JITTER_MAX_S,
  SCHEDULE_PERIOD_MAX_S,
  SCHEDULE_TEXT_MAX_CHARACTERS,
  SCHEDULES_KEPT,
} from "../limits.ts";
import { parseTimestamp } from "../timestamps.ts";
import { CronTimes } from "./cron.ts";

/** Choices for times that came while no controller was running. */
const MISSED = ["skip", "last", "all"] as const;
/** Choices for a time that comes while the run of an earlier time has not ended. */
const OVERLAP = ["skip", "queue", "allow"] as const;

type Missed = (typeof MISSED)[number];
type Overlap = (typeof OVERLAP)[number];

export interface Schedule {
  readonly missed: Missed;
  readonly overlap: Overlap;
  /** Maximum delay of a firing; see `jitterMs`. */
  readonly jitterMs: number;
  /** The first due time after `afterMs`, both in milliseconds since 1970; `undefined` if there is none. */
  next(afterMs: number): number | undefined;
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
const OPTIONS = ["tz", "missed", "overlap", "jitter"] as const;
/** Words of crontabs for usual times. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ["@hourly", "0 * * * *"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@weekly", "0 0 * * 0"],
  ["@monthly", "0 0 1 * *"],
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
]);
type Options = Partial<Record<(typeof OPTIONS)[number], string>>;

/**
 * Parses a schedule: `[cron] <five or six fields>`, `@daily` and the like, `every <n>s|m|h|d` (counted from 1970) or
 * `at <time>`. Options may follow, each after a `;`: `tz=<zone>` (default: `zone`), `missed=skip|last|all` (default: `last`),
 * `overlap=skip|queue|allow` (default: `skip`), `jitter=<n>s|m|h|d`. `undefined` for an empty text.
 * `AppError("invalid")` names the part that cannot be read.
 */
export function parseSchedule(text: string, zone: string): Schedule | undefined {
  if (text.length > SCHEDULE_TEXT_MAX_CHARACTERS)
    throw new AppError("too_large", `A schedule has at most ${SCHEDULE_TEXT_MAX_CHARACTERS} characters.`, {
      details: { limit: "SCHEDULE_TEXT_MAX_CHARACTERS" },
    });
  return schedules.of(JSON.stringify([text, zone]));
}

const schedules = new Kept(SCHEDULES_KEPT, (key: string) => read(...(JSON.parse(key) as [string, string])));

function read(text: string, zone: string): Schedule | undefined {
  const [times = "", ...rest] = text.split(";").map((part) => part.trim());
  for (const part of [times, ...rest]) requireSeparated(part);
  const options = optionsOf(rest);
  if (times === "") {
    if (rest.some((part) => part !== "")) throw new AppError("invalid", "A schedule has its times before its options.");
    return undefined;
  }
  return {
    missed: oneOf("missed", MISSED, options.missed ?? "last"),
    overlap: oneOf("overlap", OVERLAP, options.overlap ?? "skip"),
    jitterMs: options.jitter === undefined ? 0 : durationMs("jitter", options.jitter, SCHEDULE_JITTER_MAX_S),
    next: nextOf(times, zoneOf(options.tz ?? zone)),
  };
}

function requireSeparated(part: string): void {
  const [, ...later] = part.split(/\s+/);
  const name = OPTIONS.find((option) => later.some((word) => word.startsWith(`${option}=`)));
  if (name === undefined) return;
  throw new AppError("invalid", `Each option of a schedule has a ; before it, so also ${name}=.`);
}

function optionsOf(parts: readonly string[]): Options {
  const options: Options = {};
  for (const part of parts) {
    if (part === "") continue;
    const [, word = "", value = ""] = /^(\w+)\s*=\s*(.*)$/.exec(part) ?? [];
    const name = OPTIONS.find((known) => known === word);
    if (name === undefined)
      throw new AppError("invalid", `${JSON.stringify(part)} is no option of a schedule: ${OPTIONS.join(", ")}.`);
    if (options[name] !== undefined) throw new AppError("invalid", `A schedule says ${name} twice.`);
    options[name] = value;
  }
  return options;
}

function oneOf<T extends string>(name: string, known: readonly T[], value: string): T {
  const found = known.find((one) => one === value);
  if (found !== undefined) return found;
  throw new AppError("invalid", `${name} of a schedule is ${known.join(", ")}, not ${JSON.stringify(value)}.`);
}

function zoneOf(name: string): Zone {
  const zone = zoneNamed(name);
  if (zone) return zone;
  throw new AppError("invalid", `There is no time zone ${JSON.stringify(name)}.`);
}

function nextOf(text: string, zone: Zone): Schedule["next"] {
  const [word = "", ...rest] = text.split(/\s+/);
  if (word === "every") return every(rest.join(" "));
  if (word === "at") return at(rest.join(" "), zone);
  const fields = word === "cron" ? rest.join(" ") : text;
  const times = new CronTimes(WORDS.get(fields) ?? fields, zone);
  return (afterMs) => times.next(afterMs);
}

function every(text: string): Schedule["next"] {
  const periodMs = durationMs("every", text, SCHEDULE_PERIOD_MAX_S);
  if (periodMs === 0) throw new AppError("invalid", "every of a schedule is at least 1s.");
  return (afterMs) => (Math.floor(afterMs / periodMs) + 1) * periodMs;
}

/** `at <time>`: in the zone that the time names, otherwise in that of the schedule. */
function at(text: string, zone: Zone): Schedule["next"] {
  const asUtc = parseTimestamp(text);
  if (asUtc === undefined)
    throw new AppError(
      "invalid",
      `at of a schedule is followed by YYYY-MM-DD[ HH:mm[:ss]], not ${JSON.stringify(text)}.`,
    );
  const isLocal = !/^-?\d+$|Z$|[+-]\d\d:?\d\d$/.test(text);
  const dueMs = isLocal ? zone.reachedMs(asUtc) : asUtc;
  return (afterMs) => (dueMs > afterMs ? dueMs : undefined);
}

function durationMs(name: string, text: string, maxSeconds: number): number {
  const [, count = "", unit = ""] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = unit === "" ? Number.NaN : Number(count) * SECONDS[unit as keyof typeof SECONDS];
  if (seconds <= maxSeconds) return seconds * 1_000;
  const what = `${name} of a schedule is a number with s, m, h or d, at most ${maxSeconds}s`;
  throw new AppError("invalid", `${what}, not ${JSON.stringify(text)}.`);
}
