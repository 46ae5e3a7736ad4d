import { describe, expect, it } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { searchesOf } from "../../test/helpers/mql/searches.ts";
import { ARE_TIMES_BOUND, expectWithin } from "../../test/helpers/time/times.ts";
import { DELIMITER_WINDOW_BYTES, RECORD_MAX_BYTES } from "../limits.ts";
import { encodingNamed } from "../text/encodings.ts";
import { compileCutter, RecordStream, type CutRules } from "./records.ts";

/** A quarter of a record shows as well how the searches grow with it. */
const SLOW_CHARACTERS = ARE_TIMES_BOUND ? RECORD_MAX_BYTES : RECORD_MAX_BYTES / 4;

describe("records of a stream", () => {
  it("are its lines without a delimiter, line breaks and empty lines left out", () => {
    expect(cutAll({}, "a\r\nb\n\nc")).toEqual(["a", "b", "c"]);
  });

  it("are taken in whole code units: half of one stays for what follows", () => {
    const cutter = compileCutter({ encoding: encodingNamed("utf-16le") });
    expect(cutter.cut(Buffer.alloc(5, "a"), { skipping: true })).toEqual({ pieces: [], consumed: 4, skipping: true });
    const { pieces, consumed } = cutter.cut(Buffer.alloc(RECORD_MAX_BYTES + 3, "a"));
    expect({ pieces, consumed }).toEqual({
      pieces: [{ start: 0, end: RECORD_MAX_BYTES, cut: true }],
      consumed: RECORD_MAX_BYTES + 2,
    });
  });

  it("begin at a delimiter, which may span several lines' record", () => {
    const text = "2026 one\n  at x\n2026 two\n  at y\n";
    expect(cutAll({ delimiter: "^\\d{4} " }, text)).toEqual(["2026 one\n  at x", "2026 two\n  at y"]);
    expect(cutAll({ delimiter: "<e>" }, "<e>1</e><e>2</e>")).toEqual(["<e>1</e>", "<e>2</e>"]);
  });

  it("end at a delimiter with delimitereol", () => {
    expect(cutAll({ delimiter: "</e>", delimitereol: true }, "<e>1</e>\n<e>2</e>rest")).toEqual([
      "<e>1</e>",
      "<e>2</e>",
      "rest",
    ]);
    expect(cutAll({ delimiter: "^--$", delimitereol: true }, "a\nb\n--\nc\n--\n")).toEqual(["a\nb\n--", "c\n--"]);
  });

  it("find a delimiter beyond ASCII between bytes that are no valid text", () => {
    const bytes = Buffer.concat([Buffer.from("ä→1"), Buffer.from([0xff, 0xfe]), Buffer.from("→2")]);
    const records = new RecordStream(compileCutter({ delimiter: "→" }));
    const cut = [...records.push(bytes), ...records.end()];
    expect(cut.map(({ offset }) => offset)).toEqual([0, 2, 8]);
  });

  it("come out the same however the stream is chopped", () => {
    const rules: CutRules[] = [{}, { delimiter: "^x" }, { delimiter: ";+", delimitereol: true }, { delimiter: "x" }];
    const text = "x1;;\nab\r\nx2;x3\n\n;x4\nx5ü;";
    for (const rule of rules) {
      const whole = cutAll(rule, text);
      for (const size of [1, 2, 3, 5, 7])
        expect(cutAll(rule, text, size), `${JSON.stringify(rule)} by ${size}`).toEqual(whole);
    }
  });

  it.each([
    { delimiter: "ab", delimitereol: true },
    { delimiter: "a+" },
    { delimiter: "\\n\\d{4}-" },
    { delimiter: "x|b$|c" },
    { delimiter: "\\ba" },
  ])("come out the same as if the delimiter $delimiter was looked for in all of the text at once", (rule) => {
    const random = seededRandom(3);
    const text = Array.from(
      { length: 9_000 },
      () => ["a", "b", " ", "\n2026-", "yyyyyyyyyyyy"][Math.floor(random.next() * 5)] ?? "",
    ).join("");
    const places = [...text.matchAll(new RegExp(rule.delimiter, "g"))].map(
      (match) => match.index + (rule.delimitereol ? match[0].length : 0),
    );
    const expected = [0, ...places]
      .map((place, at) => text.slice(place, places[at]).replace(/^\n+|\n+$/g, ""))
      .filter((record) => record !== "");
    expect(cutAll(rule, text)).toEqual(expected);
  });

  it.each(["a+b", "x[^]*y|x", "(?:x|xx)+y", "x.{0,15}y|x"])(
    "are found by %s in windows of a text made to slow it down, however many there are",
    (delimiter) => {
      const before = process.cpuUsage();
      for (const piece of ["a", "x"]) {
        const text = piece.repeat(SLOW_CHARACTERS);
        const { characters } = searchesOf(() => expect(cutAll({ delimiter }, text).length).toBeGreaterThan(0));
        expect(characters).toBeLessThan(2 * text.length * DELIMITER_WINDOW_BYTES);
      }
      // Quadratic time is minutes.
      expectWithin(process.cpuUsage(before).user, 20_000_000);
    },
  );

  it("keep the beginning of one that is too long, marked, and go on with the next", () => {
    const long = "y".repeat(RECORD_MAX_BYTES * 3);
    const records = new RecordStream(compileCutter({}));
    const cut = [];
    for (const chunk of chopped(`a\n${long}\nb\n`, 100_000)) cut.push(...records.push(chunk));
    expect(cut.map((record) => [record.bytes.length, record.cut])).toEqual([
      [1, false],
      [RECORD_MAX_BYTES, true],
      [1, false],
    ]);
    expect(cut[2]?.offset).toBe(2 + long.length + 1);
  });
});

function cutAll(rules: CutRules, text: string, size = text.length): string[] {
  const records = new RecordStream(compileCutter(rules));
  const cut = chopped(text, size).flatMap((chunk) => records.push(chunk));
  return [...cut, ...records.end()].map(({ bytes }) => Buffer.from(bytes).toString());
}

function chopped(text: string, size: number): Uint8Array[] {
  const bytes = new TextEncoder().encode(text);
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
  return chunks;
}
