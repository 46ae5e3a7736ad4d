import { expect, test } from "vitest";
import { TERM_MAX_BYTES } from "../../common/limits.ts";
import { indexedTerms } from "./terms.ts";

test("terms up to the limit stay as they are, each once", () => {
  const longest = "x".repeat(TERM_MAX_BYTES);
  expect(indexedTerms(["a", longest, "a"])).toEqual(["a", longest]);
});

test("a longer term is cut, never within a character", () => {
  const [cut = ""] = indexedTerms([`${"x".repeat(TERM_MAX_BYTES - 1)}é and more`]);
  expect(cut).toBe("x".repeat(TERM_MAX_BYTES - 1));
  const [emoji = ""] = indexedTerms(["🙂".repeat(TERM_MAX_BYTES)]);
  expect(emoji).toBe("🙂".repeat(TERM_MAX_BYTES / 4));
});

test("terms that are cut to the same text are one term", () => {
  const same = "y".repeat(TERM_MAX_BYTES);
  expect(indexedTerms([`${same}1`, `${same}2`])).toEqual([same]);
});
