import { describe, expect, test } from "vitest";
import { jitterMs, lastTime, nextTimes, parseSchedule, type Schedule } from "./index.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

const parsed = (text: string, zone = "UTC"): Schedule => {
  const schedule = parseSchedule(text, zone);
  if (!schedule) throw new Error("it is empty");
  return schedule;
};
const from = (text: string, after: string, count = 3, zone = "UTC"): readonly string[] =>
  nextTimes(parsed(text, zone), Date.parse(after), count).map((ms) => new Date(ms).toISOString().replace(".000Z", "Z"));

describe("times of", () => {
  test("five fields, with or without the word", () => {
    const due = ["2026-03-01T00:05:00Z", "2026-03-01T00:10:00Z", "2026-03-01T00:15:00Z"];
    for (const text of ["cron 0/5 * * * *", "0/5 * * * *", " cron  */5  * * * * ", "*/5 * * * *;;missed=all"])
      expect(from(text, "2026-03-01T00:00:00Z")).toEqual(due);
  });

  test("words of crontabs, in the zone of the schedule", () => {
    const after = "2026-02-11T10:30:00Z";
    expect(from("@hourly", after, 1)).toEqual(["2026-02-11T11:00:00Z"]);
    expect(from("@daily; tz=Europe/Berlin", after, 1)).toEqual(["2026-02-11T23:00:00Z"]);
    expect(from("cron @midnight", after, 1)).toEqual(["2026-02-12T00:00:00Z"]);
    expect(from("@weekly", after, 1)).toEqual(["2026-02-15T00:00:00Z"]);
    expect(from("@monthly", after, 1)).toEqual(["2026-03-01T00:00:00Z"]);
    for (const yearly of ["@yearly", "@annually"]) expect(from(yearly, after, 1)).toEqual(["2027-01-01T00:00:00Z"]);
  });

  test("n/m, which counts from n", () => {
    expect(from("5/20 * * * *", "2026-03-01T00:00:00Z", 4)).toEqual([
      "2026-03-01T00:05:00Z",
      "2026-03-01T00:25:00Z",
      "2026-03-01T00:45:00Z",
      "2026-03-01T01:05:00Z",
    ]);
    expect(from("0 6/8 * * *", "2026-03-01T00:00:00Z", 3)).toEqual([
      "2026-03-01T06:00:00Z",
      "2026-03-01T14:00:00Z",
      "2026-03-01T22:00:00Z",
    ]);
  });

  test("six fields, the first of which are seconds", () => {
    expect(from("cron 0/30 0 12 * * MON-FRI", "2026-03-06T12:00:00Z", 3)).toEqual([
      "2026-03-06T12:00:30Z",
      "2026-03-09T12:00:00Z",
      "2026-03-09T12:00:30Z",
    ]);
  });

  test("a day of the month and one of the week, either of which is enough", () => {
    expect(from("0 0 13 * 5", "2026-03-01T00:00:00Z", 3)).toEqual([
      "2026-03-06T00:00:00Z",
      "2026-03-13T00:00:00Z",
      "2026-03-20T00:00:00Z",
    ]);
  });

  test("every, counted from 1970", () => {
    for (const [text, periodMs] of [
      ["every 30s", 30_000],
      ["every 5m", 5 * MINUTE_MS],
      ["every 2h", 120 * MINUTE_MS],
      ["every 7d", 7 * DAY_MS],
    ] as const) {
      const next = parsed(text).next(Date.UTC(2026, 2, 1, 1, 2, 3)) ?? 0;
      expect(next % periodMs).toBe(0);
      expect(parsed(text).next(next)).toBe(next + periodMs);
      expect(parsed(text).next(next - 1)).toBe(next);
    }
  });

  test("at: once, in the zone of the schedule unless the time has its own", () => {
    expect(from("at 2026-07-01 12:00", "2026-01-01T00:00:00Z", 3, "Europe/Berlin")).toEqual(["2026-07-01T10:00:00Z"]);
    expect(from("at 2026-07-01;tz=Asia/Tokyo", "2026-01-01T00:00:00Z")).toEqual(["2026-06-30T15:00:00Z"]);
    for (const text of ["2026-07-01T12:00:00Z", "2026-07-01 14:00+02:00", String(Date.UTC(2026, 6, 1, 12))])
      expect(from(`at ${text};tz=Asia/Tokyo`, "2026-01-01T00:00:00Z")).toEqual(["2026-07-01T12:00:00Z"]);
    expect(from("at 2026-07-01 12:00", "2026-07-01T12:00:00Z")).toEqual([]);
  });

  test("a time that clocks skip: once, at the moment they are set forward", () => {
    const berlin = { zone: "Europe/Berlin", before: "2026-03-28T12:00:00Z", forward: "2026-03-29T01:00:00Z" };
    expect(from("30 2 * * *", berlin.before, 2, berlin.zone)).toEqual([berlin.forward, "2026-03-30T00:30:00Z"]);
    expect(from("*/20 2,3 * * *", berlin.before, 3, berlin.zone)).toEqual([
      berlin.forward,
      "2026-03-29T01:20:00Z",
      "2026-03-29T01:40:00Z",
    ]);
    expect(from("at 2026-03-29 02:30", berlin.before, 2, berlin.zone)).toEqual([berlin.forward]);
    // A whole day that never was.
    expect(from("0 9 * * *", "2011-12-29T12:00:00Z", 3, "Pacific/Apia")).toEqual([
      "2011-12-29T19:00:00Z",
      "2011-12-30T10:00:00Z",
      "2011-12-30T19:00:00Z",
    ]);
  });

  test("a time that clocks show twice: once, at its first occurrence", () => {
    const before = "2026-10-24T12:00:00Z";
    expect(from("30 2 * * *", before, 2, "Europe/Berlin")).toEqual(["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    expect(from("0 */2 * * *", "2026-10-24T22:30:00Z", 2, "Europe/Berlin")).toEqual([
      "2026-10-25T00:00:00Z",
      "2026-10-25T03:00:00Z",
    ]);
    expect(from("*/30 2 * * *", before, 3, "Europe/Berlin")).toEqual([
      "2026-10-25T00:00:00Z",
      "2026-10-25T00:30:00Z",
      "2026-10-26T01:00:00Z",
    ]);
  });

  test("every hour, which go by the time that passes", () => {
    for (const hours of ["*", "0-23", "*/1", "?"])
      expect(from(`0 ${hours} * * *`, "2026-10-24T23:30:00Z", 4, "Europe/Berlin")).toEqual([
        "2026-10-25T00:00:00Z",
        "2026-10-25T01:00:00Z",
        "2026-10-25T02:00:00Z",
        "2026-10-25T03:00:00Z",
      ]);
    expect(from("0/30 * * * *", "2026-10-03T14:45:00Z", 4, "Australia/Lord_Howe")).toEqual([
      "2026-10-03T15:00:00Z",
      "2026-10-03T15:30:00Z",
      "2026-10-03T16:00:00Z",
      "2026-10-03T16:30:00Z",
    ]);
  });
});

test("options are read in any order; what is not said is the default", () => {
  expect(parsed("every 1m")).toMatchObject({ missed: "last", overlap: "skip", jitterMs: 0 });
  expect(parsed("every 1m; jitter=2m ;overlap=queue;missed=all; tz = Europe/Berlin;")).toMatchObject({
    missed: "all",
    overlap: "queue",
    jitterMs: 120_000,
  });
  for (const empty of ["", "  ", ";"]) expect(parseSchedule(empty, "UTC")).toBeUndefined();
});

test.each([
  ["* * * *", "five or six fields"],
  ["* * * * * * *", "five or six fields"],
  ["@often", "five or six fields"],
  ["0 6 * * * tz=UTC", "a ; before it, so also tz="],
  ["every 1m; tz=UTC missed=last", "a ; before it, so also missed="],
  ["cron", "five or six fields"],
  ["60 * * * *", "60"],
  ["*/0 * * * *", "stepping"],
  ["5-1 * * * *", "5-1"],
  ["a * * * *", "illegal characters"],
  ["every", "every of a schedule is a number with s, m, h or d"],
  ["every 0s", "at least 1s"],
  ["every 5", "every of a schedule is a number with s, m, h or d"],
  ["every 1.5h", "every of a schedule is a number with s, m, h or d"],
  ["every 367d", "at most"],
  ["at noon", "at of a schedule is followed by"],
  ["at 2026-02-30", "at of a schedule is followed by"],
  ["every 1m;tz=Mars/Base", "no time zone"],
  ["every 1m;missed=some", "skip, last, all"],
  ["every 1m;overlap=never", "skip, queue, allow"],
  ["every 1m;jitter=soon", "jitter of a schedule is a number"],
  ["every 1m;jitter=1s;jitter=2s", "says jitter twice"],
  ["every 1m;zone=UTC", "no option of a schedule"],
  [";missed=all", "times before its options"],
  ["x".repeat(501), "at most 500 characters"],
])("%s is refused: %s", (text, reason) => {
  expect(() => parseSchedule(text, "UTC")).toThrow(reason);
});

test("a schedule whose day never comes has no times", () => {
  expect(from("0 0 31 2 *", "2026-03-01T00:00:00Z")).toEqual([]);
});

test("the last time of a span is found, however long ago and however many lie before it", () => {
  const afterMs = Date.UTC(2026, 0, 1);
  for (const [text, untilMs] of [
    ["* * * * * *", afterMs + 5 * DAY_MS + 7],
    ["every 1s", afterMs + 5 * DAY_MS],
    ["0 3 * * *", afterMs + 5 * DAY_MS],
    ["0 0 1 * *", afterMs + 200 * DAY_MS],
    ["0 0 29 2 *", afterMs + 4_000 * DAY_MS],
  ] as const) {
    const schedule = parsed(text);
    const last = lastTime(schedule, { afterMs, untilMs }) ?? 0;
    expect(last).toBeGreaterThan(afterMs);
    expect(last).toBeLessThanOrEqual(untilMs);
    expect(schedule.next(last)).toBeGreaterThan(untilMs);
  }
  expect(lastTime(parsed("0 0 1 * *"), { afterMs, untilMs: afterMs + 9 * DAY_MS })).toBeUndefined();
});

test("jitter is the same for the same firing, within its bound, and spread over it", () => {
  const schedule = parsed("every 1m;jitter=100s");
  const delays = Array.from({ length: 10_000 }, (_, at) => jitterMs(schedule, `job${at % 100}@d`, at * MINUTE_MS));
  expect(jitterMs(schedule, "job7@d", 7 * MINUTE_MS)).toBe(delays[7]);
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...delays)).toBeLessThan(100_000);
  const tenths = Array.from(
    { length: 10 },
    (_, tenth) => delays.filter((ms) => Math.floor(ms / 10_000) === tenth).length,
  );
  expect(Math.min(...tenths)).toBeGreaterThan(800);
  expect(jitterMs(parsed("every 1m"), "job@d", 1)).toBe(0);
});
