import { expect, test } from "vitest";
import { checkName } from "./names.ts";

const RULE = { what: "name of a thing", maxBytes: 8, limit: "THING_NAME_MAX_BYTES" };

test.each(["a", "a/b c:%", "é", "éééé", "😀😀"])("%j is a name", (name) => {
  expect(() => checkName(name, RULE)).not.toThrow();
});

test.each([
  ["", "The name of a thing is empty."],
  ["a\n", "The name of a thing has control characters."],
  ["\u0000", "has control characters"],
  ["\u0085", "has control characters"],
  ["a\ud83d", "has control characters"],
  ["éééé1", "The name of a thing has more than 8 bytes."],
])("%j is none", (name, complaint) => {
  expect(() => checkName(name, RULE)).toThrow(complaint);
});
