import { expect, it } from "vitest";
import { classView } from "../../../../test/helpers/mql/class-views.ts";
import { compileRule } from "../definitions/compile.ts";

const access = classView("/ns/access", { path: "varchar" });

const costly = (rule: string, ...lengths: readonly number[]): boolean =>
  compileRule(`--class=/ns/access\n${rule}`, access).isCostly(
    lengths.map((length) => ({ text: "x".repeat(length), timeMs: 1, host: "", source: "", groups: {} })),
  );
const grok = (patterns: number): string =>
  `--parser=grok\n${Array.from({ length: patterns }, (_, at) => `--pattern_${at + 1}=%{WORD:path} ${at}`).join("\n")}`;

it("parsing is costly from a length of a record on that falls with the number of patterns", () => {
  expect([costly(grok(1), 3_999), costly(grok(1), 10, 4_000, 10)]).toEqual([false, true]);
  expect([costly(grok(4), 1_999), costly(grok(4), 2_000)]).toEqual([false, true]);
  expect(costly("--parser=grok\n--fields=%{WORD:path}", 4_000)).toBe(true);
});

it("parsing is never costly where the fields are as long to copy as to parse, or nothing is kept", () => {
  for (const parser of ["text\n--fields=path", "json", "csv"])
    expect(costly(`--parser=${parser}`, 200_000)).toBe(false);
  expect(costly(`--ignore\n${grok(1)}`, 200_000)).toBe(false);
});
