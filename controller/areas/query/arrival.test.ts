import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CHANGE_BATCH_MAX } from "../../../common/limits.ts";
import { parseScript, printStatement } from "../../../common/mql/index.ts";
import type { Row } from "../../../common/value.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import { QueryService, visibleObjects } from "./index.ts";
import { SearchService } from "./search/index.ts";

const admin = testPrincipal();
const MANY = 2 * CHANGE_BATCH_MAX + 10;
/** Its clock stands still, so that all rows are of one time. */
const runtime = { ...testRuntime(new TestClock()), random: seededRandom(3) };

let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;
let search: SearchService;
let classes = 0;

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  const controllers = { own: "first", has: () => true };
  query = new QueryService({ objects, runtime, batches: { stores: engine, controllers, objects, runtime } });
  search = new SearchService({ objects, runtime });
});

afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

function numbers(count: number, from = 0): readonly number[] {
  return Array.from({ length: count }, (_, at) => from + at);
}

function insert(name: string, values: readonly number[]): string {
  return `insert into /matrix/${name} (n) values ${values.map((n) => `(${n})`).join(", ")}`;
}

async function newClass(kind: string): Promise<string> {
  const name = `${kind}${classes++}`;
  await query.rows(admin, `create class /matrix/${name} (n int) with kind='${kind}'`);
  return name;
}

async function selected(statement: string): Promise<readonly unknown[]> {
  return (await query.rows(admin, statement)).map(({ n }) => n);
}

async function found(text: string): Promise<readonly unknown[]> {
  const rows: Row[] = [];
  for await (const page of (await search.search(admin, text)).rows) rows.push(...page);
  return rows.map(({ n }) => n);
}

async function inPages(statement: string): Promise<readonly unknown[]> {
  const all: unknown[] = [];
  for (let cursor = ""; ; ) {
    const { meta, rows } = await query.run(admin, `${statement} limit 5`, { cursor });
    for await (const some of rows) all.push(...some.map(({ n }) => n));
    if (meta.cursor === undefined) return all;
    cursor = meta.cursor;
  }
}

describe.each(["record", "entity"])("rows of kind %s and of one time", (kind) => {
  test.each(["insert", "batch", "inserts one after the other"])("of one %s come in their order", async (form) => {
    const name = await newClass(kind);
    const count = form === "insert" ? MANY : 30;
    const third = count / 3;
    const parts = [0, 1, 2].map((part) => insert(name, numbers(third, part * third)));
    if (form === "insert") await query.rows(admin, insert(name, numbers(count)));
    else if (form === "batch") await query.rows(admin, `begin ${parts.join("; ")}; end`);
    else for (const part of parts) await query.rows(admin, part);
    const asWritten = numbers(count);
    expect(await selected(`select n from /matrix/${name} order by vtime limit -1`)).toEqual(asWritten);
    expect(await selected(`select n from /matrix/${name} order by vtime limit 12`)).toEqual(asWritten.slice(0, 12));
    const newest = asWritten.toReversed();
    for (const time of kind === "record" ? ["mtime"] : ["mtime", "ctime"])
      expect(await selected(`select n from /matrix/${name} order by ${time} desc limit 12`)).toEqual(
        newest.slice(0, 12),
      );
    expect(await selected(`select n from /matrix/${name} order by vtime desc limit 12`)).toEqual(newest.slice(0, 12));
    expect(await found(`#/matrix/${name}: | sort vtime | top ${count} | print n`)).toEqual(asWritten);
    expect(await found(`#/matrix/${name}: | sort vtime desc | top 12 | print n`)).toEqual(newest.slice(0, 12));
    if (kind === "record")
      expect(await selected(`select n from /matrix/${name} limit 12`)).toEqual(newest.slice(0, 12));
  });
});

describe.each(["record", "entity"])("rows of kind %s and of one time in a tree of classes", (kind) => {
  let root: string;
  let total = 0;
  beforeAll(async () => {
    root = await newClass(kind);
    // Labels descend, so that the order of ids with their labels is another one.
    const below = ["z", "m", "a"].map((label) => `${root}/${label}`);
    for (const name of below) await query.rows(admin, `create class /matrix/${name} (more int) with kind='${kind}'`);
    const turns = [root, ...below, ...below.toReversed(), root];
    for (const name of turns) await query.rows(admin, insert(name, numbers(3, (total += 3) - 3)));
  });

  test.each([
    ["asc", (rows: readonly number[]) => rows],
    ["desc", (rows: readonly number[]) => rows.toReversed()],
  ] as const)("come in their order, %s, whole, by LIMIT, by pages and in a search", async (direction, turned) => {
    const expected = turned(numbers(total));
    const statement = `select n from /matrix/${root}/ order by vtime ${direction}`;
    expect(await selected(`${statement} limit -1`)).toEqual(expected);
    expect(await selected(`${statement} limit 7`)).toEqual(expected.slice(0, 7));
    expect(await selected(`${statement} limit 7 offset 5`)).toEqual(expected.slice(5, 12));
    expect(await selected(`select n from /matrix/${root}/ where n >= 0 order by n - n, mtime ${direction}`)).toEqual(
      expected,
    );
    expect(await inPages(statement)).toEqual(expected);
    expect(await found(`#/matrix/${root}/: | sort vtime ${direction} | top 8 | print n`)).toEqual(expected.slice(0, 8));
  });

  test("come in their order in a UNION of classes that is ordered by their time", async () => {
    const parts = [`${root}/m`, root, `${root}/a`, `${root}/z`].map((name) => `select n, vtime from /matrix/${name}`);
    expect(await selected(`${parts.join(" union all ")} order by vtime limit -1`)).toEqual(numbers(total));
    expect(await selected(`${parts.join(" union ")} order by vtime desc limit 7`)).toEqual(
      numbers(total).toReversed().slice(0, 7),
    );
    const stars = parts.map((part) => part.replace("n, vtime", "*"));
    expect(await selected(`${stars.join(" union all ")} order by mtime desc limit 7`)).toEqual(
      numbers(total).toReversed().slice(0, 7),
    );
  });

  test("keep the order of the SELECT that answers them in one around it, and in a UNION", async () => {
    const inner = (direction: string) => `select n, vtime from /matrix/${root}/ order by vtime ${direction}`;
    expect(await selected(`select n from (${inner("asc")}) x limit 9`)).toEqual(numbers(9));
    expect(await selected(`select n from (${inner("asc")}) x order by vtime limit 9`)).toEqual(numbers(9));
    expect(await selected(`select n from (${inner("desc")}) x order by vtime limit -1`)).toEqual(
      numbers(total).toReversed(),
    );
    const part = (direction: string, least: string) =>
      `select n, vtime from (${inner(direction)}) x where n ${least} 6`;
    expect(await selected(`${part("asc", "<")} union all ${part("desc", ">=")} order by vtime`)).toEqual([
      ...numbers(6),
      ...numbers(total - 6, 6).toReversed(),
    ]);
  });
});

test("EXPLAIN shows the order that was asked for", async () => {
  const name = await newClass("entity");
  const steps = await query.rows(admin, `explain select n from /matrix/${name} order by vtime limit 3`);
  expect(steps.map(({ work }) => work)).toContain("keep the first 3 by vtime");
});

/** The cursor with the hash that earlier versions had for the statement. */
function formerCursor(cursor: string, statement: string): string {
  const [, keys] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as readonly [string, unknown];
  const text = parseScript(statement).statements.map(printStatement).join();
  const hash = createHash("sha256")
    .update(JSON.stringify([text, []]))
    .digest("base64url")
    .slice(0, 16);
  return Buffer.from(JSON.stringify([hash, keys])).toString("base64url");
}

test("a cursor of an earlier version goes on, but is refused where the rows of one time had another order", async () => {
  const name = await newClass("entity");
  await query.rows(admin, insert(name, numbers(6)));
  const page = async (statement: string, cursor: string) => {
    const { meta, rows } = await query.run(admin, `${statement} limit 2`, { cursor });
    const found: unknown[] = [];
    for await (const some of rows) found.push(...some.map(({ n }) => n));
    return { cursor: meta.cursor ?? "", found };
  };
  const pageBehind = async (statement: string) => {
    const { cursor } = await page(statement, "");
    return (await page(statement, formerCursor(cursor, statement))).found;
  };
  expect(await pageBehind(`select n from /matrix/${name} order by vtime`)).toEqual([2, 3]);
  expect(await pageBehind(`select n from /matrix/${name} order by n desc`)).toEqual([3, 2]);
  const refused = {
    code: "invalid",
    message: expect.stringContaining("The cursor is none of this statement") as string,
  };
  await expect(pageBehind(`select n from /matrix/${name} order by vtime desc`)).rejects.toMatchObject(refused);
  await query.rows(admin, `create class /matrix/${name}/below (more int)`);
  await expect(pageBehind(`select n from /matrix/${name}/ order by vtime`)).rejects.toMatchObject(refused);
  expect(await pageBehind(`select n from /matrix/${name}/ order by n`)).toEqual([2, 3]);
});

test("a cursor is refused where a class of the other kind came into the tree, as ids are compared in another form", async () => {
  const name = await newClass("record");
  await query.rows(admin, `create class /matrix/${name}/below (n int) with kind='record'`);
  for (const path of [name, `${name}/below`]) await query.rows(admin, insert(path, numbers(4)));
  const statement = `select n from /matrix/${name}/ order by vtime limit 3`;
  const { meta, rows } = await query.run(admin, statement, { cursor: "" });
  for await (const page of rows) expect(page).toHaveLength(3);
  const { cursor = "" } = meta;
  const goOn = async () => (await query.run(admin, statement, { cursor })).rows;
  await expect(goOn()).resolves.toBeDefined();
  await query.rows(admin, `create class /matrix/${name}/other (n int) with kind='entity'`);
  await expect(goOn()).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringContaining("The cursor is none of this statement") as string,
  });
});
