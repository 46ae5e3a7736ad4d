import { describe, expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { TIMES } from "../../test/helpers/time/times.ts";
import { clockOf, ZONES } from "../../test/helpers/time/zones.ts";
import { Zone, zoneNamed } from "./zones.ts";

const SEED = Number(process.env["ODP_TEST_SEED"] ?? 0);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const YEAR_1_MS = -62_135_596_800_000;
const YEAR_10000_MS = 253_402_300_800_000;
const CASES = 500 * TIMES;
/** One zone of so many is looked at in every run, all of them by `npm run soak`. */
const SAMPLE = 12;

function zone(name: string): Zone {
  const found = zoneNamed(name);
  if (!found) throw new Error(`no zone ${name}`);
  return found;
}

/** Half of them between 1850 and 2100, where clocks were changed. */
function randomTime(random: { next(): number }): number {
  const [fromMs, untilMs] = random.next() < 0.5 ? [YEAR_1_MS, YEAR_10000_MS] : [Date.UTC(1850, 0), Date.UTC(2100, 0)];
  return Math.floor(fromMs + random.next() * (untilMs - fromMs));
}

describe.each(ZONES)("%s", (name) => {
  test("has the offsets of ICU at random times of the years 1 to 9999", () => {
    const [clock, random] = [clockOf(name), seededRandom(SEED + 1)];
    for (let at = 0; at < CASES; at += 1) {
      const utcMs = randomTime(random);
      expect(zone(name).offsetMs(utcMs), new Date(utcMs).toISOString()).toBe(clock(utcMs) - utcMs);
    }
  });

  test("a local time that its clocks show is found, the first of two", () => {
    const random = seededRandom(SEED + 2);
    const known = zone(name);
    for (let at = 0; at < CASES; at += 1) {
      const utcMs = randomTime(random);
      const localMs = utcMs + known.offsetMs(utcMs);
      const found = known.utcOf(localMs);
      expect(found + known.offsetMs(found)).toBe(localMs);
      expect(found).toBeLessThanOrEqual(utcMs);
      expect(known.reachedMs(localMs)).toBe(found);
      if (found !== utcMs) expect(known.changeMs(found, utcMs)).toBeDefined();
    }
  });
});

test("all zones have the offsets of ICU, around each change too", () => {
  const random = seededRandom(SEED + 3);
  const all = Intl.supportedValuesOf("timeZone");
  for (const name of all.filter((_, at) => TIMES > 1 || at % SAMPLE === 0)) {
    const [known, clock] = [zone(name), clockOf(name)];
    const fromMs = randomTime(random);
    const changeMs = known.changeMs(fromMs, fromMs + 300 * 365 * DAY_MS);
    const times = changeMs === undefined ? [fromMs] : [fromMs, changeMs - 1, changeMs];
    for (const utcMs of times) expect(known.offsetMs(utcMs), `${name} ${utcMs}`).toBe(clock(utcMs) - utcMs);
  }
});

test.each([
  ["America/Recife", 2000],
  ["Asia/Gaza", 2040],
  ["Africa/Tunis", 1943],
  ["Africa/Freetown", 1939],
  ["Africa/Monrovia", 1972],
])("%s has the offsets of ICU in each hour of %i, though some of its changes are days apart", (name, year) => {
  const [known, clock] = [zone(name), clockOf(name)];
  const wrong: string[] = [];
  for (let utcMs = Date.UTC(year, 0); utcMs < Date.UTC(year + 1, 0); utcMs += HOUR_MS)
    if (known.offsetMs(utcMs) !== clock(utcMs) - utcMs) wrong.push(new Date(utcMs).toISOString());
  expect(wrong).toEqual([]);
});

test.runIf(TIMES > 1)("all zones have the offsets of ICU on every second day", { timeout: 600_000 }, () => {
  for (const name of Intl.supportedValuesOf("timeZone")) {
    const [known, clock] = [zone(name), clockOf(name)];
    for (let utcMs = Date.UTC(1880, 0); utcMs < Date.UTC(2105, 0); utcMs += 2 * DAY_MS)
      if (known.offsetMs(utcMs) !== clock(utcMs) - utcMs) expect.fail(`${name} ${new Date(utcMs).toISOString()}`);
  }
});

test("an offset that is left for a week only is noticed wherever that begins", () => {
  const missed: number[] = [];
  for (let hour = 0; hour < 50 * 24; hour += 1) {
    const fromMs = Date.UTC(2030, 0) + hour * HOUR_MS;
    const untilMs = fromMs + 7 * DAY_MS - HOUR_MS;
    const known = new Zone(0, (utcMs) => (utcMs >= fromMs && utcMs < untilMs ? HOUR_MS : 0));
    const seen = [fromMs - 1, fromMs, untilMs - 1, untilMs].map((utcMs) => known.offsetMs(utcMs));
    if (seen.join() !== [0, HOUR_MS, HOUR_MS, 0].join()) missed.push(hour);
  }
  expect(missed).toEqual([]);
});

test("a time costs few questions to ICU, those of the same weeks none, and zones do not mix", () => {
  let asked = 0;
  const changeMs = Date.UTC(2026, 2, 29, 1);
  const clocks = (by: number) => (utcMs: number) => {
    asked += 1;
    return utcMs < changeMs ? by : by + HOUR_MS;
  };
  const one = new Zone(0, clocks(HOUR_MS));
  const other = new Zone(0, clocks(-HOUR_MS));
  expect(one.offsetMs(Date.UTC(2026, 5, 1))).toBe(2 * HOUR_MS);
  expect(asked).toBeLessThan(12);
  asked = 0;
  expect(one.offsetMs(Date.UTC(2026, 5, 2))).toBe(2 * HOUR_MS);
  expect(asked).toBe(0);
  expect([changeMs - 1, changeMs].map((utcMs) => other.offsetMs(utcMs))).toEqual([-HOUR_MS, 0]);
  expect(asked).toBeLessThan(24);
  for (let day = 0; day < 365; day += 1) one.offsetMs(Date.UTC(2026, 0, 1 + day));
  expect(asked).toBeLessThan(130);
});

test("a time that clocks show twice is the first, one that they skip as if they were not set yet, or the change", () => {
  const berlin = zone("Europe/Berlin");
  expect(berlin.utcOf(Date.UTC(2026, 9, 25, 2, 30))).toBe(Date.UTC(2026, 9, 25, 0, 30));
  expect(berlin.utcOf(Date.UTC(2026, 2, 29, 2, 30))).toBe(Date.UTC(2026, 2, 29, 1, 30));
  expect(berlin.reachedMs(Date.UTC(2026, 2, 29, 2, 30))).toBe(Date.UTC(2026, 2, 29, 1));
  const lordHowe = zone("Australia/Lord_Howe");
  expect(lordHowe.reachedMs(Date.UTC(2026, 9, 4, 2, 15))).toBe(Date.UTC(2026, 9, 3, 15, 30));
  // The whole of 2011-12-30 was skipped.
  const apia = zone("Pacific/Apia");
  for (const hour of [0, 12, 23]) expect(apia.reachedMs(Date.UTC(2011, 11, 30, hour))).toBe(Date.UTC(2011, 11, 30, 10));
  // So was 1994-12-31, in the last hours of a year of the table.
  const kiritimati = zone("Pacific/Kiritimati");
  for (const hour of [0, 20])
    expect(kiritimati.reachedMs(Date.UTC(1994, 11, 31, hour))).toBe(Date.UTC(1994, 11, 31, 10));
  // Alaska had 1867-10-18 twice.
  const juneau = zone("America/Juneau");
  const [change = 0] = [juneau.changeMs(Date.UTC(1867, 0), Date.UTC(1868, 0))];
  expect(juneau.offsetMs(change) - juneau.offsetMs(change - 1)).toBe(-DAY_MS);
  expect(juneau.utcOf(change + juneau.offsetMs(change))).toBe(change - DAY_MS);
});

test("zones are called by IANA names in any case, UTC, and offsets", () => {
  const at = (name: string) => zoneNamed(name)?.offsetMs(Date.UTC(2026, 6, 1));
  expect(["UTC", "utc", "Z", "europe/berlin", "US/Eastern"].map(at)).toEqual([0, 0, 0, 2 * HOUR_MS, -4 * HOUR_MS]);
  expect(["+01", "-0330", "+05:45", "-00:00", "+23:59"].map(at)).toEqual([
    HOUR_MS,
    -3.5 * HOUR_MS,
    5.75 * HOUR_MS,
    0,
    DAY_MS - 60_000,
  ]);
  for (const name of ["", "Mars/Base", "+1", "+24:00", "+01:60", "UTC+1", "01:00", " UTC", "x".repeat(1_000)])
    expect(zoneNamed(name), name).toBeUndefined();
  expect(zoneNamed("Europe/Berlin")).toBe(zoneNamed("Europe/Berlin"));
});

test("of times beyond the calendar the offset is 0", () => {
  const berlin = zone("Europe/Berlin");
  for (const utcMs of [Infinity, -Infinity, Number.NaN, 1e300, 8.65e15]) expect(berlin.offsetMs(utcMs)).toBe(0);
  expect(berlin.offsetMs(Date.UTC(2026, 0))).toBe(HOUR_MS);
  expect([berlin.offsetMs(8.64e15), berlin.offsetMs(-8.64e15)]).toEqual([2 * HOUR_MS, 3_208_000]);
});
