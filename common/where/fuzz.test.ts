import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { Words } from "../../test/helpers/mql/words.ts";
import { isAppError } from "../errors.ts";
import type { Value } from "../value.ts";
import { compileWhere, parseWhere, type Where } from "./index.ts";

const SEEDS = [1, 2, 3, 4];
const ROUNDS = 1_000;
const COMPARISONS = ["=", "==", "!=", ">", "<", ">=", "<=", "is", "isnot", "contains"];
const OPERANDS = ["a", "b", "c.d", "c.`e f`", "c.0", "missing", "0", "1", "2.5", "'1'", "'x'", '"xy"', "true", "null"];
const VOCABULARY = [
  ...[
    "||",
    "&&",
    "~=",
    "!~=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "(",
    ")",
    ".",
    "!",
    "&",
    ",",
    "\u0000",
    "\ud800",
    "'",
    "\n",
  ],
  ...COMPARISONS,
  ...OPERANDS,
  "'^x+$'",
  "1e999",
  "主机",
];
const ITEM: Value = { a: 3, b: "xy", c: { d: "2.5", "e f": ["x", 1], 0: false } };
/** Classes of precedence, weak to strong; `-` alone and `^` follow. */
const LEVELS = [["||"], ["&&"], COMPARISONS, ["+", "-"], ["*", "/", "%"]] as const;

/**
 * A text with only the brackets it needs, and one with all: what the first means by its precedence stands in the other.
 */
interface Twin {
  readonly bare: string;
  readonly whole: string;
  /** The precedence of the outermost operator. */
  readonly level: number;
}

const POWER = LEVELS.length + 1;
const OPERAND = LEVELS.length + 2;

function twin(words: Words, depth: number): Twin {
  if (depth === 0) return operand(words);
  switch (words.below(9)) {
    case 0:
      return operand(words);
    case 1: {
      const inner = twin(words, depth - 1);
      return { bare: `-${within(inner, LEVELS.length)}`, whole: `(-${inner.whole})`, level: LEVELS.length };
    }
    case 2: {
      const [base, exponent] = [twin(words, depth - 1), twin(words, depth - 1)];
      const bare = `${within(base, OPERAND)}^${within(exponent, LEVELS.length)}`;
      return { bare, whole: `(${base.whole}^${exponent.whole})`, level: POWER };
    }
    case 3: {
      const left = twin(words, depth - 1);
      const match = `${words.of(["~=", "!~="])} '^x+'`;
      return { bare: `${within(left, 3)} ${match}`, whole: `(${left.whole} ${match})`, level: 2 };
    }
    default:
      return joined(words, depth);
  }
}

function joined(words: Words, depth: number): Twin {
  const level = words.below(LEVELS.length);
  const operator = words.of(LEVELS[level] ?? []);
  const [left, right] = [twin(words, depth - 1), twin(words, depth - 1)];
  // Operators of one rank bind to the left; comparisons do not chain.
  const bare = `${within(left, level === 2 ? 3 : level)} ${operator} ${within(right, level + 1)}`;
  return { bare, whole: `(${left.whole} ${operator} ${right.whole})`, level };
}

function operand(words: Words): Twin {
  const text = words.of(OPERANDS);
  return { bare: text, whole: text, level: OPERAND };
}

function within({ bare, level }: Twin, least: number): string {
  return level >= least ? bare : `(${bare})`;
}

/** Written out as it is worked out, without a difference between one chain and two inside each other. */
function meaning(where: Where): string {
  switch (where.kind) {
    case "any":
    case "all":
      return where.parts.map(meaning).reduce((left, right) => `(${left} ${where.kind} ${right})`);
    case "chain":
      return where.rest.reduce(
        (left, { sign, operand: right }) => `(${left} ${sign} ${meaning(right)})`,
        meaning(where.first),
      );
    case "compare":
      return `(${meaning(where.left)} ${where.operator} ${meaning(where.right)})`;
    case "match":
      return `(${meaning(where.left)} ${where.negated ? "!" : ""}~ ${where.pattern.source})`;
    case "power":
      return `(${meaning(where.base)} ^ ${meaning(where.exponent)})`;
    case "negative":
      return `(- ${meaning(where.operand)})`;
    default:
      return JSON.stringify(where);
  }
}

test.each(SEEDS)("a condition means what it means with all its brackets (seed %i)", (seed) => {
  const words = new Words(seededRandom(seed), VOCABULARY);
  let held = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const { bare, whole } = twin(words, 1 + words.below(4));
    expect(meaning(parseWhere(bare)), `seed ${seed} round ${round}: ${bare}`).toBe(meaning(parseWhere(whole)));
    const holds = compileWhere(parseWhere(bare))(ITEM);
    expect(compileWhere(parseWhere(whole))(ITEM), `seed ${seed} round ${round}: ${bare}`).toBe(holds);
    held += Number(holds);
  }
  // Both happen often enough to prove something.
  expect(held).toBeGreaterThan(ROUNDS / 10);
  expect(held).toBeLessThan(ROUNDS);
});

test.each(SEEDS)("words and signs in any order mean something or are refused with their place (seed %i)", (seed) => {
  const words = new Words(seededRandom(seed), VOCABULARY);
  let parsed = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const text = words.stream(1 + words.below(12)).join(words.below(4) === 0 ? "" : " ");
    parsed += Number(isParsed(text, `seed ${seed} round ${round}: ${JSON.stringify(text)}`));
  }
  expect(parsed).toBeGreaterThan(ROUNDS / 50);
  expect(parsed).toBeLessThan(ROUNDS);
});

function isParsed(text: string, told: string): boolean {
  let where: Where;
  try {
    where = parseWhere(text);
  } catch (error) {
    if (!isAppError(error, "syntax")) throw new Error(told, { cause: error });
    const place = { line: expect.any(Number) as number, column: expect.any(Number) as number };
    expect(error.details, told).toMatchObject(place);
    return false;
  }
  expect(compileWhere(where)(ITEM), told).toBeTypeOf("boolean");
  return true;
}
