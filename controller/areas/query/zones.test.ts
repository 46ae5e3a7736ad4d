import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { zoneWork } from "../../../common/calendar/zones.ts";
import { QUERY_ROW_ZONE_OFFSETS_MAX, QUERY_ZONE_OFFSETS_MAX } from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { MemoryObjects } from "../../../test/helpers/objects/memory/objects.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { Slices } from "./run/slice.ts";
import { QueryService, queryRoutes, SearchService, searchRoutes } from "./index.ts";

/** An evening on which Berlin has the last day of March and Kathmandu April. */
const NOW_MS = Date.UTC(2026, 2, 31, 19);
/** All formats there are. */
const MADE = 700 * 50;
const SAID = "no time zone";

let http: TestHttp;
let admin: string;
beforeAll(async () => {
  const objects = new MemoryObjects({ nowMs: () => NOW_MS });
  const clock = new TestClock();
  clock.advance(NOW_MS - clock.nowMs());
  const runtime = testRuntime(clock);
  for (const [path, options] of [
    ["/matrix/zoned", { timeZone: "Asia/Kathmandu" }],
    ["/matrix/plain", {}],
  ] as const) {
    await objects.createClass(testPrincipal(), { path, columns: [{ name: "at", type: "timestamp" }], options });
    await objects.unrestricted.insert(testPrincipal(), path, [{ at: NOW_MS }]);
  }
  http = await openTestHttp({
    endpoints: [
      ...queryRoutes({ query: new QueryService({ objects, runtime }) }),
      ...searchRoutes({ search: new SearchService({ objects, runtime }) }),
    ],
  });
  admin = await http.signIn("admin");
});
afterAll(() => http[Symbol.asyncDispose]());

/** The month that the one object lies in, and the ends of the search for it. */
async function month(session: string, path: string, { zone, own = "" }: { zone?: string; own?: string } = {}) {
  const mql = `select cast(date_trunc('month', at${own}) as text) as month from ${path}`;
  const payload = { mql, ...(zone === undefined ? {} : { time_zone: zone }) };
  const answer = await http.call(session, { method: "POST", url: "/mxobject/mql", payload });
  const [row] = answer.message as readonly { month: string }[];
  return row?.month.slice(5, 16);
}

async function found(session: string, path: string, condition: string, zone?: string): Promise<number> {
  const payload = { cond: `#${path}: | ${condition} for at`, ...(zone === undefined ? {} : { time_zone: zone }) };
  const answer = await http.call(session, { method: "POST", url: "/mxobject/search", payload });
  return (answer.message as readonly unknown[]).length;
}

async function userIn(zone: string): Promise<string> {
  const payload = {
    parent: "/",
    username: zone.replace("/", "-"),
    passwd: PASSWORD,
    otype: "usr",
    isadmin: true,
    config: { time_zone: zone },
  };
  await http.call(admin, { method: "POST", url: "/admin/users/new", payload });
  return http.signIn(payload.username);
}

test("the calendar is that of the statement, else of the call, else of the user, else of the class, else UTC", async () => {
  const berlin = await userIn("Europe/Berlin");
  expect(await month(admin, "/matrix/plain")).toBe("03-01 00:00");
  expect(await month(admin, "/matrix/zoned")).toBe("03-31 18:15");
  for (const path of ["/matrix/plain", "/matrix/zoned"]) {
    expect(await month(berlin, path)).toBe("02-28 23:00");
    expect(await month(berlin, path, { zone: "" }), "an empty field of a form").toBe("02-28 23:00");
    expect(await month(berlin, path, { zone: "+02:00" })).toBe("02-28 22:00");
    expect(await month(berlin, path, { zone: "+02:00", own: ", 'UTC'" })).toBe("03-01 00:00");
  }
});

test("a zone that does not exist, which a user has from an earlier version, is none", async () => {
  await userIn("Asia/Seoul");
  await http.users.update(testPrincipal(), "Asia-Seoul", { details: { config: { time_zone: "GMT+8" } } });
  expect(await month(await http.signIn("Asia-Seoul"), "/matrix/zoned")).toBe("03-31 18:15");
});

test("the zone of a class holds in MATCH however the class is named", async () => {
  const midnight = Date.UTC(2026, 2, 31, 18, 15);
  for (const node of ["/matrix/zoned", "/matrix/zoned/", "zoned"]) {
    const payload = { mql: `match (a:${node} where bucket(at, '1 day') = ${String(midnight)})` };
    const answer = await http.call(admin, { method: "POST", url: "/mxobject/mql", payload });
    const [row] = answer.message as readonly { graph: { nodes: readonly unknown[] } }[];
    expect(row?.graph.nodes, node).toHaveLength(1);
  }
});

test("periods and days of a search are those of the call, else of the user, else of the class, else UTC", async () => {
  const tokyo = await userIn("Asia/Tokyo");
  expect(await found(admin, "/matrix/plain", "today")).toBe(1);
  expect(await found(admin, "/matrix/plain", "window 2026-03-31 to 2026-03-31")).toBe(1);
  expect(await found(admin, "/matrix/zoned", "window 2026-03-31 to 2026-03-31")).toBe(0);
  expect(await found(tokyo, "/matrix/plain", "window 2026-04-01 to 2026-04-01")).toBe(1);
  expect(await found(tokyo, "/matrix/zoned", "window 2026-04-01 to 2026-04-01", "UTC")).toBe(0);
});

test("a zone that there is not is refused where it is given, and nothing is changed by it", async () => {
  const payload = { mql: "select at from /matrix/plain", cond: "#/matrix/plain: | today", time_zone: "Mars/Base" };
  for (const url of ["/mxobject/mql", "/mxobject/search"])
    expect(await http.call(admin, { method: "POST", url, payload })).toMatchObject({
      code: "invalid",
      message: expect.stringContaining(SAID) as string,
    });
  const user = { parent: "/", username: "ann", passwd: PASSWORD, otype: "usr", config: { time_zone: "Mars/Base" } };
  expect(await http.call(admin, { method: "POST", url: "/admin/users/new", payload: user })).toMatchObject({
    code: "invalid",
    message: `config.time_zone: there is ${SAID} "Mars/Base".`,
  });
});

test("FILL refuses a zone that is null, as no step has a beginning then", async () => {
  const mql = "select bucket(at, '1 day', ?) as day, count(*) as n from /matrix/plain group by day fill (0)";
  const payload = { mql, values: [[null]], time_zone: "Asia/Tokyo" };
  expect(await http.call(admin, { method: "POST", url: "/mxobject/mql", payload })).toMatchObject({
    code: "invalid",
    message: expect.stringContaining("FILL needs one bucket") as string,
  });
});

/** Every hour of two days around the change of the clocks, and the ids by days of the zone, latest first. */
test("pages in the order of days go on in the same zone only, and have every row once", async () => {
  const hours = Array.from({ length: 50 }, (_, at) => ({ at: Date.UTC(2026, 2, 28, 12 + at) }));
  await http.call(admin, {
    method: "POST",
    url: "/mxobject/mql",
    payload: { mql: "create class /matrix/hour (at timestamp, keys(at))" },
  });
  const values = hours.map(({ at }) => [at]);
  await http.call(admin, {
    method: "POST",
    url: "/mxobject/mql",
    payload: { mql: "insert into /matrix/hour at = ?", values },
  });
  const mql =
    "select at, date_trunc('day', at) as day from /matrix/hour order by date_trunc('day', at) desc, at limit 7";
  const page = (cursor: string, zone: string) =>
    http.call(admin, { method: "POST", url: "/mxobject/mql", payload: { mql, cursor, time_zone: zone, meta: true } });
  const rows: { readonly at: number; readonly day: number }[] = [];
  let cursor: string | undefined = "";
  while (cursor !== undefined) {
    const answer = await page(cursor, "Europe/Berlin");
    rows.push(...(answer.message as typeof rows));
    cursor = (answer as { readonly meta: { readonly cursor?: string } }).meta.cursor;
    if (cursor !== undefined)
      expect(await page(cursor, "Asia/Tokyo")).toMatchObject({
        code: "invalid",
        message: expect.stringContaining("The cursor is none") as string,
      });
  }
  expect(rows).toHaveLength(hours.length);
  const byDay = rows.toSorted((one, other) => other.day - one.day || one.at - other.at);
  expect(rows).toEqual(byDay);
  // 28 March from 13 o'clock, the 29th with 23 hours, the rest.
  const counts = [...new Set(rows.map(({ day }) => day))].map((day) => rows.filter((row) => row.day === day).length);
  expect(counts).toEqual([16, 23, 11]);
});

test.each([
  "select date_trunc('day', at) as day from /matrix/many order by n limit 2",
  "select n from /matrix/many where date_trunc('day', at) > '2020-01-01' order by n limit 2",
  "select n from /matrix/many order by date_trunc('day', at), n limit 2",
])("a cursor of %s goes on in its zone only", async (mql) => {
  const run = (payload: object) => http.call(admin, { method: "POST", url: "/mxobject/mql", payload });
  await run({ mql: "create class /matrix/many (n int, at timestamp, keys(n))" });
  await run({ mql: "insert into /matrix/many n = ?, at = ?", values: [1, 2, 3, 4, 5].map((n) => [n, NOW_MS + n]) });
  const first = await run({ mql, cursor: "", time_zone: "UTC" });
  const { cursor } = (first as unknown as { readonly meta: { readonly cursor: string } }).meta;
  expect(await run({ mql, cursor, time_zone: "UTC" })).toMatchObject({ status: "ok" });
  expect(await run({ mql, cursor, time_zone: "Asia/Tokyo" })).toMatchObject({
    code: "invalid",
    message: expect.stringContaining("The cursor is none") as string,
  });
});

describe("zones of one statement", () => {
  const ALL = Intl.supportedValuesOf("timeZone");
  const YEARS = 250;
  let query: QueryService;
  beforeAll(async () => {
    const objects = new MemoryObjects({ nowMs: () => NOW_MS, pageSize: YEARS });
    const times = Array.from({ length: YEARS }, (_, year) => Date.UTC(1850 + year, 5));
    const columns = ["at", "later"].map((name) => ({ name, type: "timestamp" as const }));
    await objects.createClass(testPrincipal(), { path: "/matrix/years", columns });
    await objects.unrestricted.insert(
      testPrincipal(),
      "/matrix/years",
      times.map((at) => ({ at, later: at + 90 * 86_400_000 })),
    );
    // At each look at the clock a slice is over.
    let nowMs = 0;
    query = new QueryService({ objects, runtime: { clock: { ...realClock, monotonicMs: () => (nowMs += 1_000) } } });
  });

  const days = (zones: readonly string[], column = "at") =>
    zones.map((zone, n) => `bucket(${column}, '1 day', '${zone}') as ${column}${n}`).join(", ");

  test("that are too many for its rows end it with the name of the bound, between two rows", async () => {
    const [pauses, before] = [vi.spyOn(Slices.prototype, "pause"), zoneWork()];
    await expect(
      query.rows(testPrincipal(), `select ${days(ALL.slice(0, 200))} from /matrix/years limit -1`),
    ).rejects.toMatchObject({ code: "too_large", details: { limit: "QUERY_ZONE_OFFSETS_MAX" } });
    expect(zoneWork() - before).toBeLessThan(QUERY_ZONE_OFFSETS_MAX + QUERY_ROW_ZONE_OFFSETS_MAX + MADE);
    expect(pauses.mock.calls.length).toBeGreaterThan(10);
    pauses.mockRestore();
  });

  test("that are too many for one row end it at that row", async () => {
    const before = zoneWork();
    const both = `${days(ALL)}, ${days(ALL, "later")}`;
    await expect(
      query.rows(testPrincipal(), `select ${both} from /matrix/years where at > '2090-01-01'`),
    ).rejects.toMatchObject({ code: "too_large", details: { limit: "QUERY_ROW_ZONE_OFFSETS_MAX" } });
    expect(zoneWork() - before).toBeLessThan(2 * QUERY_ROW_ZONE_OFFSETS_MAX + MADE);
  });

  test("are as many as there are, for one time, and each is made once", async () => {
    const text = `select ${days(ALL)} from /matrix/years where at = '2026-06-01'`;
    expect(await query.rows(testPrincipal(), text)).toHaveLength(1);
    const before = zoneWork();
    await query.rows(testPrincipal(), text);
    expect(zoneWork()).toBe(before);
  });
});
