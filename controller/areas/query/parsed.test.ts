import { expect, test } from "vitest";
import { QUERY_PARSED_MAX_CHARACTERS, QUERY_PARSED_TEXT_MAX_CHARACTERS } from "../../../common/limits.ts";
import { ParsedTexts } from "./parsed.ts";

test("a text is parsed once while it is used, and forgotten when others need the place", () => {
  const texts = new ParsedTexts();
  const often = texts.parsed("select * from /often");
  const once = texts.parsed("select * from /once");
  const name = "x".repeat(1_000);
  for (let index = 0; index <= QUERY_PARSED_MAX_CHARACTERS / 1_000; index += 1) {
    texts.parsed(`select ${name} from /a${index}`);
    expect(texts.parsed("select * from /often")).toBe(often);
    expect(texts.characters).toBeLessThanOrEqual(QUERY_PARSED_MAX_CHARACTERS);
  }
  expect(texts.parsed("select * from /once")).not.toBe(once);
});

test("neither long texts nor wrong ones are kept", () => {
  const texts = new ParsedTexts();
  texts.parsed(`select * from /a -- ${"x".repeat(QUERY_PARSED_TEXT_MAX_CHARACTERS)}`);
  for (let round = 0; round < 2; round += 1) expect(() => texts.parsed("select")).toThrow("[Parser]");
  expect(texts.characters).toBe(0);
});
