import { setImmediate } from "node:timers/promises";
import { expect } from "vitest";
import { printCondition, printStatement } from "../../common/mql/index.ts";
import type { Row } from "../../common/value.ts";
import type { Objects } from "../../controller/areas/objects/index.ts";
import { QueryService } from "../../controller/areas/query/index.ts";
import { realClock, seededRandom } from "../helpers/clock.ts";
import { QueryGenerator } from "../helpers/mql-queries.ts";
import { type Expected, inOrder, Reference, rowText } from "../helpers/mql-reference.ts";
import { Dice, drawnRights, makeWorld } from "../helpers/mql-world.ts";
import { testPrincipal, testRuntime } from "../helpers/runtime.ts";
import { TIMES } from "../helpers/times.ts";

/** For one test. */
export const TIMEOUT_MS = 300_000 * TIMES;

export interface Amount {
  readonly seed: number;
  readonly queries: number;
  /** How many of these over one set of classes and objects. */
  readonly perWorld: number;
  readonly canKeepVersions?: boolean;
}

const QUERIES_PER_RIGHTS = 25;
/** Kept by the platform; when the reference would have to repeat how. */
const KEPT = new Set(["day", "vtime", "ctime", "mtime", "k"]);

/**
 * Random worlds, askers and queries by a seed, until there were so many queries: each answered by the query area and by
 * plain evaluation.
 */
export async function compareMany(
  objects: Objects,
  { seed, queries, perWorld, canKeepVersions = true }: Amount,
): Promise<void> {
  const query = new QueryService({ objects, runtime: testRuntime(realClock) });
  const dice = new Dice(seededRandom(seed));
  let rows = 0;
  const all = queries * TIMES;
  for (let done = 0, number = 0; done < all; done += perWorld, number += 1) {
    const world = await makeWorld(objects, `w${seed}x${number}`, { dice, canKeepVersions });
    const everything = { principal: testPrincipal(), isReadable: () => true, hidden: new Set<string>() };
    for (let round = 0; round < perWorld; round += QUERIES_PER_RIGHTS) {
      // Questions without a pause let no timer run, and the lease of the definitions ends.
      await setImmediate();
      const rule = dice.chance(0.5) ? new QueryGenerator(world, everything, dice).rule() : undefined;
      const rights = drawnRights(world, rule && printCondition(rule), dice);
      const generator = new QueryGenerator(world, rights, dice);
      const reference = new Reference(world, rights, rule);
      for (let at = 0; at < QUERIES_PER_RIGHTS; at += 1) {
        const statement = generator.statement();
        if (!statement) continue;
        const text = printStatement(statement);
        const expected = statement.kind === "union" ? reference.union(statement) : reference.select(statement);
        const told = () => `seed ${seed}, world ${number}: ${text} by ${JSON.stringify(rights.principal.data)}`;
        rows += check(await answerOf(query.rows(rights.principal, text), told), expected, told);
      }
    }
  }
  // Queries that find nothing would prove nothing.
  expect(rows).toBeGreaterThan(all / 2);
}

async function answerOf(rows: Promise<readonly Row[]>, told: () => string): Promise<readonly Row[]> {
  try {
    return (await rows).map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !KEPT.has(name))));
  } catch (error) {
    throw new Error(told(), { cause: error });
  }
}

/** Told only on failure: making the text costs more than the comparison. */
function check(answer: readonly Row[], expected: Expected, told: () => string): number {
  const wanted = inOrder(expected).map((one) => rowText(withoutKept(one.row)));
  const got = answer.map(rowText);
  const window =
    expected.descending.length > 0
      ? wanted.slice(expected.offset, expected.offset + expected.limit)
      : wanted.toSorted();
  const shown = expected.descending.length > 0 ? got : got.toSorted();
  if (shown.length !== window.length || shown.some((row, at) => row !== window[at]))
    expect(shown, told()).toEqual(window);
  return answer.length;
}

function withoutKept(row: Row): Row {
  return Object.fromEntries(Object.entries(row).filter(([name]) => !KEPT.has(name)));
}
