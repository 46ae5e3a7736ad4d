import { expect, test } from "vitest";
import { keptRow } from "./well-formed.ts";

test("a row that has to be kept says each half of a character as JSON escapes it, in lists too", () => {
  const row = { whole: "\u{1F600}", half: "a\ud83d", list: ["b\ude00", ["\ud83d"], 1], number: 1, none: null };
  expect(keptRow(row)).toEqual({ ...row, half: "a\\ud83d", list: ["b\\ude00", ["\\ud83d"], 1] });
});
