import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GRAPH_EDGES_MAX } from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { HostObjects } from "../../scripting/index.ts";
import { type ObjectEdge, ObjectService } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { AI_HOST_OBJECT, graphHostObject } from "./graph-host-objects.ts";
import { QueryService, visibleObjects } from "./index.ts";
import type { Value } from "../../../common/value.ts";

const admin = testPrincipal();
const MATCH = "MATCH (:/matrix/app)-[:uses*5]->(:/matrix/app)";

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
    `create class /matrix/app (name varchar, keys(name)); create edge type uses;
     insert into /matrix/app (name) values ('db'), ('queue'), ('alone');
     insert into /matrix/app (name, uses) values ('api', ["app:db", "app:queue"]);
     insert into /matrix/app (name, uses) values ('web', ["app:api"]), ('mail', ["app:smtp"]), ('smtp', ["app:smtp"])`,
  );
});

afterAll(async () => {
  await objects.close();
  await engine.close();
});

function call(
  name: string,
  args: readonly Value[],
  principal: Principal = admin,
  over: Pick<ObjectService, "visible"> = objects,
): Promise<Value | undefined> {
  const bound = new HostObjects([graphHostObject({ query, objects: over }), AI_HOST_OBJECT]).bind({
    principal,
    kind: "serverjs",
    log: () => undefined,
    beforeChange: () => Promise.resolve(),
    load: () => Promise.reject(new Error("there is none")),
  });
  return bound.call({ name, args, signal: new AbortController().signal });
}

const connected = (ids: readonly string[], level: number, principal?: Principal) =>
  call("graphalg.connectedGraphs", [[...ids], level], principal);

describe("graphalg", () => {
  test("endpoints are the nodes of a MATCH with one neighbour at most", async () => {
    expect(JSON.parse(String(await call("graphalg.endpoints", [MATCH])))).toEqual([
      "app:alone",
      "app:db",
      "app:mail",
      "app:queue",
      "app:smtp",
      "app:web",
    ]);
    await expect(call("graphalg.endpoints", ["SELECT * FROM /matrix/app"])).rejects.toMatchObject({ code: "invalid" });
    await expect(call("graphalg.endpoints", ["MATCH ("])).rejects.toMatchObject({ code: "syntax" });
  });

  test.each([
    [["app:web", "app:mail"], 0, [["app:mail"], ["app:web"]]],
    [
      ["app:web", "app:mail"],
      1,
      [
        ["app:api", "app:web"],
        ["app:mail", "app:smtp"],
      ],
    ],
    [["app:db", "app:queue"], 1, [["app:api", "app:db", "app:queue"]]],
    [["app:db", "app:alone"], 9, [["app:api", "app:db", "app:queue", "app:web"], ["app:alone"]]],
    [["app:smtp", "app:smtp"], 3, [["app:mail", "app:smtp"]]],
    [[], 3, []],
  ] as const)("connectedGraphs of %j within %i steps", async (ids, level, groups) => {
    expect(await connected(ids, level)).toEqual(groups);
  });

  test("walks over nothing that the caller may not see, and no further than its bounds", async () => {
    const few: Principal = {
      ...admin,
      user: "few",
      grants: ["*:read"],
      data: [{ class: "/matrix", access: "read", where: "name!='api'" }],
    };
    expect(await connected(["app:web", "app:db"], 9, few)).toEqual([["app:db"], ["app:web"]]);
    expect(JSON.parse(String(await call("graphalg.endpoints", [MATCH], few)))).toEqual([
      "app:alone",
      "app:db",
      "app:mail",
      "app:queue",
      "app:smtp",
      "app:web",
    ]);
    for (const level of [-1, 0.5, 1e9])
      await expect(connected(["app:web"], level)).rejects.toMatchObject({ code: "invalid" });
    await expect(connected(["app:web"], 1, { ...admin, grants: [] })).rejects.toMatchObject({ code: "denied" });
  });
});

test("a walk reads no more edges than its bound, hidden ones included", async () => {
  const few: Principal = { ...admin, user: "few", data: [{ class: "/matrix", access: "read", where: "name='web'" }] };
  let given = 0;
  async function* hiddenEdges(): AsyncGenerator<readonly ObjectEdge[]> {
    for (; given < 2 * GRAPH_EDGES_MAX; given += 1_000)
      yield Array.from({ length: 1_000 }, (_, at) => ({
        ...{ type: "uses", source: "app:web", sourceClass: "/matrix/app" },
        ...{ target: `app:${at}`, targetClass: "/matrix/app", timeMs: 0 },
      }));
    await Promise.resolve();
  }
  const visible = visibleObjects({
    catalog: (principal) => objects.catalog(principal),
    unrestricted: { ...objects.unrestricted, edges: hiddenEdges },
  });
  await expect(call("graphalg.connectedGraphs", [["app:web"], 1], few, { visible })).rejects.toMatchObject({
    code: "too_large",
    details: { limit: "GRAPH_EDGES_MAX" },
  });
  expect(given).toBeLessThanOrEqual(GRAPH_EDGES_MAX + 1_000);
});

test("aialg is refused by its name", async () => {
  await expect(call("aialg.cafp", [[], "id", "value", 2, 1, 3])).rejects.toMatchObject({
    code: "unsupported",
    message: "aialg.cafp is not offered: its groups are described nowhere.",
  });
});
