import { ulid } from "ulid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { type NewRecord, ObjectService } from "../objects/index.ts";
import type { DataRule, Principal } from "../permissions/index.ts";
import { QueryService, rowGate, visibleObjects } from "./index.ts";

const LINE = "/matrix/line";
const admin = testPrincipal();
let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;

beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  query = new QueryService({ objects, runtime });
  await query.rows(
    admin,
    `create class ${LINE} (owner varchar, secret varchar) with kind=record;
    create class /matrix/own (owner varchar, Marks varchar) with kind=record`,
  );
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const ruled = (rule: Partial<DataRule>): Principal => ({
  ...admin,
  user: "ann",
  data: [{ class: "/matrix", access: "write", ...rule }],
});

async function gateOf(rule: Partial<DataRule>, path = LINE) {
  const principal = ruled(rule);
  return rowGate({ principal, catalog: await objects.catalog(principal) }, path, { objects, clock: realClock });
}

const denied = { code: "denied" };
const notFound = { code: "not_found" };

test.each(["secret", "SECRET"])("a hidden column is not written by its name in another case: %s", async (name) => {
  const gate = await gateOf({ hidden: ["Secret"] });
  await gate.check([{ values: { owner: "ann" } }]);
  await expect(gate.check([{ values: { owner: "ann", [name]: "x" } }])).rejects.toMatchObject(notFound);
});

test("a value by the name of a column in another case passes no row condition and is not stored", async () => {
  const gate = await gateOf({ where: "owner = 'ann'" });
  await expect(gate.check([{ values: { Owner: "ann" } }])).rejects.toMatchObject(denied);
  await gate.check([{ values: { owner: "ann", Owner: "bob" } }]);
  const record = { values: { owner: "ann", Owner: "bob" }, timeMs: realClock.nowMs(), identity: "case" };
  await expect(objects.unrestricted.ingest(ruled({}), LINE, [record])).rejects.toMatchObject(notFound);
});

test("a class is named in its own case alone", async () => {
  await expect(gateOf({}, "/matrix/Line")).rejects.toMatchObject(notFound);
  const closed = ruled({});
  const data = [...closed.data, { class: LINE, access: "none" as const }];
  for (const text of ["insert into /matrix/LINE owner='a'", "select * from /Matrix/line", "select * from /MATRIX/"])
    await expect(query.rows({ ...closed, data }, text)).rejects.toMatchObject(notFound);
});

test("a row condition is asked of a record with its marks, which its writer need not see", async () => {
  const values = { owner: "ann" };
  const marked: NewRecord["marked"] = { marks: ["malformed"] };
  const unmarked = await gateOf({ where: "marks is null", hidden: ["marks"] });
  await unmarked.check([{ values }]);
  await expect(unmarked.check([{ values }, { values, marked }])).rejects.toMatchObject(denied);
  const malformed = await gateOf({ where: "marks contains 'malformed'", hidden: ["marks"] });
  await malformed.check([{ values, marked }]);
  await expect(malformed.check([{ values }])).rejects.toMatchObject(denied);
});

test("marks are those of the platform alone, also beside a column of that name", async () => {
  const gate = await gateOf({ where: "Marks is null" }, "/matrix/own");
  await gate.check([{ values: { owner: "ann" }, marked: { marks: ["cut"] } }]);
  await expect(gate.check([{ values: { Marks: "mine" } }])).rejects.toMatchObject(denied);
});

test("a row condition is asked of a record with its own time", async () => {
  const rule = { where: "vtime >= '2020-01-01'" };
  const values = { owner: "ann" };
  const [early, late] = [Date.UTC(2019, 0, 1), Date.UTC(2021, 0, 1)];
  const gate = await gateOf(rule);
  await gate.check([{ values, timeMs: late }]);
  await expect(gate.check([{ values, timeMs: early }])).rejects.toMatchObject(denied);
  const id = ulid(early);
  await expect(gate.check([{ values: { ...values, id }, timeMs: late }])).rejects.toMatchObject(denied);
  const insert = (more: string) => query.rows(ruled(rule), `insert into ${LINE} (owner) values ('ann') ${more}`);
  await insert("at '2021-01-01'");
  await expect(insert("at '2019-01-01'")).rejects.toMatchObject(denied);
});
