import { withReplaced } from "../../../test/helpers/objects/replaced.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ORDERED_CLASS_MIN, QUERY_IN_ORDER_MAX_ROWS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { MemoryObjects } from "../../../test/helpers/objects/memory/objects.ts";
import { Dice } from "../../../test/helpers/mql/world.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { type ObjectRow, type Objects, ObjectService } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { QueryService, visibleObjects } from "./index.ts";

const MANY = ORDERED_CLASS_MIN + 200;
const FEW = 40;
/** In one INSERT, and more than the ids that a read in order holds. */
const EQUAL_TIMES = QUERY_IN_ORDER_MAX_ROWS + 500;
const MOST_FOR_TEN = 40;
const ROOT = "/matrix/ordered";
const BELOW = `${ROOT}/below`;
const admin = testPrincipal();
const few: Principal = { ...admin, data: [{ class: ROOT, access: "read", where: "owner = 'o1'" }] };
const runtime = testRuntime(realClock);
const DEFINED = `create class ${ROOT} (code varchar, size int, owner varchar, note varchar, keys(code), index(size, owner));
  create class ${BELOW} (more varchar)`;

/** Equal sizes, and in one class objects without one. */
function rowOf(n: number): Row {
  const isSet = n % 2 === 0 || n % 7 !== 1;
  return {
    code: `c${String(n).padStart(4, "0")}`,
    ...(isSet ? { size: ((n * 37) % 101) - 50 } : {}),
    owner: `o${n % 3}`,
    note: `n${n % 5}`,
  };
}

async function fill(objects: Objects, count: number): Promise<readonly Row[]> {
  const rows = Array.from({ length: count }, (_, n) => rowOf(n));
  await objects.unrestricted.insert(
    admin,
    ROOT,
    rows.filter((_, n) => n % 2 === 0),
  );
  await objects.unrestricted.insert(
    admin,
    BELOW,
    rows.filter((_, n) => n % 2 === 1),
  );
  return rows;
}

/** By size, then by code; what is not set comes before all values. */
function sorted(rows: readonly Row[], descending: boolean): readonly unknown[] {
  const size = (row: Row): number => (typeof row["size"] === "number" ? row["size"] : -Infinity);
  const code = (row: Row): string => String(row["code"]);
  return rows
    .toSorted((a, b) => {
      const by = size(a) === size(b) ? 0 : size(a) < size(b) ? -1 : 1;
      return (descending ? -by : by) || (code(a) < code(b) ? -1 : 1);
    })
    .map(code);
}

interface Asked {
  readonly where: string;
  readonly fits: (row: Row) => boolean;
}

const ALL: Asked = { where: "", fits: () => true };
const ASKED: readonly Asked[] = [
  ALL,
  { where: "where note = 'n2'", fits: (row) => row["note"] === "n2" },
  { where: "where owner = 'o1'", fits: (row) => row["owner"] === "o1" },
  { where: "where owner in ('o0', 'o2')", fits: (row) => row["owner"] !== "o1" },
  {
    where: "where size >= -10 and note = 'n3'",
    fits: (row) => Number(row["size"] ?? -99) >= -10 && row["note"] === "n3",
  },
  { where: "where size < 20", fits: (row) => Number(row["size"] ?? 99) < 20 },
  { where: "where note = 'none'", fits: () => false },
];

/** Random questions for the first rows in order, by pages too, answered as the rows tell. */
async function compare(
  query: QueryService,
  rows: readonly Row[],
  of: { readonly seed: number; readonly times: number },
) {
  const dice = new Dice(seededRandom(of.seed));
  for (let time = 0; time < of.times; time += 1) {
    const { where, fits } = dice.pick(ASKED);
    const [descending, isTree, isRuled] = [dice.chance(0.7), dice.chance(0.5), dice.chance(0.3)];
    const [limit, offset] = [dice.below(30), dice.chance(0.3) ? dice.below(9) : 0];
    const meant = rows.filter((row, n) => (isTree || n % 2 === 0) && fits(row) && (!isRuled || row["owner"] === "o1"));
    const mql = `select code from ${isTree ? `${ROOT}/` : ROOT} ${where} order by size${descending ? " desc" : ""}, code limit ${limit}`;
    const answer = await query.rows(isRuled ? few : admin, `${mql}${offset > 0 ? ` offset ${offset}` : ""}`);
    const told = `seed ${of.seed}: ${mql}, offset ${offset}`;
    expect(
      answer.map((row) => row["code"]),
      told,
    ).toEqual(sorted(meant, descending).slice(offset, offset + limit));
  }
}

/** All pages of a question. */
async function pages(query: QueryService, mql: string): Promise<readonly unknown[]> {
  const codes: unknown[] = [];
  for (let cursor = ""; ; ) {
    const { meta, rows } = await query.run(admin, mql, { cursor });
    for await (const page of rows) codes.push(...page.map((row) => row["code"]));
    if (meta.cursor === undefined) return codes;
    cursor = meta.cursor;
  }
}

test.each(onCluster ? [] : [0, 1, 5, 17, FEW])(
  "first rows are those of the whole order where reading in order ends after %i",
  async (most) => {
    const objects = new MemoryObjects({ nowMs: () => 0, narrows: true, orderedMost: most });
    const query = new QueryService({ objects, runtime: { clock: realClock } });
    await query.rows(admin, DEFINED);
    const rows = await fill(objects, FEW);
    await compare(query, rows, { seed: most, times: 60 });
    expect(await pages(query, `select code from ${ROOT}/ order by size desc, code limit 3`)).toEqual(
      sorted(rows, true),
    );
  },
);

test.skipIf(onCluster)("pages ordered by what a relation leads to have every row", async () => {
  const objects = new MemoryObjects({ nowMs: () => 0, narrows: true, orderedMost: FEW });
  const query = new QueryService({ objects, runtime: { clock: realClock } });
  await query.rows(admin, `${DEFINED}; create edge type uplink; create class /matrix/site (name varchar, keys(name))`);
  const sites = ["s4", "s1", "s3", "s2"];
  const sizes = [4, 3, 2, 1];
  for (const site of sites) {
    await query.rows(admin, `insert into /matrix/site name = '${site}'`);
    for (const size of sizes)
      await query.rows(admin, `insert into ${ROOT} code = '${size} ${site}', size = ${size}, uplink = 'site:${site}'`);
  }
  for (const order of ["uplink.name", "upper(uplink.name)"])
    expect(await pages(query, `select code from ${ROOT} order by size desc, ${order} limit 3`)).toEqual(
      sizes.flatMap((size) => sites.toSorted().map((site) => `${size} ${site}`)),
    );
});

test.skipIf(onCluster)("a row that is written meanwhile, and so comes twice, is answered once", async () => {
  const objects = new MemoryObjects({ nowMs: () => 0, narrows: true, orderedMost: FEW });
  const once = objects.unrestricted.inOrder.bind(objects);
  objects.unrestricted.inOrder = async (...given) => {
    const found = await once(...given);
    return found && { ...found, pages: twice(found.pages) };
  };
  const query = new QueryService({ objects, runtime: { clock: realClock } });
  await query.rows(admin, DEFINED);
  const rows = await fill(objects, FEW);
  await compare(query, rows, { seed: 1, times: 60 });
});

async function* twice(pages: AsyncIterable<readonly ObjectRow[]>): AsyncGenerator<readonly ObjectRow[]> {
  for await (const page of pages) for (const row of page) yield [row, row];
}

describe("of many objects", () => {
  let engine: TestEngine;
  let objects: ObjectService;
  let rows: readonly Row[];

  beforeAll(async () => {
    engine = await openTestEngine();
    objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
    await new QueryService({ objects, runtime }).rows(admin, DEFINED);
    rows = await fill(objects, MANY);
  });

  afterAll(async () => {
    await objects.close();
    await engine.close();
  });

  /** Counts what is read. */
  function counting() {
    const seen = { rows: 0 };
    const counted = async function* (found: AsyncIterable<readonly ObjectRow[]>) {
      for await (const page of found) {
        seen.rows += page.length;
        yield page;
      }
    };
    const watched = withReplaced(objects, {
      read: (...given) => counted(objects.unrestricted.read(...given)),
      inOrder: async (...given) => {
        const found = await objects.unrestricted.inOrder(...given);
        return found && { ...found, pages: counted(found.pages) };
      },
    });
    return { seen, query: new QueryService({ objects: watched, runtime }) };
  }

  test("the first by an indexed number are those of the whole order, also by pages", async () => {
    const { query } = counting();
    await compare(query, rows, { seed: 7, times: 12 });
    const mql = `select code from ${ROOT} where size > 30 order by size desc, code limit 60`;
    const own = rows.filter((row, n) => n % 2 === 0 && Number(row["size"] ?? 0) > 30);
    expect(await pages(query, mql)).toEqual(sorted(own, true));
  });

  test("a few are read of them, also by whom a row condition lets see a part", async () => {
    const { seen, query } = counting();
    await query.rows(admin, `select code from ${ROOT}/ order by size desc limit 5`);
    expect(seen.rows).toBeLessThan(MANY / 2);
    seen.rows = 0;
    await query.rows(few, `select code from ${ROOT}/ where note = 'n2' order by size desc limit 5`);
    expect(seen.rows).toBeLessThan(MANY / 2);
    seen.rows = 0;
    // The first of them have no size, so that all have to be read.
    await query.rows(admin, `select code from ${ROOT}/ order by size limit 5`);
    expect(seen.rows).toBe(MANY);
  });

  test("the first by time are read alone, and those behind them page by page, however many have the same time", async () => {
    const { seen, query } = counting();
    const path = "/matrix/equal";
    await query.rows(admin, `create class ${path} (code varchar)`);
    await objects.unrestricted.insert(
      admin,
      path,
      Array.from({ length: EQUAL_TIMES }, (_, n) => ({ code: String(n) })),
      { atMs: realClock.nowMs() },
    );
    const codes = Array.from({ length: EQUAL_TIMES }, (_, n) => String(n));
    for (const [direction, expected] of [
      ["desc", codes.toReversed()],
      ["asc", codes],
    ] as const) {
      seen.rows = 0;
      const rows = await query.rows(admin, `select code from ${path} order by vtime ${direction} limit 10`);
      expect(rows.map(({ code }) => code)).toEqual(expected.slice(0, 10));
      expect(seen.rows, direction).toBeLessThan(MOST_FOR_TEN);
    }
    seen.rows = 0;
    let cursor = "";
    for (let page = 0; page < 5; page += 1) {
      const answer = await query.run(admin, `select code from ${path} order by vtime desc limit 10`, { cursor });
      const found: unknown[] = [];
      for await (const some of answer.rows) found.push(...some.map(({ code }) => code));
      expect(found).toEqual(codes.toReversed().slice(10 * page, 10 * page + 10));
      cursor = answer.meta.cursor ?? "";
    }
    expect(seen.rows).toBeLessThan(5 * MOST_FOR_TEN);
  });

  test("EXPLAIN tells of the order, to everybody the same", async () => {
    const { query } = counting();
    const explained = async (mql: string, who = admin) =>
      (await query.rows(who, `explain ${mql}`)).map((row) => Object.values(row).join(" ")).join("\n");
    const mql = `select code from ${ROOT} order by size desc limit 5`;
    const step = "or in the order of the index size desc until enough are found, where that reads less";
    expect(await explained(mql)).toContain(step);
    expect(await explained(mql, few)).toContain(step);
    expect(await explained(`select code from ${ROOT} order by size limit 5`)).not.toContain("in the order of");
    expect(await explained(`select code from ${ROOT} order by note desc limit 5`)).not.toContain("in the order of");
  });
});
