import { withReplaced } from "../../../test/helpers/objects/replaced.ts";
import { ulid } from "ulid";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mapLimited } from "../../../common/concurrency.ts";
import type { Row } from "../../../common/value.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { QueryService, visibleObjects } from "./index.ts";

const OBJECTS = 120;
const ROUNDS = 6;
const ROOT = "/matrix/counted";
const admin = testPrincipal();
const runtime = testRuntime(realClock);

let engine: TestEngine;
let objects: ObjectService;
let other: ObjectService;
let query: QueryService;

/** Objects in two classes whose values changed again and again, some by writes that came late and lost. */
beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  other = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  query = new QueryService({ objects, runtime });
  await query.rows(
    admin,
    `create class ${ROOT} (code varchar, host varchar, level int, up boolean, part float, note varchar, keys(code), index(host, level, up, part));
     create class ${ROOT}/below (more varchar)`,
  );
  const codes = Array.from({ length: OBJECTS }, (_, n) => n);
  for (let round = 0; round < ROUNDS; round += 1) {
    const rows = codes.map((n) => ({ code: `c${n}`, ...valuesOf(n, round) }));
    await mapLimited([0, 1], 2, (half) =>
      (round % 2 === 0 ? objects : other).unrestricted.insert(
        admin,
        half === 0 ? ROOT : `${ROOT}/below`,
        rows.filter((_, n) => n % 2 === half),
      ),
    );
  }
  const late = codes.slice(0, 20).map((n) => ({ code: `c${2 * n}`, host: "late", level: 77 }));
  await objects.unrestricted.insert(admin, ROOT, late, { atMs: Date.UTC(2020, 0, 1) });
  const removed = codes.slice(100).map((n) => ({ id: `${n % 2 === 0 ? "counted" : "below"}:c${n}` }));
  await objects.unrestricted.remove(admin, removed);
});

afterAll(async () => {
  await other.close();
  await objects.close();
  await engine.close();
});

function valuesOf(n: number, round: number): Row {
  return {
    host: `h${(n * 7 + round) % 4}`,
    ...((n + round) % 5 === 0 ? {} : { level: (n + round) % 3 }),
    up: (n + round) % 2 === 0,
    part: 0.1 * (n % 3),
    note: `n${n % 4}`,
  };
}

/** Fails where a row is read. */
function withoutRows(): QueryService {
  const unread = withReplaced(objects, {
    read() {
      throw new Error("rows were read");
    },
  });
  return new QueryService({ objects: unread, runtime });
}

const rows = (mql: string, principal: Principal = admin) => query.rows(principal, mql);

/** The same by rows, which tell each object. */
async function counted(condition: string, from = `${ROOT}/`): Promise<number> {
  return (await rows(`select id from ${from} ${condition} limit -1`)).length;
}

describe("a count of records", () => {
  const LOG = "/matrix/countedlog";
  const startMs = realClock.nowMs() - 100_000;
  /** A day before the others, so that there are records of two days. */
  const timeOf = (n: number): number => startMs + 500 * n - (n < 20 ? 86_400_000 : 0);

  beforeAll(async () => {
    await objects.createClass(admin, {
      path: LOG,
      kind: "record",
      columns: [
        { name: "host", type: "varchar" },
        { name: "level", type: "int" },
        { name: "up", type: "boolean" },
        { name: "part", type: "float" },
        { name: "note", type: "varchar" },
      ],
      indexes: ["host", "level", "part"],
    });
    await objects.createClass(admin, { path: `${LOG}/below`, kind: "record", columns: [] });
    const logged = Array.from({ length: OBJECTS }, (_, n) => ({ id: ulid(timeOf(n)), ...valuesOf(n, 0) }));
    await objects.unrestricted.insert(admin, LOG, logged.slice(0, 90));
    await other.unrestricted.insert(admin, `${LOG}/below`, logged.slice(90));
    await other.unrestricted.insert(admin, LOG, logged.slice(0, 5));
    await objects.unrestricted.remove(
      admin,
      logged.slice(0, 30).map(({ id }) => ({ id: `countedlog:${id}` })),
    );
  });

  /** `@n` is the time of the record of that number. */
  const timed = (condition: string): string => condition.replace(/@(\d+)/g, (_, n) => String(timeOf(Number(n))));

  test.each([
    "",
    "where host = 'h1'",
    "where host in ('h1', 'h2', 'none') and level = 2",
    "where part = 0.1",
    "where note = 'n1'",
    "where vtime >= @40",
    "where vtime > @40 and vtime < @100",
    "where vtime between @40 and @100 and host = 'h0'",
    "where ctime <= @35",
    "where vtime < @25",
    "where vtime > @100 and vtime < @40",
    "where level > 0",
  ])("is that of the rows, without those that were removed: %s", async (text) => {
    const condition = timed(text);
    for (const from of [LOG, `${LOG}/`, `${LOG}/below`]) {
      const n = await counted(condition, from);
      expect(await rows(`select count(*) as n from ${from} ${condition}`)).toEqual([{ n }]);
      const told = await rows(`select level, count(*) as n from ${from} ${condition} group by level`);
      expect(told.reduce((sum, row) => sum + Number(row["n"]), 0)).toBe(n);
    }
    expect(await counted("", `${LOG}/`)).toBe(OBJECTS - 30);
  });

  test("makes no rows where times and indexes tell, and EXPLAIN says so", async () => {
    for (const [condition, isCounted] of [
      ["", true],
      ["where vtime > @40", true],
      ["where host = 'h1'", true],
      ["where note = 'n1'", false],
      ["where level > 0", false],
    ] as const) {
      const mql = `select count(*) as n from ${LOG}/ ${timed(condition)}`;
      const steps = (await rows(`explain ${mql}`)).map((row) => row["work"]);
      expect(steps.includes("counted without rows"), mql).toBe(isCounted);
      const answer = withoutRows().rows(admin, mql);
      if (isCounted) expect(await answer).toEqual(await rows(mql));
      else await expect(answer).rejects.toThrow("rows");
    }
  });

  test("of what has expired is none of it, whether it is looked for by a value or not", async () => {
    await objects.createClass(admin, {
      path: "/matrix/brieflog",
      kind: "record",
      columns: [{ name: "host", type: "varchar" }],
      indexes: ["host"],
      options: { ttlSeconds: 1 },
    });
    await objects.unrestricted.insert(admin, "/matrix/brieflog", [{ host: "a" }, { host: "b" }]);
    for (const mql of [
      "select count(*) as n from /matrix/brieflog",
      "select count(*) as n from /matrix/brieflog where host = 'a'",
    ])
      await expect.poll(() => rows(mql), { timeout: 30_000 }).toEqual([{ n: 0 }]);
  });
});

describe("a count", () => {
  test.each([
    "",
    "where host = 'h1'",
    "where host = 'late'",
    "where level = 77",
    "where host = 'h1' and level = 2",
    "where host in ('h1', 'h3', 'late') and up = true",
    "where level in (0, 1) and host = 'h0' and up = false",
    "where host = 'none'",
    "where host = 'h1' and note = 'n1'",
    "where part = 0.1",
    "where host = 'h1' or level = 1",
    "where host != 'h1'",
    "where host = 'h1' and id = 'counted:c2'",
    "where level = '1'",
  ])("is that of the rows: %s", async (condition) => {
    for (const from of [ROOT, `${ROOT}/`, `${ROOT}/below`])
      expect(await rows(`select count(*) as n from ${from} ${condition}`)).toEqual([
        { n: await counted(condition, from) },
      ]);
  });

  test("for each value is that of the rows, with HAVING, ORDER BY and LIMIT", async () => {
    const all = await rows(`select host, level from ${ROOT}/ where up = true limit -1`);
    for (const column of ["host", "level"]) {
      const wanted = new Map<unknown, number>();
      for (const row of all) wanted.set(row[column] ?? null, (wanted.get(row[column] ?? null) ?? 0) + 1);
      const told = await rows(`select ${column}, count(*) as n from ${ROOT}/ where up = true group by ${column}`);
      expect(new Map(told.map((row) => [row[column], row["n"]]))).toEqual(wanted);
    }
    const most = await rows(
      `select host, count(*) as n from ${ROOT}/ group by host having count(*) > 1 order by n desc, host limit 2`,
    );
    expect(most).toHaveLength(2);
    expect(most[0]?.["n"]).toBeGreaterThanOrEqual(Number(most[1]?.["n"]));
  });

  test("makes no rows where indexes tell", async () => {
    for (const mql of [
      `select count(*) as n from ${ROOT}/`,
      `select count(*) as n from ${ROOT}/ where host = 'h1' and up in (true, false)`,
      `select host, count(*) as n from ${ROOT}/ where level = 1 group by host`,
    ])
      expect(await withoutRows().rows(admin, mql)).toEqual(await rows(mql));
    await expect(withoutRows().rows(admin, `select count(*) from ${ROOT}/ where note = 'n1'`)).rejects.toThrow("rows");
  });

  test("is of those rows that the principal may see", async () => {
    const few: Principal = {
      ...admin,
      user: "few",
      data: [
        { class: ROOT, access: "read", where: "level = 1", hidden: ["up"] },
        { class: `${ROOT}/below`, access: "none" },
      ],
    };
    const own = await counted("where level = 1", ROOT);
    expect(own).toBeGreaterThan(0);
    expect(await rows(`select count(*) as n from ${ROOT}/`, few)).toEqual([{ n: own }]);
    await expect(rows(`select count(*) as n from ${ROOT}/ where up = true`, few)).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("of what has expired is none of it", async () => {
    await rows(`create class /matrix/shortlived (code varchar, keys(code)) with ttl='1 second'`);
    await objects.unrestricted.insert(admin, "/matrix/shortlived", [{ code: "a" }]);
    await expect
      .poll(() => rows("select count(*) as n from /matrix/shortlived"), { timeout: 30_000 })
      .toEqual([{ n: 0 }]);
  });
});
