import { expect, test } from "vitest";
import { CLI_STREAM_FIRST_ROWS } from "../../../common/limits.ts";
import { EnvelopeRows } from "./envelope.ts";
import { PLAIN } from "./paint.ts";
import type { Format } from "./names.ts";
import { rendered, type Rendering } from "./rendered.ts";
import { streamedText } from "./streamed.ts";

const ROWS = Array.from({ length: CLI_STREAM_FIRST_ROWS + 700 }, (_, at) => ({
  name: `row ${at}`,
  text: 'a "b", ]}{[ \\ é\n',
  nested: { list: [at, [{}]] },
  ...(at % 3 === 0 && { third: at }),
}));
const END = { meta: { more: true }, warnings: ["w"] };

async function* pieces(text: string, bytes: number): AsyncGenerator<Uint8Array> {
  const all = Buffer.from(text);
  for (let at = 0; at < all.length; at += bytes) yield await Promise.resolve(all.subarray(at, at + bytes));
}

async function streamed(rows: readonly unknown[], rendering: Rendering, bytes = 65_536): Promise<string> {
  const text = JSON.stringify({ status: "ok", message: rows, ...END });
  let all = "";
  for await (const part of streamedText(new EnvelopeRows().rows(pieces(text, bytes)), rendering)) all += part;
  return all;
}

test.each<Format>(["json", "yaml", "csv", "name", "table", "wide"])(
  "streamed rows are the same text as all at once: %s",
  async (format) => {
    for (const fields of [undefined, ["third", "name"]])
      for (const rows of [ROWS, ROWS.slice(0, 5), [], [1, "a", null, [2]]]) {
        const rendering = { format, paint: PLAIN, ...(rows.length > 4 && { fields }) };
        expect(await streamed(rows, rendering)).toBe(rendered(rows, rendering));
      }
  },
);

test("rows are read however the answer is cut into pieces, and its end is known after them", async () => {
  const text = JSON.stringify({ status: "ok", message: ROWS.slice(0, 9), ...END }, undefined, 1);
  for (const bytes of [1, 2, 3, 7, 1_000_000]) {
    const envelope = new EnvelopeRows();
    const read: unknown[] = [];
    for await (const rows of envelope.rows(pieces(text, bytes))) read.push(...rows);
    expect([read, envelope.end]).toEqual([ROWS.slice(0, 9), { status: "ok", ...END }]);
  }
});

test("whole numbers beyond 2^53 keep their digits", async () => {
  const text = '{"status":"ok","message":[{"n":9007199254740993}]}';
  for await (const rows of new EnvelopeRows().rows(pieces(text, 9))) expect(rows).toEqual([{ n: "9007199254740993" }]);
});

test.each(["", "{", '{"status":"ok","message":[{"a":1}', '{"status":"ok","message":[{"a":1},', "<html>".repeat(99)])(
  "an answer that broke off is a failure: %j",
  async (text) => {
    const read = async () => {
      for await (const rows of new EnvelopeRows().rows(pieces(text, 5))) expect(rows).toEqual([{ a: 1 }]);
    };
    await expect(read()).rejects.toMatchObject({ code: "unavailable" });
  },
);

test("a table keeps the widths of its first rows, and shows times once their columns are known", async () => {
  let asked = 0;
  const timesOf = () => Promise.resolve((asked++, new Set(["at"])));
  const rows = Array.from({ length: CLI_STREAM_FIRST_ROWS + 1 }, (_, n) => ({
    name: n < CLI_STREAM_FIRST_ROWS ? "abc" : "abcdef",
    at: 1_000,
  }));
  for (const [length, width, last] of [
    [rows.length, undefined, "abcdef  1970-01-01T00:00:01Z"],
    [rows.length, 40, "abc…  1970-01-01T00:00:01Z"],
    [3, undefined, "abc   1970-01-01T00:00:01Z"],
  ] as const) {
    let all = "";
    const batches = (async function* () {
      for (const row of rows.slice(0, length)) yield await Promise.resolve([row]);
    })();
    for await (const text of streamedText(batches, { format: "table", paint: PLAIN, width }, timesOf)) all += text;
    const lines = all.trimEnd().split("\n");
    expect([lines.length, lines.at(-1)]).toEqual([length + 2, last]);
  }
  expect(asked).toBe(3);
});

test("a later column of CSV or a table and an unknown field are failures, not left out", async () => {
  await expect(streamed([...ROWS, { late: 1 }], { format: "table", paint: PLAIN })).rejects.toThrow("the column late");
  const csv = { format: "csv", paint: PLAIN } as const;
  await expect(streamed([...ROWS, { late: 1 }], csv)).rejects.toThrow("A later row has the column late");
  await expect(streamed(ROWS, { ...csv, fields: ["nme"] })).rejects.toThrow("did you mean name?");
});
