import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { TreeGenerator } from "../../test/helpers/mql/trees.ts";
import { Words } from "../../test/helpers/mql/words.ts";
import { isAppError } from "../errors.ts";
import type { Script } from "./index.ts";
import { parseScript, printStatement } from "./index.ts";
import { KEYWORDS } from "./keywords.ts";
import { tokenize } from "./lex.ts";

const SEEDS = [1, 2, 3, 4];
const ROUNDS = 1_000;
const SIGNS = "( ) [ ] { } , ; : . = != < > <= >= + - * ? -> <- <-- - ] )".split(" ");
const OTHERS = ["a", "主机", "`x y`", "'v'", '"w"', "1", "-2.5", "/a/b", "/a/", "count", "day"];
const VOCABULARY = [...new Set(KEYWORDS.values()), ...SIGNS, ...OTHERS];

const BEGINNINGS = [
  "SELECT",
  "INSERT INTO",
  "UPDATE",
  "DELETE",
  "CREATE CLASS",
  "ALTER CLASS",
  "MATCH (",
  "BEGIN",
  "EXPLAIN",
];

/** Splits a text into its parts as written. */
function wordsOf(text: string): readonly string[] {
  return tokenize(text).map(({ start, end }) => text.slice(start, end));
}

function bare({ statements }: Script): unknown {
  return JSON.parse(
    JSON.stringify(statements, (key, value: unknown) =>
      ["span", "columnPlaces", "index"].includes(key) ? undefined : value,
    ),
  );
}

/** Returns true if the text parses and its printed form means the same; false if it is refused with a position. */
function isParsed(text: string, told: string): boolean {
  try {
    const script = parseScript(text);
    const printed = script.statements.map(printStatement).join("; ");
    const again = parseScript(printed);
    expect(bare(again), `${told}: ${text}`).toEqual(bare(script));
    expect(again.statements.map(printStatement).join("; "), told).toBe(printed);
    return true;
  } catch (error) {
    if (!isAppError(error, "syntax")) throw new Error(`${told}: ${text}`, { cause: error });
    expect(error.details, `${told}: ${text}`).toMatchObject({
      line: expect.any(Number) as number,
      column: expect.any(Number) as number,
    });
    return false;
  }
}

test.each(SEEDS)("words in any order never break the parser (seed %i)", (seed) => {
  const words = new Words(seededRandom(seed), VOCABULARY);
  const parsed = Array.from({ length: ROUNDS }, (_, round) =>
    isParsed([words.of(BEGINNINGS), ...words.stream(30)].join(" "), `seed ${seed} round ${round}`),
  ).filter(Boolean);
  expect(parsed.length).toBeLessThan(ROUNDS / 2);
});

test.each(SEEDS)(
  "what a few changes make of statements parses to something that prints, or is refused with its place (seed %i)",
  (seed) => {
    const random = seededRandom(seed);
    const words = new Words(random, VOCABULARY);
    const generator = new TreeGenerator(random);
    let parsed = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const text = words.changed(wordsOf(printStatement(generator.statement()))).join(" ");
      if (isParsed(text, `seed ${seed} round ${round}`)) parsed += 1;
    }
    // Both cases must occur often enough to prove something.
    expect(parsed).toBeGreaterThan(ROUNDS / 20);
    expect(parsed).toBeLessThan(ROUNDS);
  },
);
