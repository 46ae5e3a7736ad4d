import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { seedsOf } from "../../test/helpers/time/times.ts";
import { TreeGenerator } from "../../test/helpers/mql/trees.ts";
import { isAppError } from "../errors.ts";
import { parseConditionText, parseScript, printCondition, printStatement } from "./index.ts";

const SEEDS = seedsOf([], 2);

/** Removes positions, which are not part of the meaning. */
function bare(tree: unknown): unknown {
  return JSON.parse(
    JSON.stringify(tree, (key, value: unknown) =>
      ["span", "columnPlaces", "index"].includes(key) ? undefined : value,
    ),
  );
}

test.each(SEEDS)("print and parse give the same tree again (seed %i)", (seed) => {
  const generator = new TreeGenerator(seededRandom(seed));
  for (let round = 0; round < 500; round += 1) {
    const statement = generator.statement();
    const text = printStatement(statement);
    expect(bare(parseScript(text).statements), `seed ${seed} round ${round}: ${text}`).toEqual([bare(statement)]);
    const condition = generator.condition(4);
    expect(bare(parseConditionText(printCondition(condition)))).toEqual(bare(condition));
  }
});

test.each(SEEDS)(
  "a damaged text parses or is refused with its place, and never breaks the parser (seed %i)",
  (seed) => {
    const random = seededRandom(seed);
    const generator = new TreeGenerator(random);
    const pieces = [
      "",
      "'",
      '"',
      "(",
      ")",
      "[",
      "{",
      "--",
      "/*",
      "#",
      " end ",
      ";",
      "；",
      "\u0000",
      "\ud800",
      "?",
      " not ",
      "<-",
      "\\",
      "`",
    ];
    for (let round = 0; round < 500; round += 1) {
      const text = printStatement(generator.statement());
      const at = Math.floor(random.next() * text.length);
      const damaged =
        text.slice(0, at) +
        (pieces[Math.floor(random.next() * pieces.length)] ?? "") +
        text.slice(at + Math.floor(random.next() * 4));
      try {
        parseScript(damaged);
      } catch (error) {
        expect(isAppError(error, "syntax", "too_large"), `seed ${seed} round ${round}: ${damaged}`).toBe(true);
      }
    }
  },
);
