import { expect, test } from "vitest";
import { FILE_TEXT_KEPT_MAX_CHARACTERS, FILE_TEXTS_KEPT_MAX_CHARACTERS } from "../../../common/limits.ts";
import { KnownTexts } from "./known-texts.ts";

test("a text is known to its own tenant only, by its digest", () => {
  const texts = new KnownTexts();
  texts.keep("one", "d1", "text");
  expect([texts.get("one", "d1"), texts.get("two", "d1"), texts.get("one", "d2")]).toEqual([
    "text",
    undefined,
    undefined,
  ]);
});

test("so much is kept and no more: long texts never, and the one read longest ago leaves first", () => {
  const texts = new KnownTexts();
  const longest = "x".repeat(FILE_TEXT_KEPT_MAX_CHARACTERS);
  texts.keep("one", "longer", `${longest}x`);
  expect(texts.get("one", "longer")).toBeUndefined();
  const count = FILE_TEXTS_KEPT_MAX_CHARACTERS / FILE_TEXT_KEPT_MAX_CHARACTERS;
  for (let at = 0; at < count; at += 1) texts.keep("one", `d${at}`, longest);
  expect(texts.get("one", "d0")).toBe(longest);
  texts.keep("one", "d0", longest);
  texts.keep("one", "last", longest);
  expect(["d0", "d1", "last"].map((digest) => texts.get("one", digest)?.length)).toEqual([
    longest.length,
    undefined,
    longest.length,
  ]);
});
