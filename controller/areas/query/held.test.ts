import { afterEach, beforeEach, expect, test } from "vitest";
import { QUERY_TENANT_MEMORY_MAX_BYTES } from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import { PROCESS_MEMORY } from "./expressions/aggregates/memory.ts";
import { QueryService, SearchService, visibleObjects } from "./index.ts";

/** The tenant of this file alone: what the queries of a tenant hold is counted for the whole process. */
const TENANT = "held";
const admin = testPrincipal("administrator", TENANT);
const NAME = "x".repeat(1_000);
let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;
let search: SearchService;

beforeEach(async () => {
  engine = await openTestEngine();
  await engine.createTenant(TENANT);
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  query = new QueryService({ objects, runtime });
  search = new SearchService({ objects, runtime });
  await query.rows(
    admin,
    "create edge type t; create class /held/box (name varchar, parent varchar, keys(name)) with autosearch=true",
  );
  const rows = Array.from({ length: 30 }, (_, at) => ({ name: `${NAME}${at}`, t: [`box:${NAME}${(at + 1) % 30}`] }));
  await objects.unrestricted.insert(admin, "/held/box", rows);
});

afterEach(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const rowsOf = (count: number): string => Array.from({ length: count }, (_, at) => `('${NAME}${at}')`).join();

test.each([
  ["the objects that a MATCH meets", () => query.rows(admin, "match (:box)")],
  ["the ways that a MATCH finds", () => query.rows(admin, "match detail path (a:box)-[:t*2]->(b)")],
  ["the objects of a tree", () => searched("#/held/box: x* | call tree")],
  ["the objects of a graph", () => searched("#/held/box: x* | call graph")],
  ["the rows of an INSERT", () => query.rows(admin, `insert into /held/box (name) values ${rowsOf(30)}`)],
  [
    "the objects of an INSERT JSON",
    () =>
      query.rows(
        admin,
        `insert json '[${Array.from({ length: 30 }, (_, at) => `{"class":"/held/box","name":"${NAME}${at}"}`).join()}]'`,
      ),
  ],
  [
    "the tree of a text",
    () => query.rows(admin, Array.from({ length: 300 }, () => "select name from /held/box limit 1").join(";")),
  ],
])("%s count against the memory of the tenant and are free when it is over", async (_, run) => {
  const before = PROCESS_MEMORY.bytes;
  const others = PROCESS_MEMORY.share(admin.tenant);
  others.take(QUERY_TENANT_MEMORY_MAX_BYTES - 20_000);
  const refused = await run().catch((error: unknown) => error);
  others.close();
  expect(refused).toMatchObject({ code: "limited", details: { limit: "QUERY_TENANT_MEMORY_MAX_BYTES" } });
  expect(PROCESS_MEMORY.bytes).toBe(before);
  await run();
  expect(PROCESS_MEMORY.bytes).toBe(before);
});

async function searched(text: string): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const page of (await search.search(admin, text)).rows) found.push(...page);
  expect(JSON.stringify(found)).toContain(NAME);
  return found;
}
