import { afterAll, beforeAll, expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../../objects/index.ts";
import { QueryService } from "../service.ts";
import { visibleObjects } from "../index.ts";

const admin = testPrincipal();
/** Increments of one object on each of two controllers. */
const INCREMENTS = Number(process.env["ODP_TEST_INCREMENTS"] ?? (onCluster ? 30 : 100));
const runtime = testRuntime(realClock);

let engine: TestEngine;
let controllers: readonly { readonly objects: ObjectService; readonly query: QueryService }[];

function controller(): (typeof controllers)[number] {
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  objects.registerSystemClass({
    path: "/owned",
    columns: [{ name: "a", type: "int", meaning: "A" }],
    guard: {
      reading: { permission: "objects:read" },
      permission: "objects:write",
      update: () => Promise.resolve(true),
    },
  });
  return { objects, query: new QueryService({ objects, runtime }) };
}

beforeAll(async () => {
  engine = await openTestEngine();
  controllers = [controller(), controller()];
  await ask(
    0,
    "create edge type leads; create class /matrix/box (host varchar, n int, left int, sold int, note text, keys(host))",
  );
  await ask(0, "insert into /matrix/box (host, n, left, sold) values ('a', 0, 7, 0), ('b', 1, 0, 0)");
});

afterAll(async () => {
  for (const { objects } of controllers) await objects.close();
  await engine[Symbol.asyncDispose]();
});

function ask(at: number, text: string): Promise<readonly Record<string, unknown>[]> {
  return controllers[at % 2]!.query.rows(admin, text);
}

test("of increments of one object on two controllers none is lost", { timeout: 120_000 }, async () => {
  const asked = Array.from({ length: 2 * INCREMENTS }, (_, at) =>
    ask(at, "update /matrix/box set n = n + 1 where host = 'a'"),
  );
  const counts = (await Promise.all(asked)).map(([row]) => row?.["count"]);
  expect(counts.every((count) => count === 1)).toBe(true);
  expect(await ask(0, "select n from /matrix/box where host = 'a'")).toEqual([{ n: 2 * INCREMENTS }]);
  const { kv } = await engine.tenant("matrix");
  expect((await kv.list("objectturns/")).entries).toEqual([]);
});

test("the condition still holds when an object is changed, so that nothing is sold twice", async () => {
  const asked = Array.from({ length: 20 }, (_, at) =>
    ask(at, "update /matrix/box set left = left - 1, sold = sold + 1 where host = 'a' and left > 0"),
  );
  const counts = (await Promise.all(asked)).map(([row]) => Number(row?.["count"]));
  expect(counts.reduce((sum, count) => sum + count)).toBe(7);
  expect(await ask(1, "select left, sold from /matrix/box where host = 'a'")).toEqual([{ left: 0, sold: 7 }]);
});

test("a repetition of what was computed at a chosen time changes nothing, also where it was written since", async () => {
  const [{ objects }] = controllers as [(typeof controllers)[number]];
  const ref = { id: "box:b", class: "/matrix/box" };
  const [writeUs = 0] = await objects.unrestricted.writeTimes(admin, [ref]);
  const grow = () =>
    objects.unrestricted.update(admin, ref, [], {
      writeUs,
      compute: ({ values }) => [{ column: "n", operation: "set", value: Number(values["n"]) + 1 }],
    });
  await grow();
  await grow();
  expect(await ask(1, "select n from /matrix/box where host = 'b'")).toEqual([{ n: 2 }]);
  await ask(1, "update /matrix/box set n = n * 10 where host = 'b'");
  await grow();
  expect(await ask(0, "select n from /matrix/box where host = 'b'")).toEqual([{ n: 20 }]);
});

test("what is written between the choice of a time and the write gets a later time, and is counted", async () => {
  const [{ objects }] = controllers as [(typeof controllers)[number]];
  const ref = { id: "box:b", class: "/matrix/box" };
  const [writeUs = 0] = await objects.unrestricted.writeTimes(admin, [ref]);
  await ask(1, "update /matrix/box set n = 5 where host = 'b'");
  const times: number[] = [];
  await objects.unrestricted.update(admin, ref, [], {
    writeUs,
    retimed: (laterUs) => Promise.resolve(void times.push(laterUs)),
    compute: ({ values }) => [{ column: "n", operation: "set", value: Number(values["n"]) + 1 }],
  });
  expect(times).toEqual([expect.toSatisfy((laterUs: number) => laterUs > writeUs)]);
  expect(await ask(0, "select n from /matrix/box where host = 'b'")).toEqual([{ n: 6 }]);
});

test("owners of classes are told values, and relations lead to what is named", async () => {
  await expect(ask(0, "update /matrix/owned set a = a + 1")).rejects.toMatchObject({ code: "invalid" });
  await expect(ask(0, "update /matrix/box set leads = host || 'x'")).rejects.toMatchObject({ code: "invalid" });
});
