import { afterAll, beforeAll, expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../../objects/index.ts";
import type { DataRule, Principal } from "../../permissions/index.ts";
import { QueryService, visibleObjects } from "../index.ts";

const BOX = "/matrix/box";
const admin = testPrincipal();
let engine: TestEngine;
let objects: ObjectService;

beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ stores: engine, runtime, visible: visibleObjects });
  const query = new QueryService({ objects, runtime });
  await query.rows(admin, `create class ${BOX} (name varchar, owner varchar, secret varchar, keys(name))`);
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const box = (owner: string) => ({ id: "box:a", values: { name: "a", owner }, vtimeMs: 0, ctimeMs: 0 });
const OWN: DataRule = { class: BOX, access: "write", where: "owner = 'ann'", hidden: ["secret"] };

async function filterOf(...data: readonly DataRule[]) {
  const ann: Principal = { ...admin, user: "ann", data };
  return objects.visible.of(ann, BOX);
}

test("what a principal may write by other ways than a statement is seen before and after, and has no hidden column", async () => {
  const { mayWrite } = await filterOf(OWN);
  const [ann, bob] = [box("ann"), box("bob")];
  expect(mayWrite(["owner"], { before: ann, after: ann })).toBe(true);
  expect(mayWrite(["owner"], { after: ann }), "made").toBe(true);
  expect(mayWrite(["owner"], { before: ann }), "removed").toBe(true);
  expect(mayWrite(["secret"], { before: ann, after: ann }), "a hidden column").toBe(false);
  expect(mayWrite(["owner"], { before: bob, after: ann }), "taken from another").toBe(false);
  expect(mayWrite(["owner"], { before: ann, after: bob }), "given to another").toBe(false);
  expect(mayWrite(["owner"], { after: bob }), "made for another").toBe(false);
  expect(mayWrite(["owner"], { before: bob }), "removed of another").toBe(false);
});

test("where only reading is open nothing is written", async () => {
  const { mayWrite, sees } = await filterOf({ ...OWN, access: "read" });
  expect(sees(box("ann"))).toBe(true);
  expect(mayWrite(["owner"], { before: box("ann"), after: box("ann") })).toBe(false);
});

test("what one group reads and another one writes is not written together", async () => {
  const read: DataRule = { class: BOX, access: "read", group: "1" };
  const { mayWrite, sees } = await filterOf(read, { ...OWN, group: "2" });
  expect(sees(box("bob"))).toBe(true);
  expect(mayWrite(["owner"], { before: box("bob"), after: box("bob") })).toBe(false);
  expect(mayWrite(["owner"], { before: box("ann"), after: box("ann") })).toBe(true);
});
