import { expect, test } from "vitest";
import { QUERY_PARSED_MAX_CHARACTERS, QUERY_PARSED_TEXT_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { ParsedTexts } from "./parsed.ts";
import { Slices } from "./slice.ts";

const slices = new Slices({ tenant: "matrix", clock: testRuntime().clock, signal: undefined });

test("a text is parsed once while it is used, and forgotten when others need the place", async () => {
  const texts = new ParsedTexts();
  const often = await texts.parsed("select * from /often", slices);
  const once = await texts.parsed("select * from /once", slices);
  const name = "x".repeat(1_000);
  for (let index = 0; index <= QUERY_PARSED_MAX_CHARACTERS / 1_000; index += 1) {
    await texts.parsed(`select ${name} from /a${index}`, slices);
    expect(await texts.parsed("select * from /often", slices)).toBe(often);
    expect(texts.characters).toBeLessThanOrEqual(QUERY_PARSED_MAX_CHARACTERS);
  }
  expect(await texts.parsed("select * from /once", slices)).not.toBe(once);
});

test("neither long texts nor wrong ones are kept", async () => {
  const texts = new ParsedTexts();
  await texts.parsed(`select * from /a -- ${"x".repeat(QUERY_PARSED_TEXT_MAX_CHARACTERS)}`, slices);
  for (let round = 0; round < 2; round += 1) expect(() => texts.parsed("select", slices)).toThrow("[Parser]");
  expect(texts.characters).toBe(0);
});

test("texts that fill the place to the last character are all kept", async () => {
  const texts = new ParsedTexts();
  const length = QUERY_PARSED_TEXT_MAX_CHARACTERS;
  const count = QUERY_PARSED_MAX_CHARACTERS / length;
  const textOf = (index: number): string => `select * from /a${index} -- `.padEnd(length, "x");
  const scripts = [];
  for (let index = 0; index < count; index += 1) scripts.push(await texts.parsed(textOf(index), slices));
  expect(texts.characters).toBe(QUERY_PARSED_MAX_CHARACTERS);
  for (const [index, script] of scripts.entries()) expect(await texts.parsed(textOf(index), slices)).toBe(script);
});
