import { afterAll, beforeAll, expect, test } from "vitest";
import { QUERY_DEFAULT_LIMIT_ROWS } from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import { QueryService, queryRoutes, searchRoutes, SearchService, visibleObjects } from "./index.ts";

const admin = testPrincipal();
const runtime = testRuntime(realClock);
const MORE = QUERY_DEFAULT_LIMIT_ROWS + 1;

let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;
let search: SearchService;

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  query = new QueryService({ objects, runtime });
  search = new SearchService({ objects, runtime });
  const classes = ["more", "just"].map((name) => `create class /matrix/${name} (host varchar, grp varchar, size int)`);
  await query.rows(admin, [...classes, "create class /matrix/log (line varchar) with kind='record'"].join(";"));
  for (const [name, count] of [
    ["more", MORE],
    ["just", QUERY_DEFAULT_LIMIT_ROWS],
  ] as const) {
    await objects.unrestricted.insert(
      admin,
      `/matrix/${name}`,
      Array.from({ length: count }, (_, n) => ({ host: `h${n}`, grp: "all", size: n })),
    );
  }
  await objects.unrestricted.insert(
    admin,
    "/matrix/log",
    Array.from({ length: MORE }, (_, n) => ({ line: `l${n}` })),
  );
});

afterAll(async () => {
  await objects.close();
  await engine.close();
});

async function answer(asked: Promise<Awaited<ReturnType<QueryService["run"]>>>) {
  const { rows, meta } = await asked;
  const pages = [];
  let atFirst: boolean | undefined;
  for await (const page of rows) {
    atFirst ??= meta.more;
    pages.push(...page);
  }
  return { count: pages.length, more: meta.more, atFirst };
}

const CUT = { count: QUERY_DEFAULT_LIMIT_ROWS, more: true, atFirst: true };
const WHOLE = { count: QUERY_DEFAULT_LIMIT_ROWS, more: undefined, atFirst: undefined };

test.each([
  "select * from /matrix/{}",
  "select host from /matrix/{} order by size desc",
  "select host from /matrix/{} where grp='all'",
  "select distinct host from /matrix/{}",
  "select distinct host from /matrix/{} order by host",
  "select host from /matrix/{} union select host from /matrix/{}",
  "select host from /matrix/{} union select host from /matrix/{} order by host",
  "select a.host from /matrix/{} a join (b:/matrix/{}) on a.host = b.host",
  "select a.host from /matrix/{} a join (b:/matrix/{}) on a.host = b.host order by a.size",
])("that the usual limit left rows out is told with the first of them: %s", async (text) => {
  expect(await answer(query.run(admin, text.replaceAll("{}", "more")))).toEqual(CUT);
  expect(await answer(query.run(admin, text.replaceAll("{}", "just")))).toEqual(WHOLE);
});

test("of records as well, and of searches", async () => {
  expect(await answer(query.run(admin, "select line from /matrix/log"))).toEqual(CUT);
  expect(await answer(search.search(admin, "#/matrix/more: grp=all"))).toEqual(CUT);
  expect(await answer(search.search(admin, "debug> #/matrix/more: grp=all | sort size"))).toEqual(CUT);
  expect(await answer(search.search(admin, "#/matrix/just: grp=all"))).toEqual(WHOLE);
});

test("nothing is told where a limit, a page or all rows were asked for", async () => {
  for (const tail of ["limit 5", `limit ${QUERY_DEFAULT_LIMIT_ROWS}`, "limit -1", "limit 5 cursor ''"]) {
    expect((await answer(query.run(admin, `select host from /matrix/more ${tail}`))).more, tail).toBeUndefined();
  }
  expect((await answer(search.search(admin, "#/matrix/more: grp=all | top 5"))).more).toBeUndefined();
  expect((await answer(query.run(admin, "select host, count(*) from /matrix/more group by host"))).count).toBe(MORE);
});

test("of several executions it is enough that one was cut", async () => {
  const told = await answer(
    query.run(admin, "select host from /matrix/more where grp = ?", { values: [["none"], ["all"]] }),
  );
  expect(told).toMatchObject({ count: QUERY_DEFAULT_LIMIT_ROWS, more: true });
});

test("over HTTP a header says so, also to those who did not ask for meta", async () => {
  await using http = await openTestHttp({ endpoints: [...queryRoutes({ query }), ...searchRoutes({ search })] });
  const session = await http.signIn("admin");
  const moreOf = async (url: string) =>
    (await http.app.inject({ method: "GET", url: `${url}&sessionid=${session}` })).headers["x-odp-more"];
  expect(await moreOf(`/mxobject/mql?mql=${encodeURIComponent("select * from /matrix/more")}`)).toBe("true");
  expect(await moreOf(`/mxobject/mql?mql=${encodeURIComponent("select * from /matrix/just")}`)).toBeUndefined();
  expect(await moreOf(`/mxobject/search?cond=${encodeURIComponent("#/matrix/more: grp=all")}`)).toBe("true");
  const body = (
    await http.app.inject({
      url: `/mxobject/mql?meta=true&mql=${encodeURIComponent("select * from /matrix/more")}&sessionid=${session}`,
    })
  ).json<{ meta: unknown }>();
  expect(body.meta).toMatchObject({ more: true });
});
