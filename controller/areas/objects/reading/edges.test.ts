import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EDGE_READS_IN_FLIGHT_MAX } from "../../../../common/limits.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../../test/helpers/engines/mortal.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { faulty, faultyStore } from "../../../store/faulty.ts";
import type { EntityChange, EntityKey } from "../../../store/objects.ts";
import { Retry } from "../../../store/calls/retry.ts";
import type { Principal } from "../../permissions/index.ts";
import { ObjectService, type EdgeRequest, type ObjectEdge, type ObjectRef } from "../index.ts";
import { endEdges, incomingEdges } from "../writing/edges/incoming.ts";

const admin = testPrincipal();
const viewer = testPrincipal("viewer");
const NODE = "/matrix/net/node";
const OLD_NODE = "/matrix/old/node";
const RACK = "/matrix/net/rack";
const ALARM = "/matrix/net/alarm";
const NAME = { columns: [{ name: "name", type: "varchar" as const }], keys: ["name"] };

let engine: TestEngine;
let objects: ObjectService;

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ stores: engine, runtime: { ...testRuntime(realClock), random: seededRandom(1) } });
  await objects.createClass(admin, { path: NODE, ...NAME });
  await objects.createClass(admin, { path: RACK, ...NAME });
  // Another class with the same last component.
  await objects.createClass(admin, { path: OLD_NODE, ...NAME });
  await objects.createClass(admin, { path: ALARM, kind: "record", columns: [{ name: "text", type: "varchar" }] });
  for (const name of ["contain", "link"]) await objects.createEdgeType(admin, { name, remedy: "" });
});

afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

interface By {
  readonly as?: Principal;
  readonly service?: ObjectService;
}

async function pagesOf(refs: readonly ObjectRef[], request: EdgeRequest, by: By = {}): Promise<ObjectEdge[]> {
  const edges: ObjectEdge[] = [];
  for await (const page of (by.service ?? objects).unrestricted.edges(by.as ?? admin, refs, request))
    edges.push(...page);
  return edges;
}

async function edgesOf(ids: readonly (string | ObjectRef)[], request: EdgeRequest, by: By = {}): Promise<string[]> {
  const edges = await pagesOf(
    ids.map((id) => (typeof id === "string" ? { id } : id)),
    request,
    by,
  );
  return edges.map((edge) => `${edge.source} ${edge.type} ${edge.target}`).sort();
}

describe("edges of objects", () => {
  test("are read from both ends, of one type or all", async () => {
    await objects.unrestricted.insert(admin, NODE, [{ name: "a1" }, { name: "a2" }]);
    await objects.unrestricted.insert(admin, RACK, [{ name: "r1", contain: ["node:a1", "node:a2"], link: "node:a1" }]);
    expect(await edgesOf(["rack:r1"], { direction: "out" })).toEqual([
      "rack:r1 contain node:a1",
      "rack:r1 contain node:a2",
      "rack:r1 link node:a1",
    ]);
    expect(await edgesOf(["rack:r1"], { direction: "out", type: "link" })).toEqual(["rack:r1 link node:a1"]);
    expect(await edgesOf(["node:a1"], { direction: "in" })).toEqual([
      "rack:r1 contain node:a1",
      "rack:r1 link node:a1",
    ]);
    expect(await edgesOf(["node:a1"], { direction: "out" })).toEqual([]);
    expect(await edgesOf(["node:a1", "node:a2", "node:a1"], { direction: "in", type: "contain" })).toEqual([
      "rack:r1 contain node:a1",
      "rack:r1 contain node:a2",
    ]);
  });

  test("of an id that two classes have are those of both, and their classes are told", async () => {
    await objects.unrestricted.insert(admin, NODE, [{ name: "b" }]);
    await objects.unrestricted.insert(admin, OLD_NODE, [{ name: "b", link: "rack:r2" }]);
    await objects.unrestricted.insert(admin, RACK, [{ name: "r2" }]);
    await objects.unrestricted.update(admin, { id: "node:b", class: NODE }, [
      { column: "contain", operation: "set", value: "rack:r2" },
    ]);
    expect(await edgesOf(["node:b"], { direction: "out" })).toEqual(["node:b contain rack:r2", "node:b link rack:r2"]);
    expect(await edgesOf([{ id: "node:b", class: NODE }], { direction: "out" })).toEqual(["node:b contain rack:r2"]);
    const [edge] = await pagesOf([{ id: "node:b", class: OLD_NODE }], { direction: "out" });
    expect(edge).toMatchObject({ sourceClass: OLD_NODE, targetClass: RACK });
  });

  test("are gone with either end, and with the type", async () => {
    await objects.createEdgeType(admin, { name: "brief", remedy: "" });
    await objects.unrestricted.insert(admin, NODE, [{ name: "c1" }, { name: "c2" }]);
    await objects.unrestricted.insert(admin, NODE, [{ name: "c3", brief: "node:c1" }]);
    await objects.unrestricted.insert(admin, RACK, [
      { name: "r3", contain: ["node:c1", "node:c2"] },
      { name: "r4", contain: ["node:c1", "rack:never"] },
    ]);
    await objects.unrestricted.remove(admin, [{ id: "node:c2" }, { id: "rack:r4" }]);
    expect(await edgesOf(["rack:r3", "rack:r4"], { direction: "out" })).toEqual(["rack:r3 contain node:c1"]);
    expect(await edgesOf(["node:c1", "node:c2", "rack:never"], { direction: "in" })).toEqual([
      "node:c3 brief node:c1",
      "rack:r3 contain node:c1",
    ]);
    await objects.dropEdgeType(admin, "brief");
    expect(await edgesOf(["node:c1"], { direction: "in" })).toEqual(["rack:r3 contain node:c1"]);
  });

  test("whose other end may not be read are left out", async () => {
    await objects.unrestricted.insert(admin, NODE, [{ name: "d1", link: "rack:r5" }]);
    await objects.unrestricted.insert(admin, RACK, [{ name: "r5", contain: ["node:d1"] }]);
    const partly = { ...viewer, data: [...viewer.data, { class: RACK, access: "none" as const }] };
    for (const direction of ["out", "in"] as const) {
      expect(await edgesOf(["node:d1"], { direction }, { as: viewer })).toHaveLength(1);
      expect(await edgesOf(["node:d1"], { direction }, { as: partly })).toEqual([]);
      expect(await edgesOf(["rack:r5"], { direction }, { as: partly })).toEqual([]);
    }
  });

  test("go to records, too", async () => {
    const [alarm = ""] = await objects.unrestricted.insert(admin, ALARM, [{ text: "hot" }]);
    await objects.unrestricted.insert(admin, NODE, [{ name: "e1", link: [alarm] }]);
    expect(await edgesOf(["node:e1"], { direction: "out" })).toEqual([`node:e1 link ${alarm}`]);
    expect(await edgesOf([alarm], { direction: "in" })).toEqual([`node:e1 link ${alarm}`]);
    await objects.unrestricted.remove(admin, [{ id: alarm }]);
    expect(await edgesOf(["node:e1"], { direction: "out" })).toEqual([]);
  });

  test("of many objects are answered once each by a store of short pages and lost answers", async () => {
    const names = Array.from({ length: EDGE_READS_IN_FLIGHT_MAX + 8 }, (_, at) => `f${at}`);
    await objects.unrestricted.insert(
      admin,
      NODE,
      names.map((name) => ({ name })),
    );
    await objects.unrestricted.insert(
      admin,
      RACK,
      names.map((name) => ({ name, contain: names.slice(0, 5).map((other) => `node:${other}`), link: `node:${name}` })),
    );
    const hard = faulty(engine, { random: seededRandom(7) });
    const service = new ObjectService({
      stores: hard,
      runtime: { ...testRuntime(realClock), random: seededRandom(2) },
    });
    const fromRacks = await edgesOf(
      names.map((name) => `rack:${name}`),
      { direction: "out" },
      { service },
    );
    expect(fromRacks).toHaveLength(names.length * 6);
    expect(new Set(fromRacks).size).toBe(fromRacks.length);
    expect(
      await edgesOf(
        names.map((name) => `node:${name}`),
        { direction: "in" },
        { service },
      ),
    ).toEqual(fromRacks);
    await service.close();
  });

  test("are not read on when the caller is gone", async () => {
    const request = { direction: "out" as const, signal: AbortSignal.abort() };
    await expect(edgesOf(["node:a1"], request)).rejects.toMatchObject({ code: "cancelled" });
  });
});

/** Edges as they lie in the store, readable or not. */
async function storedTo(path: string, id: string): Promise<number> {
  const cid = (await objects.catalog(admin)).get(path)?.cid ?? 0;
  const { items } = await (await engine.tenant("matrix")).objects.edges({ cid, id }, "in", { limit: 1_000 });
  return items.length;
}

describe("an object that is removed", () => {
  test("takes the edges to it along; what is linked to its id before there is one again stays", async () => {
    await objects.unrestricted.insert(admin, RACK, [{ name: "g1" }, { name: "g2", link: ["rack:g1", "rack:g2"] }]);
    await objects.unrestricted.insert(admin, NODE, [{ name: "g", contain: ["rack:g1", "rack:g2"] }]);
    const [alarm = ""] = await objects.unrestricted.insert(admin, ALARM, [{ text: "cold" }]);
    await objects.unrestricted.update(admin, { id: "rack:g2" }, [
      { column: "contain", operation: "add", value: [alarm] },
    ]);
    await objects.unrestricted.remove(admin, [{ id: "rack:g1" }, { id: alarm }]);
    expect([
      await storedTo(RACK, "g1"),
      await storedTo(RACK, "g2"),
      await storedTo(ALARM, alarm.slice("alarm:".length)),
    ]).toEqual([0, 2, 0]);
    await objects.unrestricted.update(admin, { id: "node:g" }, [
      { column: "link", operation: "set", value: "rack:g1" },
    ]);
    expect(await edgesOf(["node:g"], { direction: "out" })).toEqual(["node:g contain rack:g2"]);
    await objects.unrestricted.insert(admin, RACK, [{ name: "g1" }]);
    expect(await edgesOf(["node:g", "rack:g2"], { direction: "out" })).toEqual([
      "node:g contain rack:g2",
      "node:g link rack:g1",
      "rack:g2 link rack:g2",
    ]);
    expect(await edgesOf(["rack:g1"], { direction: "in" })).toEqual(["node:g link rack:g1"]);
  });

  test("takes them along where the store has short pages and loses answers, too", async () => {
    const sources = Array.from({ length: 40 }, (_, at) => ({ name: `h${at}`, link: ["rack:i1", "rack:i2"] }));
    await objects.unrestricted.insert(admin, NODE, sources);
    await objects.unrestricted.insert(admin, RACK, [{ name: "i1" }, { name: "i2" }]);
    const service = new ObjectService({
      stores: faulty(engine, { random: seededRandom(11) }),
      runtime: { ...testRuntime(realClock), random: seededRandom(3) },
    });
    expect(await service.unrestricted.remove(admin, [{ id: "rack:i1" }, { id: "rack:i2" }])).toBe(2);
    expect([await storedTo(RACK, "i1"), await storedTo(RACK, "i2")]).toEqual([0, 0]);
    await service.close();
  });

  test.each(onCluster ? [true] : [true, false])(
    "and its edges are both gone or both there when it is made again, at whatever write its controller dies (that write came to pass: %j)",
    async (isWritten) => {
      const found: number[] = [];
      for (let writes = 0; ; writes += 1) {
        const name = `j${Number(isWritten)}${writes}`;
        await objects.unrestricted.insert(admin, RACK, [{ name }]);
        await objects.unrestricted.insert(admin, NODE, [{ name, link: `rack:${name}` }]);
        const isDead = await diesRemoving(new Mortality(writes, isWritten), `rack:${name}`);
        const [there] = await objects.unrestricted.get(admin, [{ id: `rack:${name}` }]);
        await objects.unrestricted.insert(admin, RACK, [{ name }]);
        found.push((await edgesOf([`rack:${name}`], { direction: "in" })).length);
        expect([found.at(-1), await storedTo(RACK, name)], `dead at write ${writes}`).toEqual(
          there === undefined ? [0, 0] : [1, 1],
        );
        if (!isDead) break;
      }
      expect(found).toEqual(isWritten ? [0, 0, 0] : [1, 0, 0]);
    },
  );
});

test("no more edges of removed objects are read than their call takes away, and of these those that are newer than the removal stay", async () => {
  const tenant = faultyStore(await engine.tenant("matrix"), { random: seededRandom(13) });
  const source = { store: tenant.objects, retry: new Retry({ clock: realClock, random: seededRandom(13) }) };
  const change = (changes: readonly EntityChange[]): Promise<void> =>
    source.retry.run(() => source.store.change(changes));
  const [few, many] = [
    { cid: 9_000, id: "few" },
    { cid: 9_000, id: "many" },
  ];
  const linked = (id: string, timeUs: number, to: EntityKey): EntityChange => ({
    key: { cid: 9_000, id },
    timeUs,
    birth: true,
    addEdges: [{ type: "link", to }],
  });
  await change([linked("k0", 90, few), ...Array.from({ length: 20 }, (_, at) => linked(`l${at}`, 100 + at, many))]);
  const incoming = await incomingEdges([few, many], source, 3);
  expect([incoming.edges.length, incoming.more.has(many)]).toEqual([3, true]);
  const all = await incomingEdges([few, many], source);
  expect([all.edges.length, all.more.size]).toEqual([21, 0]);
  await endEdges(all.edges, {
    change,
    endUs: () => 117,
    definitions: () => Promise.resolve({ byCid: () => undefined }),
  });
  const { objects: plain } = await engine.tenant("matrix");
  const left = await Promise.all(
    [few, many].map(async (target) => (await plain.edges(target, "in", { limit: 100 })).items),
  );
  expect(
    left
      .flat()
      .map(({ timeUs }) => timeUs)
      .sort(),
  ).toEqual([118, 119]);
});

/** True when the service died during the removal. */
async function diesRemoving(mortality: Mortality, id: string): Promise<boolean> {
  const stores = {
    system: () => engine.system(),
    tenant: async (name: string) => {
      const inner = await engine.tenant(name);
      return { ...inner, objects: mortality.mortal(inner.objects) };
    },
  };
  const service = new ObjectService({ stores, runtime: { ...testRuntime(realClock), random: seededRandom(5) } });
  const isDead = await Promise.race([
    service.unrestricted.remove(admin, [{ id }]).then(() => false),
    mortality.died.then(() => true),
  ]);
  await service.close();
  return isDead;
}
