import { afterAll, beforeAll, expect, test } from "vitest";
import type { Row, Value } from "../../../common/value.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { QueryService, visibleObjects } from "./index.ts";

const ROWS = 120;
const QUERIES = 80;
const COLUMNS =
  "n int, host varchar, owner varchar, took double, big bigint, up boolean, seen timestamp, tags set<varchar>, ports list<int>, config map<varchar,varchar>";
const admin = testPrincipal();
const random = seededRandom(17);

let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;

/** The same rows in both: a record is read column by column, an entity cell by cell. */
beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  query = new QueryService({ objects, runtime });
  await query.rows(
    admin,
    `create class /matrix/kept (${COLUMNS}, keys(n), index(host));
     create class /matrix/line (${COLUMNS}, index(host)) with kind=record;
     create class /matrix/line/brief (more varchar) with kind=record, ttl=86400`,
  );
  const rows = Array.from({ length: ROWS }, (_, n) => rowOf(n));
  await objects.unrestricted.insert(admin, "/matrix/kept", rows);
  await objects.unrestricted.insert(admin, "/matrix/line", rows.slice(0, ROWS / 2));
  await objects.unrestricted.insert(admin, "/matrix/line/brief", rows.slice(ROWS / 2));
});

afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

function one<T>(of: readonly T[]): T {
  return of[Math.floor(random.next() * of.length)]!;
}

const VALUES: Readonly<Record<string, readonly Value[]>> = {
  host: ["h1", "h2", "é".repeat(9), "x".repeat(300), ""],
  owner: ["bob", "ann"],
  took: [0, 0.5, -1.25, 1e300, 7],
  big: ["9007199254740993", 5, -4_294_967_296],
  up: [true, false],
  seen: [0, Date.UTC(2026, 2, 1), -1],
  tags: [[], ["a"], ["a", "b/c"]],
  ports: [[80], [443, 22], [70_000, -70_000]],
  config: [{ os: "linux" }, { deep: "x", os: "bsd" }],
};

/** Some of its columns are not set. */
function rowOf(n: number): Row {
  const set = Object.entries(VALUES).filter(() => random.next() < 0.8);
  return { n, ...Object.fromEntries(set.map(([name, values]) => [name, one(values)])) };
}

const CONDITIONS = [
  ...[
    "took > 0",
    "took is null",
    "up = true",
    "not (up = true)",
    "host = 'h1'",
    "host like 'h*'",
    "n between 10 and 90",
  ],
  ...["tags contains 'a'", "config.os = 'linux'", "ports contains 443", "big > 6", "seen >= '2026-01-01'"],
  ...["length(host) > 2", "owner = 'bob' or took * 2 < (n)"],
];
const LISTS = [
  ...["*", "n, host", "n, tags, config", "n, took * 2 as twice, coalesce(host, '-') as h", "n, config.os, ports"],
  ...["distinct owner, up", "count(*) as c, sum(n) as s, max(took) as m", "owner, count(*) as c, min(host) as h"],
  ...["big, avg(n) as a", "config, count(distinct host) as d", "tags, top(owner, 2) as t"],
];
const GROUPED: Readonly<Record<string, string>> = { owner: "owner", big: "big", config: "config", tags: "tags" };

function drawn(): (path: string) => string {
  const list = one(LISTS);
  const wanted = Array.from({ length: Math.floor(random.next() * 3) }, () => one(CONDITIONS));
  const where = wanted.length > 0 ? ` where ${wanted.map((condition) => `(${condition})`).join(" and ")}` : "";
  const key = /count|avg|top/.test(list) ? GROUPED[list.split(",")[0] ?? ""] : undefined;
  return (path) => `select ${list} from ${path}${where}${key ? ` group by ${key}` : ""} limit -1`;
}

/** Without what differs by the kind of the class, in one order. */
function plain(rows: readonly Row[]): readonly string[] {
  return rows
    .map(({ id: _id, class: _class, vtime: _v, ctime: _c, mtime: _m, day: _d, more: _more, ...row }) =>
      JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))),
    )
    .sort();
}

const bob: Principal = {
  ...admin,
  grants: ["*:read"],
  data: ["kept", "line"].map((name) => ({
    class: `/matrix/${name}`,
    access: "read",
    where: "owner = 'bob' and (took >= 0 or up = true)",
    hidden: ["big"],
  })),
};

test.each([
  ["who sees all", admin],
  ["who sees some rows and columns", bob],
])("records answer what entities of the same values answer, to one %s", async (_, who) => {
  let answered = 0;
  for (let at = 0; at < QUERIES; at += 1) {
    const textOf = drawn();
    if (who === bob && textOf("").includes("big")) continue;
    const wanted = plain(await query.rows(who, textOf("/matrix/kept/")));
    expect([textOf("x"), plain(await query.rows(who, textOf("/matrix/line/")))]).toEqual([textOf("x"), wanted]);
    answered += wanted.length;
  }
  expect(answered).toBeGreaterThan(QUERIES);
});
