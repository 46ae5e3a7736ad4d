import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { LINE_MARKS_TURN_BYTES, RECORD_MAX_BYTES } from "../../../../common/limits.ts";
import { encodingNamed } from "../../../../common/text/encodings.ts";
import { decodeText } from "../../../../common/text/text-stream.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { openTestIngest } from "../../../../test/helpers/areas/ingest.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { LineFailures } from "./line-failures.ts";
import { LineMarks, RawBytesShares } from "./line-marks.ts";
import { RuleLines } from "./lines.ts";
import type { RawRecord, Rule } from "../types.ts";

const ADMIN = testPrincipal();

/** The marks of the lines of these bytes. */
function marksOf(bytes: Buffer, name: string): Promise<LineMarks> {
  const encoding = encodingNamed(name);
  return LineMarks.of(decodeText(bytes, encoding).text, { bytes, encoding });
}

const base64 = (hex: string) => Buffer.from(hex, "hex").toString("base64");

describe("raw bytes of a line", () => {
  // Each line is a lone surrogate; the last one is cut off within a unit.
  test.each([
    ["utf-16le", "00d80d000a00", "00d80a00", "00d80d"],
    ["utf-16be", "d800000d000a", "d800000a", "d80000"],
  ])("have no line end in %s", async (name, first, second, third) => {
    const marks = await marksOf(Buffer.from(first + second + third, "hex"), name);
    expect([1, 2, 3].map((line) => marks.marksOf(line, 1)?.rawBytes)).toEqual(
      [first.slice(0, 4), second.slice(0, 4), third].map(base64),
    );
    expect(marks.marksOf(1, 2)?.rawBytes).toBe(base64(first + second.slice(0, 4)));
  });

  test("keep a zero byte that is half a unit behind a unit with the byte of a line feed", async () => {
    const marks = await marksOf(Buffer.from("410a00", "hex"), "utf-16le");
    expect(marks.marksOf(1, 1)?.rawBytes).toBe(base64("410a00"));
  });

  test("are made once for all objects of the line", async () => {
    const marks = await marksOf(Buffer.from("61ff0a62ff", "hex"), "utf-8");
    expect(marks.marksOf(1, 1)).toBe(marks.marksOf(1, 1));
    expect(marks.marksOf(2, 1)?.rawBytes).toBe(base64("62ff"));
  });
});

test("other work gets its turn while lines are looked at, malformed or not", async () => {
  const bytes = Buffer.concat([Buffer.alloc(LINE_MARKS_TURN_BYTES * 8, "a".repeat(99) + "\n"), Buffer.of(0xff)]);
  let turns = 0;
  let isOver = false;
  const others = (async () => {
    for (; !isOver; turns += 1) await setImmediate();
  })();
  await marksOf(bytes, "utf-8");
  isOver = true;
  await others;
  expect(turns).toBeGreaterThanOrEqual(7);
});

describe("the objects that a rule makes of a line share its raw bytes", () => {
  const half = {
    marks: ["cut", "malformed"],
    rawBytes: Buffer.alloc(RECORD_MAX_BYTES / 2 + 1).toString("base64"),
  } as const;

  test("up to the bytes of one record, and the first one has its own", () => {
    const shares = new RawBytesShares();
    expect(shares.take(1, half)).toBe(half);
    expect(shares.take(1, half)).toEqual({ marks: ["cut", "malformed"] });
    expect(shares.take(2, half)).toBe(half);
    expect(shares.take(3, undefined)).toBeUndefined();
    const small = { marks: ["malformed"], rawBytes: "/w==" } as const;
    for (let made = 0; made < 100; made += 1) expect(shares.take(4, small)).toBe(small);
  });

  test("also of lines that are sent", async () => {
    await using world = await openTestIngest();
    const failures = new LineFailures(realClock, "s");
    const rule = {
      class: "/matrix/line",
      supplements: {},
      forwardTo: [],
      isCostly: () => false,
      parse: (records: readonly RawRecord[]) =>
        records.flatMap(({ text }, ordinal) =>
          ["", "+1", "+2"].map((part) => ({ ok: true, ordinal, part, values: { name: text.length > 2 ? "0" : "1" } })),
        ),
    } as unknown as Rule;
    const bytes = Buffer.concat([Buffer.alloc(RECORD_MAX_BYTES / 2 + 1, 0xff), Buffer.from("\nb\xff", "latin1")]);
    const encoding = encodingNamed("utf-8");
    const { text } = decodeText(bytes, encoding);
    const marks = await LineMarks.of(text, { bytes, encoding });
    const { signal } = new AbortController();
    await new RuleLines({ objects: world.objects, clock: realClock }).store(
      { principal: ADMIN, rule, source: "s", timeMs: realClock.nowMs(), identity: "i", marks, failures, signal },
      [text.split("\n")],
    );
    const rows = await world.rows("/matrix/line");
    expect(rows.map(({ name, marks: ofRow }) => [name, ofRow])).toEqual(
      ["0", "0", "0", "1", "1", "1"].map((name) => [name, ["malformed"]]),
    );
    expect(rows.filter(({ name, _rawbytes: raw }) => name === "0" && raw !== undefined)).toHaveLength(1);
    expect(rows.filter(({ name, _rawbytes: raw }) => name === "1" && raw === base64("62ff"))).toHaveLength(3);
  });
});
