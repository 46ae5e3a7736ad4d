import { afterEach, beforeEach, expect, test } from "vitest";
import { EDGES_PER_WRITE_MAX, INDEXED_VALUES_PER_OBJECT_MAX } from "../../../../../common/limits.ts";
import { realClock } from "../../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../../test/helpers/time/runtime.ts";
import type { TenantStore } from "../../../../store/engine.ts";
import type { Entity, EntityKey } from "../../../../store/objects.ts";
import { ObjectService, type ClassSpec, type Edit } from "../../index.ts";

const admin = testPrincipal();
const HOUR_MS = 3_600_000;
const PASS: ClassSpec = {
  path: "/matrix/pass",
  columns: [
    { name: "size", type: "int" },
    { name: "parts", type: "set", elements: ["varchar"] },
  ],
  options: { keyMode: "manu", ttlSeconds: 3_600 },
};
const HOST: ClassSpec = { path: "/matrix/host", columns: [], options: { keyMode: "manu" } };
const LINK = { name: "link", remedy: "" };

let engine: TestEngine;
let store: TenantStore;
let objects: ObjectService;
let nowMs: number;

beforeEach(async () => {
  nowMs = realClock.nowMs();
  engine = await openTestEngine();
  store = await engine.tenant("matrix");
  objects = new ObjectService({ stores: engine, runtime: testRuntime({ ...realClock, nowMs: () => nowMs }) });
});

afterEach(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

async function keyOf(path: string, id: string): Promise<EntityKey> {
  return { cid: (await objects.catalog(admin)).get(path)!.cid, id };
}

async function stored(id: string): Promise<Entity | undefined> {
  return (await store.objects.get([await keyOf(PASS.path, id)]))[0];
}

const setSize = (size: number): Edit[] => [{ column: "size", operation: "set", value: size }];

test.each(["found by its insert", "cleared up by maintenance"])(
  "an edge to an object that has ended does not lead to the next one of its name, one made since then does: %s",
  async (how) => {
    for (const spec of [PASS, HOST]) await objects.createClass(admin, spec);
    await objects.createEdgeType(admin, LINK);
    nowMs -= 3 * HOUR_MS;
    const endMs = nowMs + HOUR_MS;
    await objects.unrestricted.insert(admin, PASS.path, [{ id: "one" }]);
    await objects.unrestricted.insert(admin, HOST.path, [{ id: "before" }, { id: "since" }]);
    const to = await keyOf(PASS.path, "one");
    for (const [id, atMs] of [
      ["before", endMs - 1],
      ["since", endMs + 1],
    ] as const)
      await store.objects.change([
        { key: await keyOf(HOST.path, id), timeUs: atMs * 1_000, addEdges: [{ type: "link", to }] },
      ]);
    nowMs = realClock.nowMs();
    if (how !== "found by its insert") await objects.maintain(admin);
    await objects.unrestricted.insert(admin, PASS.path, [{ id: "one" }]);
    const sources: string[] = [];
    for await (const page of objects.unrestricted.edges(admin, [{ id: "pass:one" }], { direction: "in" }))
      sources.push(...page.map(({ source }) => source));
    expect(sources).toEqual(["host:since"]);
  },
);

// So many edges take the cluster minutes, and nothing here depends on the engine.
test.each(onCluster ? [] : [PASS])(
  "an object of more edges and values than a write takes has one end by an update and by maintenance",
  async () => {
    await objects.createClass(admin, { ...PASS, options: { keyMode: "manu" } });
    await objects.createEdgeType(admin, LINK);
    const parts = Array.from({ length: INDEXED_VALUES_PER_OBJECT_MAX + 1 }, (_, at) => `p${at}`);
    await objects.unrestricted.insert(admin, PASS.path, [
      { id: "updated" },
      { id: "maintained", parts },
      { id: "other" },
    ]);
    const { cid } = await keyOf(PASS.path, "");
    const addEdges = Array.from({ length: EDGES_PER_WRITE_MAX + 1 }, (_, at) => ({
      type: "link",
      to: { cid, id: `t${at}` },
    }));
    await store.objects.change([{ key: { cid, id: "updated" }, timeUs: nowMs * 1_000, addEdges }]);
    await objects.alterClass(admin, PASS.path, { kind: "set options", options: { ttlSeconds: 3_600 } });
    await objects.alterClass(admin, PASS.path, { kind: "add index", name: "parts" });
    expect(await objects.unrestricted.update(admin, { id: "pass:updated" }, setSize(2))).toBe(true);
    expect((await stored("updated"))?.endsAtMs).toBe(nowMs + HOUR_MS);
    for (const id of ["maintained", "other"])
      await store.objects.change([
        { key: { cid, id }, timeUs: (nowMs + 1) * 1_000, numbers: new Map([[0, 1]]), expiresAtMs: nowMs + HOUR_MS },
      ]);
    await objects.maintain(admin);
    for (const id of ["maintained", "other"]) expect((await stored(id))?.endsAtMs).toBe(nowMs + HOUR_MS);
  },
);

test("versions go with an object of a class that keeps none any more, and so does what says when it ends", async () => {
  await objects.createClass(admin, { ...PASS, options: { ...PASS.options, version: true } });
  await objects.unrestricted.insert(admin, PASS.path, [{ id: "one" }, { id: "two" }]);
  await objects.alterClass(admin, PASS.path, { kind: "set options", options: { version: false } });
  const refs = [{ id: "pass:one" }, { id: "pass:two" }];
  expect(await objects.unrestricted.remove(admin, refs, { withVersions: true })).toBe(2);
  await objects.dropClass(admin, PASS.path);
});

test("an end far ahead does not make a write that is ahead of the clock", async () => {
  await objects.createClass(admin, { ...PASS, options: { keyMode: "manu", version: true, ttlSeconds: 4e7 } });
  await objects.unrestricted.insert(admin, PASS.path, [{ id: "one" }, { id: "two" }]);
  expect(await objects.ahead(admin, { limit: 1 })).toEqual({ items: [] });
});
