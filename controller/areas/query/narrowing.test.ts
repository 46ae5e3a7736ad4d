import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import { QueryService, visibleObjects } from "./index.ts";

const admin = testPrincipal();
let engine: TestEngine;
let query: QueryService;

beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  query = new QueryService({
    objects: new ObjectService({ visible: visibleObjects, stores: engine, runtime }),
    runtime,
  });
  await query.rows(
    admin,
    "create class /matrix/log (host varchar, level int, msg text, labels set<varchar>, sizes map<varchar,int>, keys(host), index(host, level, labels, sizes))",
  );
});

afterAll(() => engine[Symbol.asyncDispose]());

test.each([
  ["a right side without fields is a value", "level = 1 + 2", "index level = 3 in class /matrix/log"],
  ["a function of values too", "host = lower('B')", "index host = b in class /matrix/log"],
  ["an expression beside it", "level = 3 and length(msg) > 2", "index level = 3 in class /matrix/log"],
  [
    "an expression that stands for itself",
    "level = 3 and regexp_match(msg, 'x')",
    "index level = 3 in class /matrix/log",
  ],
  ["a member of a set", "any(labels) = 'red'", "index labels = red in class /matrix/log"],
  ["a member of a set, on the right", "'red' = any(labels)", "index labels = red in class /matrix/log"],
  ["one of several members", "any(labels) in ('b', 'c')", "index labels = b or c in class /matrix/log"],
  ["no value of a map: its index knows keys", "any(sizes) = 1", "scan of class /matrix/log"],
  ["no part of a member", "any(labels) contains 're'", "scan of class /matrix/log"],
])("a condition on an indexed column narrows the read as its index allows: %s", async (_, where, step) => {
  const [first] = await query.rows(admin, `explain select host from /matrix/log where ${where}`);
  expect(first?.work).toBe(step);
});

test("a time made of now() narrows as a written one does: of records the span that is read", async () => {
  await query.rows(
    admin,
    "create class /matrix/line (n int) with kind='record'; insert into /matrix/line (n) values (1)",
  );
  const [entities] = await query.rows(admin, "explain select host from /matrix/log where vtime > ago('1 hour')");
  expect(entities?.work).toMatch(/^range vtime \d+\.\. in class \/matrix\/log$/);
  const [records] = await query.rows(admin, "explain select n from /matrix/line where vtime > ago('1 hour')");
  expect(records?.work).toMatch(/^timeline of \/matrix\/line, newest first, range vtime \d+\.\.$/);
});

test("so does one around a SELECT in FROM, by the column that it answers", async () => {
  const inside = "(select *, level as grade from /matrix/log where msg is not null) x";
  const [first] = await query.rows(admin, `explain select host from ${inside} where x.grade = 3 and host != 'a'`);
  expect(first?.work).toBe("for x: index level = 3 in class /matrix/log");
});
