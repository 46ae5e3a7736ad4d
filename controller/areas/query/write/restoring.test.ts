import { afterAll, beforeAll, expect, test } from "vitest";
import { UNSTORED_TOLD_MAX } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../../objects/index.ts";
import { QueryService } from "../service.ts";
import { visibleObjects } from "../index.ts";

const admin = testPrincipal();
const runtime = testRuntime(realClock);
const STAYS_REMOVED = "it was removed at the time of the write or later.";
const IN_HISTORY = "it was removed at the time of the write or later; only its history has the row.";
const HAS_ENDED = "the ttl of its class was over before the write.";

let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  const controllers = { own: "one", has: (id: string) => id === "one" };
  query = new QueryService({ objects, runtime, batches: { stores: engine, controllers, objects, runtime } });
  await rows(`create class /matrix/box (host varchar, size int, keys(host)) with version=true;
    create class /matrix/brief (host varchar, keys(host)) with ttl=60;
    create class /matrix/line (n int, word varchar, index(word)) with kind='record';
    create class /matrix/flash (n int) with kind='record', ttl=60`);
});
afterAll(async () => {
  await query.close();
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const rows = (text: string): Promise<readonly Row[]> => query.rows(admin, text);

/** The one row of the answer, and the warnings. */
async function told(text: string): Promise<{ readonly row: Row | undefined; readonly warnings: unknown }> {
  const { rows: pages, warnings = [] } = await query.run(admin, text);
  const found: Row[] = [];
  for await (const page of pages) found.push(...page);
  return { row: found[0], warnings };
}

async function newLine(n: number, word: string): Promise<string> {
  const [row] = await rows(`insert into /matrix/line n=${n}, word='${word}'`);
  return (row?.["ids"] as readonly string[])[0] ?? "";
}

const lines = (where: string): Promise<readonly Row[]> => rows(`select n, word from /matrix/line where ${where}`);

for (const [way, wrapped] of [
  ["alone", (text: string) => text],
  ["in a batch", (text: string) => `begin ${text}; end`],
] as const) {
  test(`a record that was deleted is inserted again ${way}, as often as it is deleted`, async () => {
    const id = await newLine(1, "first");
    for (const word of ["first", "second", "first"]) {
      await rows(`delete from /matrix/line where id = '${id}'`);
      expect(await lines(`id = '${id}'`)).toEqual([]);
      const insert = wrapped(`insert into /matrix/line (id, n, word) values ('${id}', 1, '${word}')`);
      expect(await told(insert)).toEqual({ row: { count: 1, ids: [id] }, warnings: [] });
      for (const where of [`id = '${id}'`, `word = '${word}'`])
        expect(await lines(`${where} and n = 1`)).toEqual([{ n: 1, word }]);
    }
    await rows(`delete from /matrix/line where id = '${id}'`);
    expect(await lines(`id = '${id}'`)).toEqual([]);
  });

  test(`a record that is there gets the values of the last INSERT with its id ${way}, also within one`, async () => {
    const id = await newLine(2, "zz");
    const values = (...words: string[]): string =>
      wrapped(`insert into /matrix/line (id, n, word) values ${words.map((word) => `('${id}', 2, '${word}')`).join()}`);
    for (const words of [["aa"], ["zz"], ["cc", "bb"], ["dd", "bb"]]) {
      await rows(values(...words));
      expect(await lines(`id = '${id}'`)).toEqual([{ n: 2, word: words.at(-1) }]);
    }
    expect(await lines("word = 'zz' and n = 2")).toEqual([]);
    await rows(`delete from /matrix/line where id = '${id}'`);
  });

  test(`an INSERT … AT before a removal ${way} is told and not counted`, async () => {
    const at = new Date(Date.now() - 60_000).toISOString();
    await rows("insert into /matrix/box (host, size) values ('gone', 1), ('there', 1)");
    await rows("delete from /matrix/box where host = 'gone'");
    const insert = wrapped(`insert into /matrix/box (host, size) values ('gone', 2), ('there', 2) at '${at}'`);
    expect(await told(insert)).toEqual({
      row: { count: 1, ids: ["box:there"] },
      warnings: [`box:gone does not exist: ${IN_HISTORY}`],
    });
    const then = await rows(`select host, size from /matrix/box as of ${Date.now() - 30_000} where host = 'gone'`);
    expect(then).toEqual([{ host: "gone", size: 2 }]);
    expect(await rows("select host, size from /matrix/box")).toEqual([{ host: "there", size: 1 }]);
    expect(await told("insert into /matrix/box (host, size) values ('gone', 3)")).toEqual({
      row: { count: 1, ids: ["box:gone"] },
      warnings: [],
    });
    await rows("delete from /matrix/box");
  });

  test(`what has ended by its time when it is inserted ${way} is told and not counted`, async () => {
    const at = "2020-01-01 00:00:00";
    // Each way its own object: Cassandra keeps one up to a second beyond its end.
    expect(await told(wrapped(`insert into /matrix/brief (host) values ('${way}') at '${at}'`))).toEqual({
      row: { count: 0, ids: [] },
      warnings: [`brief:${way} does not exist: ${HAS_ENDED}`],
    });
    const flash = await told(wrapped(`insert into /matrix/flash (n) values (1), (2) at '${at}'`));
    expect(flash.row).toEqual({ count: 0, ids: [] });
    expect(flash.warnings).toEqual([expect.stringContaining(HAS_ENDED), expect.stringContaining(HAS_ENDED)]);
    expect(await rows("select n from /matrix/flash")).toEqual([]);
  });
}

test("a record comes back by an INSERT … AT of any time, alone and in a batch: AT is no time of its id", async () => {
  const id = await newLine(3, "first");
  for (const wrapped of [(text: string) => text, (text: string) => `begin ${text}; end`]) {
    for (let time = 0; time < 2; time += 1) {
      await rows(`delete from /matrix/line where id = '${id}'`);
      const insert = `insert into /matrix/line (id, n, word) values ('${id}', 3, 'then') at '2020-01-01 00:00:00'`;
      expect(await told(wrapped(insert))).toEqual({ row: { count: 1, ids: [id] }, warnings: [] });
      expect(await lines(`id = '${id}'`)).toEqual([{ n: 3, word: "then" }]);
    }
  }
});

test("an object that is there is not said to have ended by an earlier write", async () => {
  await rows("insert into /matrix/brief (host) values ('there')");
  expect(await told("insert into /matrix/brief (host) values ('there') at '2020-01-01 00:00:00'")).toEqual({
    row: { count: 1, ids: ["brief:there"] },
    warnings: [],
  });
  expect(await rows("select host from /matrix/brief where host = 'there'")).toEqual([{ host: "there" }]);
});

test("of many rows that are not stored some are told by name, and all are counted", async () => {
  const count = UNSTORED_TOLD_MAX + 5;
  const values = Array.from({ length: count }, (_, n) => `(${n})`).join();
  const { row, warnings } = await told(`insert into /matrix/flash (n) values ${values} at '2020-01-01 00:00:00'`);
  expect(row).toEqual({ count: 0, ids: [] });
  expect(warnings).toHaveLength(UNSTORED_TOLD_MAX + 1);
  expect((warnings as readonly string[]).at(-1)).toBe("5 more rows do not exist.");
});

test("a source that repeats itself brings nothing back that was deleted, and changes nothing that was inserted since", async () => {
  const record = { values: { n: 9, word: "of a source" }, timeMs: Date.now(), identity: "stream/1" };
  const repeat = (): Promise<readonly string[]> => objects.unrestricted.ingest(admin, "/matrix/line", [record]);
  const [id = ""] = await repeat();
  const named = { ...record, values: { ...record.values, id } };
  await rows(`delete from /matrix/line where id = '${id}'`);
  await repeat();
  await objects.unrestricted.ingest(admin, "/matrix/line", [named]);
  expect(await lines(`id = '${id}'`)).toEqual([]);
  await rows(`insert into /matrix/line (id, n, word) values ('${id}', 9, 'by hand')`);
  await repeat();
  await objects.unrestricted.ingest(admin, "/matrix/line", [named]);
  expect(await lines(`id = '${id}'`)).toEqual([{ n: 9, word: "by hand" }]);
});

test("a record of a time to come is deleted and inserted again, and it is told where it stays removed", async () => {
  for (const at of ["2090-05-05 00:00:00", "9999-12-31 23:59:59"]) {
    const { row } = await told(`insert into /matrix/line (n, word) values (7, 'far') at '${at}'`);
    const id = (row?.["ids"] as readonly string[])[0];
    const insert = `insert into /matrix/line (id, n, word) values ('${id}', 7, 'further')`;
    for (let time = 0; time < 3; time += 1) {
      await rows(`delete from /matrix/line where id = '${id}'`);
      expect(await told(insert)).toEqual({ row: { count: 1, ids: [id] }, warnings: [] });
      expect(await lines(`id = '${id}'`)).toEqual([{ n: 7, word: "further" }]);
    }
    await rows(`delete from /matrix/line where id = '${id}'`);
    // The times of a batch are given without looking at what it names, and here they are below the removal.
    const warnings = [`${id} does not exist: ${STAYS_REMOVED}`];
    expect(await told(`begin ${insert}; end`)).toEqual({ row: { count: 0, ids: [] }, warnings });
    expect(await lines(`id = '${id}'`)).toEqual([]);
  }
});
