import { describe, expect, it } from "vitest";
import { WRITE_AHEAD_MAX_MS } from "../../../../common/limits.ts";
import { classView } from "../../../../test/helpers/mql/class-views.ts";
import { checkRuleText, compileRule } from "./compile.ts";
import { readRuleText } from "./options.ts";
import { idleTimes, refusedTime } from "./times.ts";
import { NO_SUPPLEMENTS } from "./supplements.ts";
import type { RawRecord, Rule } from "../types.ts";
import { withZones, zoneFor } from "./zones.ts";

const logged = classView("/ns/log", { at: "timestamp", until: "timestamp", note: "varchar" });
const READ = Date.parse("2026-11-29T12:00:00Z");

function record(text: string, more: Partial<RawRecord> = {}): RawRecord {
  return { text, timeMs: READ, host: "web-1", source: "/var/log/a.log", groups: { day: "2026-11-28" }, ...more };
}

function parsed(options: string, text: string, more: Partial<RawRecord> = {}): unknown {
  const rule = compileRule(`--class=/ns/log\n${options}`, logged);
  const [one] = rule.parse([record(text, more)]);
  if (!one?.ok) return one?.error;
  const values = Object.entries(one.values).map(([name, value]) => [
    name,
    typeof value === "number" ? new Date(value).toISOString() : value,
  ]);
  const { timeMs, timeFault } = one;
  return {
    ...Object.fromEntries(values),
    ...(timeMs !== undefined && { vtime: new Date(timeMs).toISOString() }),
    ...(timeFault !== undefined && { timeFault }),
  };
}

const CSV = "--parser=csv\n--fields=at,note";
const JSON_RULE = "--parser=json";

describe("a timestamp column of a rule", () => {
  it.each([
    ["", "Nov  7 10:15:02,x", "2026-11-07T10:15:02.000Z"],
    ["", "1772359499,x", "2026-03-01T10:04:59.000Z"],
    ["", "1772359499250,x", "2026-03-01T10:04:59.250Z"],
    ["--time_unit=s", "5,x", "1970-01-01T00:00:05.000Z"],
    ["--time_layout=d.M.yyyy HH:mm", "7.5.2026 10:15,x", "2026-05-07T10:15:00.000Z"],
    ["--time_layout=yyyy-MM-dd\n--time_layout=d.M.yyyy", "7.5.2026,x", "2026-05-07T00:00:00.000Z"],
    ["--time_zone=Europe/Berlin", "2026-07-01 12:00:00,x", "2026-07-01T10:00:00.000Z"],
    ["--time_zone=Europe/Berlin", "2026-07-01 12:00:00Z,x", "2026-07-01T12:00:00.000Z"],
    ["--time_zone=+02:00", "2026-07-01 12:00:00,x", "2026-07-01T10:00:00.000Z"],
  ])("%j reads %s", (options, line, at) => {
    expect(parsed(`${CSV}\n${options}`, line)).toEqual({ at, note: "x" });
  });

  it("has numbers of JSON by their magnitude, the time of reading as it is, and other columns as they are", () => {
    expect(parsed(JSON_RULE, '{"at":1772359499,"until":1772359499123456789,"note":"1772359499"}')).toEqual({
      at: "2026-03-01T10:04:59.000Z",
      until: "2026-03-01T10:04:59.123Z",
      note: "1772359499",
    });
    expect(parsed(`${JSON_RULE}\n--var_at=_time`, '{"note":"x"}', { timeMs: 5 })).toMatchObject({
      at: "1970-01-01T00:00:00.005Z",
    });
    expect(parsed(`${JSON_RULE}\n--time_unit=s\n--var_at=_time`, '{"note":"x"}')).toMatchObject({
      at: "2026-11-29T12:00:00.000Z",
    });
  });

  it.each([
    ["", "Mai  7 10:15:02,x", 'The column at: "Mai  7 10:15:02" names the month "Mai", which is none in English.'],
    ["", "soon,x", 'The column at: "soon" is in no format that is known without a layout (--time_layout).'],
    ["--time_layout=HH:mm", "soon,x", 'The column at: "soon" is no time of the layout HH:mm.'],
  ])("%j refuses %s and says why", (options, line, error) => {
    expect(parsed(`${CSV}\n${options}`, line)).toBe(error);
  });

  it("takes the zone of the record where the rule has none", () => {
    const line = "2026-07-01 12:00:00,x";
    expect(parsed(CSV, line, { zone: "Europe/Berlin" })).toMatchObject({ at: "2026-07-01T10:00:00.000Z" });
    const own = parsed(`${CSV}\n--time_zone=Asia/Tokyo`, line, { zone: "Europe/Berlin" });
    expect(own).toMatchObject({ at: "2026-07-01T03:00:00.000Z" });
  });

  it("is left to a body as the parser found it", () => {
    const rule = compileRule(`--class=/ns/log\n${CSV}\nreturn 1`, logged);
    expect(rule.parse([record("soon,x")])).toMatchObject([{ ok: true, values: { at: "soon" } }]);
  });
});

describe("--time", () => {
  it("gives the record the time of a field, read as the columns are", () => {
    const options = `--parser=csv\n--fields=when,note\n--time=when\n--time_zone=Europe/Berlin`;
    expect(parsed(options, "2026-07-01 12:00:00,x")).toEqual({ note: "x", vtime: "2026-07-01T10:00:00.000Z" });
    const nested = `${JSON_RULE}\n--time=OBJECT.event.at`;
    expect(parsed(nested, '{"note":"x","event":{"at":1772359499}}')).toMatchObject({
      vtime: "2026-03-01T10:04:59.000Z",
    });
    expect(parsed(`${CSV}\n--time=day`, ",x")).toMatchObject({ vtime: "2026-11-28T00:00:00.000Z" });
  });

  it("leaves a record whose field is absent or cannot be read its time of reading, and says so", () => {
    const options = `--parser=csv\n--fields=when,note\n--time=when`;
    expect(parsed(options, ",x")).toEqual({ note: "x", timeFault: "It has no field when with its time." });
    expect(parsed(options, "soon,x")).toEqual({
      note: "x",
      timeFault: 'The field when: "soon" is in no format that is known without a layout (--time_layout).',
    });
    expect(parsed(`${JSON_RULE}\n--time=a`, '{"note":"x","a":[1]}')).toEqual({
      note: "x",
      timeFault: "The field a: [1] is neither a text nor a number.",
    });
  });

  it("is no field that no column takes", () => {
    const unused: string[] = [];
    const rule = compileRule("--class=/ns/log\n--parser=csv\n--fields=when,note\n--time=when", logged);
    rule.parse([record("2026-07-01,x")], (field) => unused.push(field));
    expect(unused).toEqual([]);
  });

  it("is refused for a class of objects, whose time is that of their last write", () => {
    const entity = { ...logged, kind: "entity" as const };
    expect(() => compileRule(`--class=/ns/log\n${CSV}\n--time=at`, entity)).toThrow(
      /--time=at is for classes of records/,
    );
  });

  it("is refused before 1970 and further ahead of the clock than any write may be", () => {
    expect(refusedTime(READ + WRITE_AHEAD_MAX_MS, READ)).toBeUndefined();
    expect(refusedTime(READ + WRITE_AHEAD_MAX_MS + 1, READ)).toBe(
      "Its time 2026-11-29T12:05:00.001Z is more than 5 minutes ahead of the controller's clock (2026-11-29T12:00:00.000Z).",
    );
    expect(refusedTime(0, READ)).toBeUndefined();
    expect(refusedTime(-1, READ)).toBe("Its time 1969-12-31T23:59:59.999Z is before 1970.");
  });
});

describe("zones of policies and hosts", () => {
  const zones = { host: "Asia/Tokyo", policies: { "/ns/p": "Europe/Berlin" } };
  const rule = (text: string): Rule => ({
    key: "/ns/rules/r",
    digest: "d",
    text,
    supplements: NO_SUPPLEMENTS,
    ...compileRule(text, logged),
  });

  it("are pinned with a rule that needs them: the policy's before the host's", () => {
    const plain = rule(`--class=/ns/log\n${CSV}`);
    const zoned = withZones(plain, zones);
    expect(zoned.digest).not.toBe(withZones(plain, { policies: {} }).digest);
    expect([zoneFor(zoned, "/ns/p"), zoneFor(zoned, "/ns/q")]).toEqual(["Europe/Berlin", "Asia/Tokyo"]);
    expect(zoneFor(plain, "/ns/p")).toBeUndefined();
  });

  it("leave a rule as it is that names its zone", () => {
    const own = rule(`--class=/ns/log\n${CSV}\n--time_zone=UTC`);
    expect(withZones(own, zones)).toBe(own);
  });
});

describe("options of times", () => {
  it.each([
    ["--time_zone=Mars/Base", /There is no time zone "Mars\/Base"/],
    ["--time_zone=", /There is no time zone ""/],
    ["--time_zone=CST", /There is no time zone "CST"/],
    ["--time_zone=UTC\n--time_zone=UTC", /--time_zone stands twice/],
    ["--time_unit=minutes", /--time_unit is s, ms, us, ns, not minutes/],
    ["--time_layout=yyyy-MM-ddTHH", /has T, which means nothing/],
    ["--time=", /--time names the field/],
    ["--time_layout=HH:mm\n".repeat(17), /more than 16 options --time_layout/],
  ])("%j is refused when the rule is stored", (options, message) => {
    expect(() => checkRuleText(`--class=/ns/later\n--parser=json\n${options}`)).toThrow(message);
  });

  it("may stand in comments of JavaScript", () => {
    const { options } = readRuleText("// --language=js\n// --time=when\n//--header\n// time=none\nreturn;");
    expect(options.map(({ name, value }) => [name, value])).toEqual([
      ["language", "js"],
      ["time", "when"],
      ["header", ""],
    ]);
  });

  it("without a column of times and without --time have no effect, which is told", () => {
    const rule = readRuleText("--class=/ns/a\n--parser=json\n--time_zone=UTC");
    const without = classView("/ns/a", { note: "varchar" });
    expect(idleTimes(rule, without)).toEqual(["Line 3: --time_zone has no effect: the class has no timestamp column."]);
    expect(idleTimes(rule, logged)).toEqual([]);
    expect(idleTimes(readRuleText("--class=/ns/a\n--time=x\n--time_zone=UTC"), without)).toEqual([]);
    const grok = readRuleText("--class=/ns/a\n--parser=grok\n--pattern_1=%{OWN:note:timestamp}\n--time_zone=UTC");
    expect(idleTimes(grok, without)).toEqual([]);
    const own = readRuleText("--class=/ns/a\n--parser=grok\n--pattern_1=%{OWN}\n--time_zone=UTC");
    expect(idleTimes(own, without, { OWN: "%{DATA:note:timestamp}" })).toEqual([]);
    expect(idleTimes(own, without)).toHaveLength(1);
  });
});
