import { expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { PARSE_PIECE_MAX_CHARACTERS, PARSE_SLICE_MAX_MS, PARSE_THREAD_TIMEOUT_MS } from "../../../../common/limits.ts";
import { TestClock } from "../../../../test/helpers/time/runtime.ts";
import type { Workers } from "../../../workers/index.ts";
import { readRuleText } from "../definitions/options.ts";
import { NO_SUPPLEMENTS } from "../definitions/supplements.ts";
import { ParseSlices } from "./slices.ts";
import type { RuleTasks } from "../tasks.ts";
import { timesOf } from "../definitions/times.ts";
import type { OnUnused, ParsedRecord, RawRecord, Rule } from "../types.ts";

const PLACE = { timeMs: 0, host: "h", source: "s", groups: {} };

/** A rule that needs so long for each record, and notes how many it was given at once. */
function slowRule(clock: TestClock, msPerRecord: number) {
  const given: number[] = [];
  const parse = (records: readonly RawRecord[]): readonly ParsedRecord[] => {
    given.push(records.length);
    clock.advance(records.length * msPerRecord);
    return records.flatMap(({ text }, ordinal) =>
      text === "" ? [] : [{ ok: true, ordinal, values: { text } } as const],
    );
  };
  const supplements = NO_SUPPLEMENTS;
  const known = {
    key: "/m/rules/slow",
    digest: "d",
    text: "",
    supplements,
    class: "/m/c",
    columns: ["text"],
    timeColumns: [],
    times: timesOf(readRuleText("")),
  };
  return { ...known, body: undefined, forwardTo: [], isCostly: () => false, parse, given };
}

test("others get their turn between long records, also of several entries", async () => {
  const clock = new TestClock();
  const rule = slowRule(clock, PARSE_SLICE_MAX_MS);
  const slices = new ParseSlices({ clock, tenant: "m" });
  const long = { text: "x".repeat(PARSE_PIECE_MAX_CHARACTERS + 1), ...PLACE };
  for (let entry = 0; entry < 3; entry++) {
    let turned = false;
    setImmediate(() => (turned = true));
    await slices.parse(rule, [long, long]);
    expect(turned).toBe(true);
  }
  expect(rule.given).toEqual([1, 1, 1, 1, 1, 1]);
});

test("short records are parsed many at a time, and each keeps its place", async () => {
  const clock = new TestClock();
  const rule = slowRule(clock, 0);
  const texts = Array.from({ length: 1_000 }, (_, at) => (at % 10 === 0 ? "" : `record ${at} `.padEnd(80, "x")));
  const parsed = await new ParseSlices({ clock, tenant: "m" }).parse(
    rule,
    texts.map((text) => ({ text, ...PLACE })),
  );
  expect(rule.given.length).toBeLessThan(20);
  expect(parsed).toHaveLength(900);
  for (const record of parsed)
    expect(record).toEqual({ ok: true, ordinal: record.ordinal, values: { text: texts[record.ordinal] } });
});

/** A rule for which a record is costly that begins with `!`; parsing it is left to threads. */
const COSTLY: Rule = {
  ...slowRule(new TestClock(), 0),
  isCostly: (records) => records.some(({ text }) => text.startsWith("!")),
  parse(records, onUnused) {
    if (COSTLY.isCostly(records)) throw new Error("parsed here");
    return parsedBy("here", records, onUnused);
  },
};

function parsedBy(where: string, records: readonly RawRecord[], onUnused?: OnUnused): readonly ParsedRecord[] {
  return records.map(({ text }, ordinal) => {
    onUnused?.(where);
    return { ok: true, ordinal, values: { text, where } };
  });
}

type Calls = Parameters<Workers<RuleTasks>["run"]>[];

function threads(calls: Calls = []): Workers<RuleTasks> {
  const run = (...call: Calls[number]) => {
    calls.push(call);
    const unused: string[] = [];
    if (!("records" in call[1])) throw new Error("Records alone are parsed here.");
    return Promise.resolve({ parsed: parsedBy("there", call[1].records, (field) => unused.push(field)), unused });
  };
  return { run: run as Workers<RuleTasks>["run"] };
}

const fill = (text: string): RawRecord => ({ text: text.padEnd(PARSE_PIECE_MAX_CHARACTERS, "x"), ...PLACE });

test("costly pieces are parsed by a thread, the others here, and each record keeps its place", async () => {
  const calls: Calls = [];
  const { signal } = new AbortController();
  const slices = new ParseSlices({ clock: new TestClock(), tenant: "m", workers: threads(calls), signal });
  const records = [fill("a"), fill("!b"), fill("c"), fill("!d")];
  const unused: string[] = [];
  const parsed = await slices.parse(COSTLY, records, (field) => unused.push(field));
  const wheres = ["here", "there", "here", "there"];
  const values = records.map(({ text }, at) => ({ text, where: wheres[at] }));
  expect(parsed).toEqual(values.map((row, ordinal) => ({ ok: true, ordinal, values: row })));
  expect(unused).toEqual(wheres);
  const { digest, text, class: path, columns, timeColumns, supplements } = COSTLY;
  const rule = { digest, text, class: path, columns, timeColumns, supplements };
  expect(calls).toEqual(
    [1, 3].map((at) => [
      "parseRecords",
      { rule, records: [records[at]] },
      { tenant: "m", timeoutMs: PARSE_THREAD_TIMEOUT_MS, signal },
    ]),
  );
});

const NO_THREAD = ["limited", "unavailable"] as const;
const ENDED = ["deadline", "too_large", "internal", "cancelled"] as const;

test.each(NO_THREAD)("a costly record that gets no thread (%s) is parsed here", async (code) => {
  const workers = { run: () => Promise.reject(new AppError(code, "No.")) };
  const rule: Rule = { ...COSTLY, parse: (records) => parsedBy("here", records) };
  const [parsed] = await new ParseSlices({ clock: new TestClock(), tenant: "m", workers }).parse(rule, [fill("!a")]);
  expect(parsed).toMatchObject({ ok: true, values: { where: "here" } });
});

test.each(ENDED)("a record that ends its thread (%s) is not tried here", async (code) => {
  const workers = { run: () => Promise.reject(new AppError(code, "No.")) };
  const parsed = new ParseSlices({ clock: new TestClock(), tenant: "m", workers }).parse(COSTLY, [fill("!a")]);
  await expect(parsed).rejects.toMatchObject({ code });
});

test("without threads everything is parsed here", async () => {
  const rule: Rule = { ...COSTLY, parse: (records) => parsedBy("here", records) };
  const slices = new ParseSlices({ clock: new TestClock(), tenant: "m" });
  expect(await slices.parse(rule, [fill("!a")])).toMatchObject([{ values: { where: "here" } }]);
});
