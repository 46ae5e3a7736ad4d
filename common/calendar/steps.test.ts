import { describe, expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { TIMES } from "../../test/helpers/time/times.ts";
import { clockOf, ZONES } from "../../test/helpers/time/zones.ts";
import { CalendarSteps, unitNamed, widthOf } from "./steps.ts";
import { zoneNamed } from "./zones.ts";

const SEED = Number(process.env["ODP_TEST_SEED"] ?? 0);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const YEAR_1_MS = -62_135_596_800_000;
const YEAR_10000_MS = 253_402_300_800_000;
const CASES = 200 * TIMES;
const CALENDAR = ["1 day", "1 week", "1 month", "1 quarter", "1 year"] as const;
const CLOCK = [
  "1 second",
  "5 minutes",
  "7 minutes",
  "30 minutes",
  "45 minutes",
  "50 minutes",
  "1 hour",
  "2 hours",
  "6 hours",
  "7 hours",
  "24 hours",
];

function steps(text: string, name: string): CalendarSteps {
  const [width, zone] = [widthOf(text), zoneNamed(name)];
  if (!width || !zone) throw new Error(`no steps of ${text} in ${name}`);
  return new CalendarSteps(width, zone);
}

/** Starts of all steps that times of the span lie in. */
function starts(text: string, zone: string, [fromMs, untilMs]: readonly [number, number]): readonly string[] {
  const own = steps(text, zone);
  const found: number[] = [];
  for (let at = own.startMs(fromMs); at < untilMs; at = own.nextMs(at)) found.push(at);
  const clock = clockOf(zone);
  return found.map((ms) => new Date(clock(ms)).toISOString().slice(5, 16));
}

/** The local date that a step of the calendar begins with. */
function beginning(text: string, localMs: number): number {
  const date = new Date(localMs);
  date.setUTCHours(0, 0, 0, 0);
  if (text === "1 week") date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
  if (text === "1 month") date.setUTCDate(1);
  if (text === "1 quarter") date.setUTCMonth(date.getUTCMonth() - (date.getUTCMonth() % 3), 1);
  if (text === "1 year") date.setUTCMonth(0, 1);
  return date.getTime();
}

function randomTime(random: { next(): number }): number {
  const isLately = random.next() < 0.7;
  const [fromMs, untilMs] = isLately ? [Date.UTC(1850, 0), Date.UTC(2100, 0)] : [YEAR_1_MS, YEAR_10000_MS];
  return Math.floor(fromMs + random.next() * (untilMs - fromMs));
}

/** Times around changes of the clocks, where there are any. */
function nearChange(name: string, random: { next(): number }): number {
  const timeMs = randomTime(random);
  const changeMs = zoneNamed(name)?.changeMs(timeMs, timeMs + 400 * DAY_MS);
  return changeMs === undefined ? timeMs : Math.floor(changeMs + (random.next() - 0.5) * 3 * DAY_MS);
}

describe.each(ZONES)("%s", (zone) => {
  test("days, weeks, months, quarters and years begin with the local date of ICU, at random times", () => {
    const [clock, random] = [clockOf(zone), seededRandom(SEED + 4)];
    for (let at = 0; at < CASES; at += 1) {
      const utcMs = at % 2 === 0 ? randomTime(random) : nearChange(zone, random);
      for (const text of CALENDAR) {
        const begin = beginning(text, clock(utcMs));
        const startMs = steps(text, zone).startMs(utcMs);
        const words = `${text} of ${new Date(utcMs).toISOString()}`;
        expect(startMs, words).toBeLessThanOrEqual(utcMs);
        // A midnight that was skipped is the moment of the change.
        expect(clock(startMs), words).toBeGreaterThanOrEqual(begin);
        expect(clock(startMs - 1), words).toBeLessThan(begin);
      }
    }
  });

  test("the step behind one is the first that begins later, without a gap and without one twice", () => {
    const random = seededRandom(SEED + 5);
    for (let at = 0; at < CASES / 5; at += 1) {
      const utcMs = nearChange(zone, random);
      for (const text of [...CALENDAR, ...CLOCK]) {
        const own = steps(text, zone);
        const startMs = own.startMs(utcMs);
        const nextMs = own.nextMs(startMs);
        const words = `${text} of ${new Date(utcMs).toISOString()}`;
        expect(startMs, words).toBeLessThanOrEqual(utcMs);
        expect(own.startMs(startMs), words).toBe(startMs);
        expect(nextMs, words).toBeGreaterThan(startMs);
        expect(own.startMs(nextMs), words).toBe(nextMs);
        for (let part = 1; part < 8; part += 1) {
          const insideMs = Math.floor(startMs + ((nextMs - startMs) * part) / 8);
          expect(own.startMs(insideMs), `${words}, ${insideMs}`).toBeLessThanOrEqual(startMs);
        }
      }
    }
  });

  test("what was asked before changes no answer", () => {
    const random = seededRandom(SEED + 6);
    for (const text of [...CALENDAR, ...CLOCK]) {
      const often = steps(text, zone);
      for (let at = 0; at < CASES / 20; at += 1) {
        const utcMs = nearChange(zone, random);
        for (const near of [utcMs, utcMs + HOUR_MS, utcMs - 1])
          expect(often.startMs(near)).toBe(steps(text, zone).startMs(near));
      }
    }
  });
});

describe("in Berlin", () => {
  const SHORT = [Date.UTC(2026, 2, 28, 23), Date.UTC(2026, 2, 29, 22)] as const;
  const LONG = [Date.UTC(2026, 9, 24, 22), Date.UTC(2026, 9, 25, 23)] as const;

  test("days have 23 and 25 hours, each of which is a step", () => {
    expect(starts("1 hour", "Europe/Berlin", SHORT)).toHaveLength(23);
    expect(starts("1 hour", "Europe/Berlin", LONG)).toHaveLength(25);
    expect(starts("30 minutes", "Europe/Berlin", LONG)).toHaveLength(50);
    expect(starts("1 day", "Europe/Berlin", SHORT)).toEqual(["03-29T00:00"]);
    expect(starts("24 hours", "Europe/Berlin", LONG)).toEqual(["10-25T00:00"]);
  });

  test("steps of six hours begin at 0, 6, 12 and 18 o'clock on them too", () => {
    for (const [span, day] of [
      [SHORT, "03-29"],
      [LONG, "10-25"],
    ] as const)
      expect(starts("6 hours", "Europe/Berlin", span)).toEqual(
        ["00", "06", "12", "18"].map((hour) => `${day}T${hour}:00`),
      );
  });

  test("of steps of two hours the one in which the clocks change is shorter or longer", () => {
    const [short, long] = [SHORT, LONG].map((span) => starts("2 hours", "Europe/Berlin", span));
    expect(short?.slice(0, 3)).toEqual(["03-29T00:00", "03-29T03:00", "03-29T04:00"]);
    expect(long?.slice(0, 3)).toEqual(["10-25T00:00", "10-25T02:00", "10-25T04:00"]);
  });

  test("steps that do not divide an hour begin anew where the clocks are set back", () => {
    const [before = "", at, after] = starts("7 minutes", "Europe/Berlin", LONG).slice(25);
    expect([before.slice(6) < "03:00", at, after]).toEqual([true, "10-25T02:00", "10-25T02:05"]);
  });
});

test("where clocks are set back by half an hour, an hour lasts longer and half an hour comes twice", () => {
  const span = [Date.UTC(2026, 3, 4, 14), Date.UTC(2026, 3, 4, 17)] as const;
  const lordHowe = (text: string) => starts(text, "Australia/Lord_Howe", span);
  expect(lordHowe("1 hour")).toEqual(["04-05T01:00", "04-05T02:00", "04-05T03:00"]);
  expect(lordHowe("30 minutes").slice(0, 4)).toEqual(["04-05T01:00", "04-05T01:30", "04-05T01:30", "04-05T02:00"]);
});

test("a day that was skipped has no step", () => {
  const span = [Date.UTC(2011, 11, 29, 10), Date.UTC(2012, 0, 1, 10)] as const;
  expect(starts("1 day", "Pacific/Apia", span)).toEqual(["12-29T00:00", "12-31T00:00", "01-01T00:00"]);
});

test("several units are counted from 1970, weeks from its first Monday", () => {
  const start = (text: string, timeMs: number, zone = "UTC") =>
    new Date(steps(text, zone).startMs(timeMs)).toISOString();
  expect(start("3 months", Date.UTC(2026, 4, 31))).toBe("2026-04-01T00:00:00.000Z");
  expect(start("1 quarter", Date.UTC(2026, 4, 31))).toBe("2026-04-01T00:00:00.000Z");
  expect(start("5 months", Date.UTC(1970, 6, 1))).toBe("1970-06-01T00:00:00.000Z");
  expect(start("10 years", Date.UTC(2026, 4, 31))).toBe("2020-01-01T00:00:00.000Z");
  expect(start("2 weeks", Date.UTC(1970, 0, 18))).toBe("1970-01-05T00:00:00.000Z");
  expect(start("2 weeks", Date.UTC(1970, 0, 4))).toBe("1969-12-22T00:00:00.000Z");
  expect(start("2 days", Date.UTC(1969, 11, 31))).toBe("1969-12-30T00:00:00.000Z");
  expect(start("1 year", YEAR_1_MS + 40 * DAY_MS)).toBe("0001-01-01T00:00:00.000Z");
  expect(start("1 month", YEAR_10000_MS - 1)).toBe("9999-12-01T00:00:00.000Z");
  expect(start("1 day", Date.UTC(2026, 0, 1), "+05:45")).toBe("2025-12-31T18:15:00.000Z");
  expect(start("36 hours", Date.UTC(1970, 0, 3))).toBe("1970-01-02T12:00:00.000Z");
});

test("widths are whole numbers above 0 of a known unit", () => {
  expect(widthOf(" 5  Minutes ")).toEqual({ count: 5, unit: "minute" });
  expect(unitNamed("QUARTERS")).toBe("quarter");
  for (const text of ["", "day", "0 days", "-1 day", "1.5 days", "1 fortnight", "1 day ago", "x day"])
    expect(widthOf(text), text).toBeUndefined();
});

test("times without a calendar date have no step in a zone", () => {
  for (const timeMs of [1e300, -Infinity, Number.NaN])
    expect(steps("1 day", "Europe/Berlin").startMs(timeMs)).toBeNaN();
  expect(steps("1 month", "UTC").startMs(1e300)).toBeNaN();
  expect(steps("1 hour", "Europe/Berlin").nextMs(8.64e15)).toBeNaN();
  // Nor have steps that would begin before the calendar does.
  expect(steps("1 day", "Europe/Berlin").startMs(-8.64e15)).toBeNaN();
  for (const width of ["1000000000000 minutes", `${Number.MAX_SAFE_INTEGER} weeks`])
    for (const zone of ["UTC", "Europe/Berlin"]) expect(steps(width, zone).startMs(YEAR_1_MS), width).toBeNaN();
});
