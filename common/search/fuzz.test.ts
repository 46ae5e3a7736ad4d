import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { Words } from "../../test/helpers/mql/words.ts";
import { isAppError } from "../errors.ts";
import { parseSearch, printSearch, type Search } from "./index.ts";

const SEEDS = [1, 2, 3, 4];
const ROUNDS = 1_000;

/** Texts with every kind of segment, split at word ends. */
const VALID = [
  "#/matrix/ent/box/: disk full | size>=5 ; host=web* ; tags = red | top 5",
  "debug> /matrix/log: 'disk ''full''' | sort by size desc, host asc | print host, size as s",
  "error | config.os=linux | uniq by host, size | top -1",
  "# /a: x | group grp | sort count desc",
  "web* | nearest 15 minutes for seen",
  "/a: | window 2024-01-01 to 2024-01-02 12:00:00",
  "/a: x | at 2024-01-01 within 5min",
  "/a: x | last month | delete",
  '#/a: x | call tree {"parent":"a{b","ftype":["x"]}',
  "x | lua total=<lua>return a | b</lua>",
  "x | sort by by desc, host | uniq by By.size | group by by",
  "磁盘 ； 中文=空间*",
];
const SIGNS = [
  "|",
  ";",
  "；",
  ":",
  "#",
  "/",
  "=",
  "!=",
  ">",
  "<",
  ">=",
  "<=",
  ".",
  ",",
  "*",
  "'",
  '"',
  "{",
  "}",
  "\\",
  "(",
  "-1",
  "\n",
  "\u0000",
  "\ud800",
  "debug>",
];
const COMMANDS = [
  "top",
  "sort",
  "print",
  "uniq",
  "group",
  "call",
  "lua",
  "delete",
  "today",
  "week",
  "last",
  "nearest",
  "window",
  "within",
  "at",
  "for",
  "by",
  "as",
  "to",
  "desc",
];
const OTHERS = [
  "a",
  "主机",
  "'x y'",
  '"z"',
  "7",
  "2024-01-01",
  "99:99",
  "<lua>",
  "</lua>",
  "tree",
  "{}",
  '{"a":1}',
  "999999999999",
  "5min",
];
const VOCABULARY = [...SIGNS, ...COMMANDS, ...OTHERS];

function stream(words: Words): string {
  return [words.of(VOCABULARY), ...words.stream(20)].join(words.below(4) === 0 ? "" : " ");
}

/** Changes words or single characters of a valid text. */
function changed(words: Words): string {
  return words.changed(words.of(VALID).split(words.of([/(?<=\s)/u, /(?:)/u]))).join("");
}

function bare(search: Search): unknown {
  return JSON.parse(JSON.stringify(search, (key, value: unknown) => (key === "span" ? undefined : value)));
}

/** Returns true if the text parses and its printed form means the same; false if it is refused with a position. */
function isParsed(text: string, told: string): boolean {
  let search: Search;
  try {
    search = parseSearch(text);
  } catch (error) {
    if (!isAppError(error, "syntax")) throw new Error(`${told}: ${JSON.stringify(text)}`, { cause: error });
    expect(error.details, `${told}: ${JSON.stringify(text)}`).toMatchObject({
      line: expect.any(Number) as number,
      column: expect.any(Number) as number,
    });
    return false;
  }
  const printed = printSearch(search);
  expect(bare(parsedAgain(printed, told)), `${told}: ${JSON.stringify(text)} as ${JSON.stringify(printed)}`).toEqual(
    bare(search),
  );
  return true;
}

function parsedAgain(printed: string, told: string): Search {
  try {
    return parseSearch(printed);
  } catch (error) {
    throw new Error(`${told}: what was printed does not parse: ${JSON.stringify(printed)}`, { cause: error });
  }
}

test.each(VALID)("%s means the same when it is written again", (text) => {
  expect(isParsed(text, "as it is")).toBe(true);
});

test.each(SEEDS)("words and signs in any order never break the parser (seed %i)", (seed) => {
  const words = new Words(seededRandom(seed), VOCABULARY);
  const parsed = Array.from({ length: ROUNDS }, (_, round) =>
    isParsed(stream(words), `seed ${seed} round ${round}`),
  ).filter(Boolean);
  // Both cases must occur often enough to prove something.
  expect(parsed.length).toBeGreaterThan(ROUNDS / 50);
  expect(parsed.length).toBeLessThan(ROUNDS);
});

test.each(SEEDS)(
  "what a few changes make of searches parses to something that prints, or is refused with its place (seed %i)",
  (seed) => {
    const words = new Words(seededRandom(seed), VOCABULARY);
    const parsed = Array.from({ length: ROUNDS }, (_, round) =>
      isParsed(changed(words), `seed ${seed} round ${round}`),
    ).filter(Boolean);
    expect(parsed.length).toBeGreaterThan(ROUNDS / 20);
    expect(parsed.length).toBeLessThan(ROUNDS);
  },
);
