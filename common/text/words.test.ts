import { expect, test } from "vitest";
import { FUZZY_WORDS_MAX, TEXT_WORDS_MAX } from "../limits.ts";
import { isWithin } from "./distance.ts";
import { wantedNearly, wantedPhrase, wantedPrefix, wantedWord, wantedWords } from "./words.ts";

const TEXT = "Kernel: 内存不足, OOM_killer ended web-1 again";

test("words are found wherever they stand, by their tokens or by a pattern", () => {
  for (const wanted of ["again kernel", "web-1", "内存", "存", "oom*", "*killer", "KERNEL 不足"])
    expect(wantedWords(wanted).isIn(TEXT), wanted).toBe(true);
  for (const wanted of ["web-2", "1-web", "killer", "足内", "kern", "again never"])
    expect(wantedWords(wanted).isIn(TEXT), wanted).toBe(false);
});

test("what is told to the index is in every text that is found", () => {
  expect(wantedWords("disk web-1 a* 盘").indexed).toEqual(["disk", "web-1"]);
  expect(wantedPhrase("disk is full").indexed).toEqual(["disk is full"]);
  expect(wantedPrefix("disk is fu").indexed).toEqual(["disk", "is"]);
  expect(wantedNearly("disk").indexed).toEqual([]);
});

test("one condition looks for a bounded number of words", () => {
  const plain = [wantedWord, wantedWords, wantedPhrase, wantedPrefix].map((wanted) => ({
    wanted,
    most: TEXT_WORDS_MAX,
  }));
  for (const { wanted, most } of [...plain, { wanted: wantedNearly, most: FUZZY_WORDS_MAX }]) {
    expect(() => wanted("a-".repeat(most)), wanted.name).not.toThrow();
    expect(() => wanted("a ".repeat(most + 1)), wanted.name).toThrow(`at most ${most} words`);
  }
  expect(() => wantedWord("*-".repeat(TEXT_WORDS_MAX + 1))).toThrow("[Valid]");
});

test("a phrase keeps its order, a beginning is that of its last word", () => {
  expect(wantedPhrase("ended web 1").isIn(TEXT)).toBe(true);
  expect(wantedPhrase("web ended").isIn(TEXT)).toBe(false);
  expect(wantedPhrase("ended again").isIn(TEXT)).toBe(false);
  expect(wantedPrefix("ended we").isIn(TEXT)).toBe(true);
  expect(wantedPrefix("ende we").isIn(TEXT)).toBe(false);
  expect(wantedPrefix("内存不").isIn(TEXT)).toBe(true);
});

test("a text without letters and digits asks for nothing", () => {
  for (const wanted of [wantedWord, wantedWords, wantedPhrase, wantedPrefix, wantedNearly]) {
    expect(() => wanted("--"), wanted.name).toThrow("[Valid]");
    expect(() => wanted(""), wanted.name).toThrow("[Valid]");
  }
});

test.each([
  ["disk", "disk", 0],
  ["disk", "disc", 1],
  ["disk", "dsik", 1],
  ["disk", "dis", 1],
  ["disk", "idks", 2],
  ["disk", "xdiskx", 2],
  ["disk", "task", 2],
  ["kernel", "kenrle", 2],
  ["ca", "abc", 3],
  ["", "ab", 2],
  ["abcdef", "badcfe", 3],
])("%s and %s are %i changes apart", (left, right, changes) => {
  for (const max of [0, 1, 2, 3]) {
    expect(isWithin(Array.from(left), Array.from(right), max)).toBe(changes <= max);
    expect(isWithin(Array.from(right), Array.from(left), max)).toBe(changes <= max);
  }
});

test("short words allow fewer changes", () => {
  expect(wantedNearly("of").isIn("if")).toBe(true);
  expect(wantedNearly("of").isIn("in")).toBe(false);
  expect(wantedNearly("a").isIn("b")).toBe(false);
});
