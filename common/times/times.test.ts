import { describe, expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { parseTimestamp } from "../timestamps.ts";
import { layoutOf, readTime, timeZoneOf, unitNamed, UTC, type TimeContext } from "./index.ts";

const NEAR = "2026-11-29T12:00:00Z";

function context(zone = "UTC", near = NEAR): TimeContext {
  return { zone: timeZoneOf(zone), nearMs: Date.parse(near) };
}

function read(text: string | number, { layout, unit, zone, near }: Record<string, string | undefined> = {}): unknown {
  const writing = { layouts: layout === undefined ? [] : [layoutOf(layout)], unit: unitNamed(unit ?? "") };
  const time = readTime(text, writing, context(zone, near));
  return typeof time === "number" ? new Date(time).toISOString().replace(".000Z", "Z") : time.reason;
}

describe("without a layout", () => {
  test.each([
    ["Nov 29 11:59:58", "2026-11-29T11:59:58Z"],
    ["Nov  7 10:15:02", "2026-11-07T10:15:02Z"],
    ["Nov 29 11:59:58.250", "2026-11-29T11:59:58.250Z"],
    ["Nov 29 2025 11:59:58", "2025-11-29T11:59:58Z"],
    ["Nov 29 11:59:58 2025", "2025-11-29T11:59:58Z"],
    ["2026-11-29T12:00:00.003123Z", "2026-11-29T12:00:00.003Z"],
    ["2026-11-29T12:00:00+01:00", "2026-11-29T11:00:00Z"],
    ["2026-11-29T12:00:00+0100", "2026-11-29T11:00:00Z"],
    ["2026-11-29T12:00:00-05", "2026-11-29T17:00:00Z"],
    ["10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"],
    ["2026/11/29 12:00:00", "2026-11-29T12:00:00Z"],
    ["2026-11-29 12:00:00,123", "2026-11-29T12:00:00.123Z"],
    ["2026/11/29 12:00:00.000123", "2026-11-29T12:00:00Z"],
    ["2026-11-29 12:00:00.123 UTC", "2026-11-29T12:00:00.123Z"],
    ["2026-11-29 12:00:00.123 GMT", "2026-11-29T12:00:00.123Z"],
    ["2026-11-29 12:00:00 America/New_York", "2026-11-29T17:00:00Z"],
    ["Sun, 29 Nov 2026 12:00:00 GMT", "2026-11-29T12:00:00Z"],
    ["Sun Nov 29 12:00:00.5 2026", "2026-11-29T12:00:00.500Z"],
    ["Sun Nov 29 12:00:00 UTC 2026", "2026-11-29T12:00:00Z"],
    ["Nov 29, 2026 10:15:02 PM", "2026-11-29T22:15:02Z"],
    ["Nov 29, 2026 12:15:02\u202fam", "2026-11-29T00:15:02Z"],
    ["2026-11-29 12:00 America/New_York", "2026-11-29T17:00:00Z"],
    ["29-Nov-2026 12:00:00.250", "2026-11-29T12:00:00.250Z"],
    ["2026-W48-7T12:00:00Z", "2026-11-29T12:00:00Z"],
    ["2026W48", "2026-11-23T00:00:00Z"],
    ["2026-333T12:00", "2026-11-29T12:00:00Z"],
    ["20261129T120000Z", "2026-11-29T12:00:00Z"],
    ["2026-11-29", "2026-11-29T00:00:00Z"],
    ["2016-12-31 23:59:60", "2017-01-01T00:00:00Z"],
    ["0001-01-01", "0001-01-01T00:00:00Z"],
    ["Sept. 7 10:15:02", "2026-09-07T10:15:02Z"],
  ])("%s is read", (text, time) => {
    expect(read(text)).toBe(time);
  });

  test.each([
    ["2026-11-29 12:00:00.123 CET", 'names the zone "CET", which means several'],
    ["2026-11-29 12:00:00 Europe/Nowhere", 'names the zone "Europe/Nowhere", which is not known'],
    ["Mai  7 10:15:02", 'names the month "Mai", which is none in English'],
    ["7 août 2026 10:15:02", 'names the month "août", which is none in English'],
    ["10/Okt/2000:13:55:36 +0200", 'names the month "Okt"'],
    ["2026-02-29", "has no day 29 in that month"],
    ["2026-13-01", "has no month 13"],
    ["2026-W54", "has no week 54 of 2026"],
    ["2026-366", "has no day 366 of 2026"],
    ["2026-11-29 24:00:00", "has no hour 24"],
    ["2026-11-29 10:60:00", "has no minute 60"],
    ["2026-11-29 10:00:61", "has no second 61"],
    ["Nov 29, 2026 13:15:02 PM", "has no hour 13 of 12"],
    ["11/29/2026 12:00:00", "is in no format that is known without a layout"],
    ["yesterday", "is in no format"],
    ["2026", "is in no format"],
    ["", "is in no format"],
    [`Nov 29 10:00:00${" ".repeat(300)}x`, "has more than 200 characters"],
  ])("%s is refused by name", (text, reason) => {
    expect(read(text)).toContain(reason);
  });

  test("what any timestamp of a statement may be is read as there", () => {
    const random = seededRandom(7);
    const any = (list: readonly string[]): string => list[Math.floor(random.next() * list.length)] ?? "";
    for (let round = 0; round < 5_000; round += 1) {
      const date = `${any(["0099", "1969", "2026"])}-${any(["1", "02", "12"])}-${any(["7", "29", "31"])}`;
      const clock = any(["", " 9:05", "T23:59:59", " 10:00:60", " 00:00:00.123456", " 10:15:02,5"]);
      const text = `${date}${clock}${any(["", "Z", " Z", "+0130", "-02:00"])}`;
      const expected = parseTimestamp(text);
      if (expected !== undefined) expect(read(text), text).toBe(new Date(expected).toISOString().replace(".000Z", "Z"));
    }
  });
});

describe("what a text leaves open", () => {
  test.each([
    ["Dec 31 23:59:59", "2027-01-01T00:00:05Z", "2026-12-31T23:59:59Z"],
    ["Jan  1 00:00:01", "2026-12-31T23:59:58Z", "2027-01-01T00:00:01Z"],
    ["Nov  7 10:00:00", "2027-02-01T00:00:00Z", "2026-11-07T10:00:00Z"],
    ["Feb 29 10:00:00", "2025-06-01T00:00:00Z", "2024-02-29T10:00:00Z"],
    ["Feb 29 10:00:00", "2027-06-01T00:00:00Z", "2028-02-29T10:00:00Z"],
    ["Feb 29 10:00:00", "2103-06-01T00:00:00Z", "2104-02-29T10:00:00Z"],
  ])("the year of %s, read at %s, is the nearest", (text, near, time) => {
    expect(read(text, { near })).toBe(time);
  });

  test("the day of a time without a date is the nearest, in its zone", () => {
    const layout = "HH:mm";
    expect(read("23:59", { layout, near: "2026-11-30T00:01:00Z" })).toBe("2026-11-29T23:59:00Z");
    expect(read("00:01", { layout, near: "2026-11-29T23:59:00Z" })).toBe("2026-11-30T00:01:00Z");
    expect(read("00:30", { layout, zone: "Asia/Tokyo", near: "2026-11-29T15:31:00Z" })).toBe("2026-11-29T15:30:00Z");
    expect(read("00:30", { layout, zone: "Asia/Tokyo", near: "2026-11-29T10:00:00Z" })).toBe("2026-11-29T15:30:00Z");
  });

  test("no year has such a day", () => {
    expect(read("Feb 30 10:00:00")).toBe("has no day 30 in that month");
  });
});

describe("counts from 1970", () => {
  test.each([
    [1_772_359_499, "2026-03-01T10:04:59Z"],
    ["1772359499", "2026-03-01T10:04:59Z"],
    ["1772359499.25", "2026-03-01T10:04:59.250Z"],
    [1_772_359_499.25, "2026-03-01T10:04:59.250Z"],
    [1_772_359_499_250, "2026-03-01T10:04:59.250Z"],
    ["1772359499250123", "2026-03-01T10:04:59.250Z"],
    ["1772359499250999999", "2026-03-01T10:04:59.250Z"],
    [0, "1970-01-01T00:00:00Z"],
    [-1, "1969-12-31T23:59:59Z"],
    ["-10000.5", "1969-12-31T21:13:19.500Z"],
    [99_999_999_999, "5138-11-16T09:46:39Z"],
    [100_000_000_000, "1973-03-03T09:46:40Z"],
  ])("%s is in the unit that its digits tell", (value, time) => {
    expect(read(value)).toBe(time);
  });

  test.each([
    ["5", "s", "1970-01-01T00:00:05Z"],
    [1_500, "ms", "1970-01-01T00:00:01.500Z"],
    ["1772359499250", "us", "1970-01-21T12:19:19.499Z"],
    ["-1", "us", "1969-12-31T23:59:59.999Z"],
    ["1500000000", "ns", "1970-01-01T00:00:01.500Z"],
    ["999999", "ns", "1970-01-01T00:00:00Z"],
    [1.5, "ns", "1970-01-01T00:00:00Z"],
  ])("%s in %s", (value, unit, time) => {
    expect(read(value, { unit })).toBe(time);
  });

  test("texts that fit no layout are counts where a unit is given, and only there", () => {
    const layout = "yyyy-MM-dd";
    expect(read("1700000000", { layout, unit: "s" })).toBe("2023-11-14T22:13:20Z");
    expect(read("2023-11-14", { layout, unit: "s" })).toBe("2023-11-14T00:00:00Z");
    expect(read("1700000000", { layout })).toBe("is no time of the layout yyyy-MM-dd");
    expect(read("yesterday", { layout, unit: "s" })).toBe("is no time of the layout yyyy-MM-dd");
    const writing = { layouts: [layout, "d.M.yyyy"].map(layoutOf), unit: "s" } as const;
    expect(readTime("1700000000", writing, context())).toBe(1_700_000_000_000);
  });

  test("digits that fit a layout are no count, even where there is no such day", () => {
    const layout = "yyyyMMdd";
    expect(read("20261399", { layout, unit: "s" })).toBe("has no month 13");
    expect(read(20_261_129, { layout })).toBe("2026-11-29T00:00:00Z");
    expect(read(20_261_399, { layout })).toBe("has no month 13");
    expect(read(1_772_359_499, { layout })).toBe("2026-03-01T10:04:59Z");
    expect(read(20_261_129, { layout, unit: "s" })).toBe("1970-08-23T12:05:29Z");
  });

  test("what no calendar has is refused", () => {
    expect(read("9999999999999999", { unit: "s" })).toBe("is beyond all times");
    expect(read(NaN)).toBe("is beyond all times");
    expect(read(1e300)).toBe("is beyond all times");
  });
});

describe("a layout", () => {
  test.each([
    ["yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-03-01T10:04:59.250+01:00", "2026-03-01T09:04:59.250Z"],
    ["yyyy-MM-dd HH:mm:ss.SSS", "2026-03-01 10:04:59,250", "2026-03-01T10:04:59.250Z"],
    ["yyyy-MM-dd HH:mm:ss,f", "2026-03-01 10:04:59.123456789", "2026-03-01T10:04:59.123Z"],
    ["MMM d HH:mm:ss", "Nov  7 10:15:02", "2026-11-07T10:15:02Z"],
    ["MMM d HH:mm:ss", "Nov 17 10:15:02", "2026-11-17T10:15:02Z"],
    ["[dd/MMM/yyyy:HH:mm:ss Z]", "[10/Oct/2000:13:55:36 -0700]", "2000-10-10T20:55:36Z"],
    ["EEEE, d MMMM yy h:mm a", "Sunday, 1 March 26 12:05 am", "2026-03-01T00:05:00Z"],
    ["M/d/yyyy h:mm:ss a", "3/1/2026 12:05:00 PM", "2026-03-01T12:05:00Z"],
    ["yyyyMMddHHmmss", "20260301100459", "2026-03-01T10:04:59Z"],
    ["YYYY-'W'ww-e", "2026-W48-7", "2026-11-29T00:00:00Z"],
    ["yyyy-DDD", "2026-333", "2026-11-29T00:00:00Z"],
    ["yyyy-MM-dd HH:mm:ss z", "2026-07-01 12:00:00 Europe/Berlin", "2026-07-01T10:00:00Z"],
    ["d MMM yyyy 'at' H 'o''clock'", "29 Nov 2026 at 7 o'clock", "2026-11-29T07:00:00Z"],
    ["ss", undefined, "is incomplete: a second s needs a minute m"],
  ])("%s", (layout, text, time) => {
    if (text === undefined) expect(() => layoutOf(layout)).toThrow(time);
    else expect(read(text, { layout })).toBe(time);
  });

  test.each([
    ["d MMM yyyy", "7 Mai 2026", 'names the month "Mai", which is none in English'],
    ["EEE d MMM yyyy", "Son 7 May 2026", 'names the weekday "Son", which is none in English'],
    ["yyyy-MM-dd HH:mm z", "2026-11-29 12:00 CST", 'names the zone "CST", which means several'],
    ["yyyy-MM-dd", "2026-1-01", "is no time of the layout yyyy-MM-dd"],
    ["yyyy-MM-dd", "2026-01-01 ", undefined],
    ["hh:mm a", "13:00 AM", "has no hour 13 of 12"],
    ["yyyy-MM-dd", "2026-02-29", "has no day 29 in that month"],
  ])("%s refuses %s", (layout, text, reason) => {
    if (reason === undefined) expect(read(text, { layout })).toBe("2026-01-01T00:00:00Z");
    else expect(read(text, { layout })).toContain(reason);
  });

  test.each([
    ["", "is empty"],
    ["yyyy-MM-ddTHH:mm", "has T, which means nothing: text stands in quotes, as 'T'"],
    ["yyyyy", "has yyyyy, which means nothing"],
    ["yyyy-MM-dd 'at", "has a ' without another"],
    ["YYYY-MM-dd", "YYYY is the year of a week w; the year of a date is yyyy"],
    ["YYYY-ww DDD", "has YYYY, the year of a week, and another date"],
    ["dd HH:mm", "a day d needs a month M"],
    ["hh:mm", "an hour h of twelve needs a"],
    ["HH:mm a", "AM or PM a needs an hour h"],
    ["yyyy yy", "has a year twice, the second time as yy"],
    ["ww", "a week w needs its year YYYY"],
    ["'x'", "has no letters that mean something"],
    ["y".repeat(201), "has more than 200 characters"],
  ])("%j is refused when it is made", (layout, reason) => {
    expect(() => layoutOf(layout)).toThrow(reason);
  });

  test("of several the first that fits counts, and a reason with a name is told", () => {
    const writing = { layouts: ["yyyy-MM-dd", "d MMM yyyy"].map(layoutOf) };
    expect(readTime("7 May 2026", writing, context())).toBe(Date.parse("2026-05-07T00:00:00Z"));
    expect(readTime("7 Mai 2026", writing, context())).toMatchObject({ reason: expect.stringContaining("Mai") });
    const other = { layouts: writing.layouts.toReversed() };
    expect(readTime("7 Mai 2026", other, context())).toMatchObject({ reason: expect.stringContaining("Mai") });
    expect(readTime("x", writing, context())).toMatchObject({ reason: "is no time of any layout of the rule" });
  });
});

describe("a zone", () => {
  test.each([
    ["Europe/Berlin", "2026-07-01 12:00", "2026-07-01T10:00:00Z"],
    ["utc", "2026-07-01 12:00", "2026-07-01T12:00:00Z"],
    ["Z", "2026-07-01 12:00", "2026-07-01T12:00:00Z"],
    ["+01", "2026-07-01 12:00", "2026-07-01T11:00:00Z"],
    ["-0330", "2026-07-01 12:00", "2026-07-01T15:30:00Z"],
    ["+05:45", "2026-07-01 12:00", "2026-07-01T06:15:00Z"],
    ["CET", "2026-07-01 12:00", "2026-07-01T10:00:00Z"],
  ])("%s", (zone, text, time) => {
    expect(read(text, { zone })).toBe(time);
  });

  test.each(["CST", "IST", "BST", "Mars/Base", "", "+19:00", "+01:60", "+1", "Europe/Berlin ", "../x"])(
    "%j is none",
    (name) => {
      expect(() => timeZoneOf(name)).toThrow(/There is no time zone/);
    },
  );

  test("where clocks are set forward, the clock that was not set is meant; where back, the nearer time", () => {
    const zone = "Europe/Berlin";
    expect(read("2026-03-29 02:30", { zone })).toBe("2026-03-29T01:30:00Z");
    expect(read("2026-10-25 02:30", { zone, near: "2026-10-25T00:30:05Z" })).toBe("2026-10-25T00:30:00Z");
    expect(read("2026-10-25 02:30", { zone, near: "2026-10-25T01:30:05Z" })).toBe("2026-10-25T01:30:00Z");
    expect(read("2026-10-25 02:30", { zone, near: "2026-10-25T01:00:00Z" })).toBe("2026-10-25T00:30:00Z");
  });

  // Half hours, quarters, changes of half an hour and of a whole day, months of Ramadan.
  const ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Africa/Casablanca",
    "America/Sao_Paulo",
    "Asia/Tehran",
    "Antarctica/Troll",
  ];

  test.each(ZONES)("10^4 times as the clocks of %s show them are read as they were", (name) => {
    const random = seededRandom(ZONES.indexOf(name));
    const format = new Intl.DateTimeFormat("sv-SE", {
      timeZone: name,
      dateStyle: "short",
      timeStyle: "medium",
    });
    const zone = timeZoneOf(name);
    const [first, last] = [Date.parse("1970-01-02T00:00:00Z"), Date.parse("2100-01-01T00:00:00Z")];
    for (let round = 0; round < 10_000; round += 1) {
      const time = Math.floor((first + random.next() * (last - first)) / 1_000) * 1_000;
      const text = format.format(time);
      // A line is read as soon as it is written.
      expect(readTime(text, { layouts: [] }, { zone, nearMs: time }), `${text} ${name}`).toBe(time);
    }
  });

  test("both hours of a change are read as they were, minute by minute", () => {
    for (const name of ["Europe/Berlin", "Australia/Lord_Howe"]) {
      const format = new Intl.DateTimeFormat("sv-SE", { timeZone: name, dateStyle: "short", timeStyle: "medium" });
      const zone = timeZoneOf(name);
      for (const day of ["2026-10-24T18:00:00Z", "2026-04-04T06:00:00Z", "2026-03-28T18:00:00Z"]) {
        for (let minute = 0; minute < 24 * 60; minute += 1) {
          const time = Date.parse(day) + minute * 60_000;
          expect(readTime(format.format(time), { layouts: [] }, { zone, nearMs: time + 1_000 })).toBe(time);
        }
      }
    }
  });
});

test("a time without a zone is of UTC by default", () => {
  expect(readTime("2026-11-29 12:00", { layouts: [] }, { zone: UTC, nearMs: 0 })).toBe(Date.parse("2026-11-29T12:00Z"));
});
