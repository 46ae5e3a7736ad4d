import { expect, test } from "vitest";
import { TIMES } from "../../test/helpers/time/times.ts";
import { nextTimes, parseSchedule } from "./index.ts";

/**
 * Twenty years of every zone whose clocks are set forward or back, beside a walk over all minutes around those moments
 * that knows nothing but what `Intl` says the clocks show. `npm run soak` goes through all zones; else it is some.
 */

const all = TIMES > 1;
/** One in so many names of zones is looked at without `all`: their changes are found by formatting every half day. */
const NAMES_SHARE = 20;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const FROM_MS = Date.UTC(2006, 0, 1);
const UNTIL_MS = Date.UTC(2026, 0, 1);
const SAMPLE = 7;
/** Changes that are walked around in a sampled zone. */
const SAMPLED_CHANGES = 4;

/** Days that never were, where a zone went over the date line. */
const SKIPPED_DAYS: Readonly<Record<string, number>> = {
  "Pacific/Apia": Date.UTC(2011, 11, 30) / DAY_MS,
  "Pacific/Fakaofo": Date.UTC(2011, 11, 30) / DAY_MS,
};

interface Pattern {
  readonly text: string;
  readonly minutes: (minute: number) => boolean;
  readonly hours: (hour: number) => boolean;
  readonly passing?: true;
}

const PATTERNS: readonly Pattern[] = [
  { text: "30 2 * * *", minutes: (minute) => minute === 30, hours: (hour) => hour === 2 },
  { text: "0 0 * * *", minutes: (minute) => minute === 0, hours: (hour) => hour === 0 },
  { text: "0,45 0-3,23 * * *", minutes: (minute) => minute % 45 === 0, hours: (hour) => hour < 4 || hour === 23 },
  { text: "5/20 0/2 * * *", minutes: (minute) => minute % 20 === 5, hours: (hour) => hour % 2 === 0 },
  { text: "*/15 * * * *", minutes: (minute) => minute % 15 === 0, hours: () => true, passing: true },
];

/** One zone for each list of changes there is, with the list. */
function zonesWithChanges(): readonly (readonly [zone: string, changes: readonly number[]])[] {
  const byChanges = new Map<string, readonly [string, readonly number[]]>();
  for (const zone of Intl.supportedValuesOf("timeZone").filter((_, at) => all || at % NAMES_SHARE === 0)) {
    const changes = changesOf(zone);
    const key = changes.join();
    if (changes.length > 0 && !byChanges.has(key)) byChanges.set(key, [zone, changes]);
  }
  return [...byChanges.values()];
}

/** Noons and midnights after which the offset is not the one of half a day before. */
function changesOf(zone: string): readonly number[] {
  const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
  const changes: number[] = [];
  let before = format.format(FROM_MS).split(", ")[1];
  for (let ms = FROM_MS; ms < UNTIL_MS; ms += DAY_MS / 2) {
    const now = format.format(ms).split(", ")[1];
    if (now !== before) changes.push(ms);
    before = now;
  }
  return changes;
}

/** Converts a moment to what the clocks of a zone show then, as if that were UTC. */
function clockOf(zone: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    ...({ year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric" } as const),
  });
  return (ms) => {
    const [month = 0, day = 0, year = 0, hour = 0, minute = 0] = (format.format(ms).match(/\d+/g) ?? []).map(Number);
    return Date.UTC(year, month - 1, day, hour, minute);
  };
}

function matches({ hours, minutes }: Pattern, localMs: number): boolean {
  const local = new Date(localMs);
  return hours(local.getUTCHours()) && minutes(local.getUTCMinutes());
}

/** From midnight to midnight around a change, a day before and after it. */
function walked(
  pattern: Pattern,
  clock: (ms: number) => number,
  { fromMs, untilMs }: { fromMs: number; untilMs: number },
) {
  const due: number[] = [];
  let furthest = clock(fromMs);
  for (let ms = fromMs + MINUTE_MS; ms <= untilMs; ms += MINUTE_MS) {
    const shown = clock(ms);
    if (pattern.passing) {
      if (matches(pattern, shown)) due.push(ms);
      continue;
    }
    // All that the clocks show now for the first time, or went over.
    let isDue = false;
    for (let local = furthest + MINUTE_MS; local <= shown; local += MINUTE_MS) isDue ||= matches(pattern, local);
    if (isDue) due.push(ms);
    furthest = Math.max(furthest, shown);
  }
  return due;
}

const zones = zonesWithChanges();
const chosen = all ? zones : zones.filter((_, at) => at % Math.ceil(zones.length / SAMPLE) === 0);

test("there are zones whose clocks are set forward and back", () => {
  expect(zones.length).toBeGreaterThan(all ? 50 : 5);
  expect(chosen.length).toBeGreaterThanOrEqual(5);
});

test.each(chosen)("around every change of %s no time is missed and none doubled", (zone, changes) => {
  const clock = clockOf(zone);
  const step = all ? 1 : Math.ceil(changes.length / SAMPLED_CHANGES);
  for (const changeMs of changes.filter((_, at) => at % step === 0))
    for (const pattern of PATTERNS) {
      const span = { fromMs: changeMs - 36 * HOUR_MS, untilMs: changeMs + 26 * HOUR_MS };
      const expected = walked(pattern, clock, span);
      const schedule = parseSchedule(`${pattern.text};tz=${zone}`, "UTC");
      expect(schedule && nextTimes(schedule, span.fromMs, expected.length), pattern.text).toEqual(expected);
    }
});

test.each(chosen)("in twenty years of %s a daily time comes once for every day there was", (zone) => {
  const clock = clockOf(zone);
  const schedule = parseSchedule("30 2 * * *", zone);
  const days: number[] = [];
  for (let next = schedule?.next(FROM_MS); next !== undefined && next < UNTIL_MS; next = schedule?.next(next))
    days.push(Math.floor(clock(next) / DAY_MS));
  const [first = 0] = days;
  const skipped = SKIPPED_DAYS[zone];
  // Its time comes with the beginning of the next day.
  const expected = Array.from({ length: days.length }, (_, at) =>
    first + at === skipped ? first + at + 1 : first + at,
  );
  expect(days).toEqual(expected);
});
