import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { QueryService, visibleObjects } from "../index.ts";

const admin = testPrincipal();
const ann: Principal = {
  ...admin,
  data: [
    { class: "/matrix/door", access: "write" },
    { class: "/matrix/shut", access: "none" },
  ],
};

let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;

beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  query = new QueryService({ objects, runtime });
  await query.rows(
    admin,
    `create edge type leads; create class /matrix/shut (code varchar, keys(code));
    create class /matrix/door (name varchar, keys(name));
    insert into /matrix/shut code='a'; insert into /matrix/door name='a'`,
  );
});
afterAll(async () => {
  await objects.close();
  await engine.close();
});

test.each([
  "update /matrix/door leads='LABEL:a' where name='a'",
  "update /matrix/door leads='LABEL:none' where name='a'",
  "update /matrix/door leads=leads - 'LABEL:a' where name='a'",
  "insert into /matrix/door name='b', leads='LABEL:a'",
  'insert json \'{"class":"/matrix/door","name":"b","leads":["LABEL:a"]}\'',
  "begin insert into /matrix/door name='b', leads='LABEL:a' end",
])("a class that the writer may not read is as missing as one that nobody made: %s", async (text) => {
  const told = (label: string) =>
    query.rows(ann, text.replace("LABEL", label)).then(
      () => "written",
      (error: Error) => error.message.replaceAll(label, "LABEL"),
    );
  expect(await told("shut")).toContain("[NotExist] Not Found Class For ID LABEL:");
  expect(await told("shut")).toBe(await told("shot"));
  expect(await query.rows(admin, "select name, leads from /matrix/door")).toEqual([{ name: "a", leads: null }]);
});

test("who may read the class relates to its objects", async () => {
  await query.rows(admin, "update /matrix/door leads='shut:a' where name='a'");
  expect(await query.rows(admin, "select leads from /matrix/door")).toEqual([{ leads: ["shut:a"] }]);
});
