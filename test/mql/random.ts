import { setImmediate } from "node:timers/promises";
import { expect } from "vitest";
import { printCondition, printStatement } from "../../common/mql/index.ts";
import type { Row } from "../../common/value.ts";
import type { Objects } from "../../controller/areas/objects/index.ts";
import type { DataRule } from "../../controller/areas/permissions/index.ts";
import { QueryService } from "../../controller/areas/query/index.ts";
import { realClock, seededRandom } from "../helpers/time/clock.ts";
import { QueryGenerator } from "../helpers/mql/queries.ts";
import { type Expected, inOrder, Reference, rowText } from "../helpers/mql/reference.ts";
import { Dice, drawnRights, makeWorld, type PlainRights, type World } from "../helpers/mql/world.ts";
import { testPrincipal, testRuntime } from "../helpers/time/runtime.ts";
import { TIMES } from "../helpers/time/times.ts";

/** Timeout of one test. */
export const TIMEOUT_MS = 300_000 * TIMES;

export interface Amount {
  readonly seed: number;
  readonly queries: number;
  /** Number of queries over one set of classes and objects. */
  readonly perWorld: number;
  readonly canKeepVersions?: boolean;
}

const QUERIES_PER_RIGHTS = 25;
/** Number of changes in one world, after all its queries. */
const CHANGES_PER_WORLD = 12;
/** Columns that the platform sets. They are left out, because the reference would have to set them in the same way. */
const KEPT = new Set(["day", "vtime", "ctime", "mtime", "k"]);

/** Matches functions, aggregates and windows in the JSON of a statement's tree. */
const NAMED = /"kind":"(computed|call|window)","name":"(\w+)"/g;

/**
 * Compares the query area with plain evaluation, for random worlds, callers and queries by a seed, until `queries` are
 * done. Returns the functions, aggregates and windows that occurred, such as `computed lower` or `window lag`.
 */
export async function compareMany(
  objects: Objects,
  { seed, queries, perWorld, canKeepVersions = true }: Amount,
): Promise<ReadonlySet<string>> {
  const drawn = new Set<string>();
  const query = new QueryService({ objects, runtime: testRuntime(realClock) });
  const dice = new Dice(seededRandom(seed));
  let rows = 0;
  const all = queries * TIMES;
  for (let done = 0, number = 0; done < all; done += perWorld, number += 1) {
    const world = await makeWorld(objects, `w${seed}x${number}`, { dice, canKeepVersions });
    const everything = { principal: testPrincipal(), isReadable: () => true, hidden: new Set<string>() };
    for (let round = 0; round < perWorld; round += QUERIES_PER_RIGHTS) {
      // Without a pause no timer would run, and the lease of the definitions would end.
      await setImmediate();
      const rule = dice.chance(0.5) ? new QueryGenerator(world, everything, dice).rule() : undefined;
      const rights = drawnRights(world, rule && printCondition(rule), dice);
      const generator = new QueryGenerator(world, rights, dice);
      const reference = new Reference(world, rights, rule);
      for (let at = 0; at < QUERIES_PER_RIGHTS; at += 1) {
        const statement = generator.statement();
        if (!statement) continue;
        const text = printStatement(statement);
        for (const [, kind, name] of JSON.stringify(statement).matchAll(NAMED)) drawn.add(`${kind} ${name}`);
        const expected = statement.kind === "union" ? reference.union(statement) : reference.select(statement);
        const told = () => `seed ${seed}, world ${number}: ${text} by ${JSON.stringify(rights.principal.data)}`;
        rows += check(await answerOf(query.rows(rights.principal, text), told), expected, told);
      }
      const isLast = round + QUERIES_PER_RIGHTS >= perWorld && !world.areRecords;
      for (let at = 0; isLast && at < CHANGES_PER_WORLD; at += 1)
        await compareChange(query, { world, rights, generator, reference }, `t${at}`);
    }
  }
  // Queries that find nothing would prove nothing.
  expect(rows).toBeGreaterThan(all / 2);
  return drawn;
}

interface Changing {
  readonly world: World;
  readonly rights: PlainRights;
  readonly generator: QueryGenerator;
  readonly reference: Reference;
}

/** An UPDATE must tag exactly the objects of its condition, which may follow relations. */
async function compareChange(
  query: QueryService,
  { world, rights, generator, reference }: Changing,
  tag: string,
): Promise<void> {
  const chosen = generator.choice();
  if (!chosen) return;
  const where = printCondition(chosen.where);
  const text = `update ${chosen.from.path}${chosen.from.subtree ? "/" : ""} tags = '${tag}' where ${where}`;
  const ids = reference.select(chosen).rows.map(({ id }) => id);
  const writer = { ...rights.principal, data: rights.principal.data.map(writable) };
  const told = () => `${text} by ${JSON.stringify(writer.data)}`;
  expect(await answerOf(query.rows(writer, text), told), told()).toEqual([{ count: ids.length }]);
  const tagged = await query.rows(testPrincipal(), `select id from ${world.root}/ where tags = '${tag}' limit -1`);
  expect(tagged.map(({ id }) => id).toSorted(), told()).toEqual(ids.toSorted());
}

function writable(rule: DataRule): DataRule {
  return rule.access === "read" ? { ...rule, access: "write" } : rule;
}

async function answerOf(rows: Promise<readonly Row[]>, told: () => string): Promise<readonly Row[]> {
  try {
    return (await rows).map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !KEPT.has(name))));
  } catch (error) {
    throw new Error(told(), { cause: error });
  }
}

/** Calls `told` only on failure, because making the text costs more than the comparison. Returns the number of rows. */
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
