import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  EDGE_ENDINGS_WAITING_MAX,
  EDGES_ENDED_IN_CALL_MAX,
  OBJECT_PAGE_MAX,
  WRITE_LATE_MS,
} from "../../../../../common/limits.ts";
import type { Clock } from "../../../../../common/time.ts";
import { realClock, seededRandom } from "../../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../../test/helpers/engines/engine.ts";
import { Mortality, mortalStores } from "../../../../../test/helpers/engines/mortal.ts";
import { testPrincipal, testRuntime } from "../../../../../test/helpers/time/runtime.ts";
import type { Runtime } from "../../../../runtime.ts";
import type { Stores } from "../../../../store/engine.ts";
import { faulty } from "../../../../store/faulty.ts";
import type { EntityChange, EntityKey, ObjectStore } from "../../../../store/objects.ts";
import { Retry } from "../../../../store/calls/retry.ts";
import { retrying } from "../../../../store/calls/retrying.ts";
import { ObjectService, type EdgeRequest } from "../../index.ts";
import { EdgeEndings, endingJournal } from "./endings.ts";

const admin = testPrincipal();
const NODE = "/matrix/hub/node";
/** Its objects keep versions. */
const KEPT = "/matrix/hub/kept";
const TYPES = Array.from({ length: 10 }, (_, at) => `cable${at}`);
/** 10,000 edges; on the cluster, where each takes several writes, fewer. */
const SOURCES = onCluster ? 400 : 1_000;
const SOURCES_AT_ONCE = 100;
const EDGES = SOURCES * TYPES.length;
/** Writes of objects in the call that removes: the object, and its edges page by page. */
const WRITES_IN_CALL = 1 + EDGES_ENDED_IN_CALL_MAX / OBJECT_PAGE_MAX;

let engine: TestEngine;
let store: ObjectStore;
let objects: ObjectService;
let nodes: number;
let seed = 0;

beforeAll(async () => {
  engine = await openTestEngine();
  store = retrying((await engine.tenant("matrix")).objects, new Retry(runtimeOf()));
  objects = new ObjectService({ stores: engine, runtime: runtimeOf() });
  const columns = [{ name: "name", type: "varchar" as const }];
  await objects.createClass(admin, { path: NODE, columns, keys: ["name"] });
  await objects.createClass(admin, { path: KEPT, columns, keys: ["name"], options: { version: true } });
  for (const name of TYPES) await objects.createEdgeType(admin, { name, remedy: "" });
  nodes = (await objects.catalog(admin)).get(NODE)?.cid ?? 0;
});

afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

function runtimeOf(clock: Clock = realClock): Runtime {
  seed += 1;
  return { ...testRuntime(clock), random: seededRandom(seed) };
}

function keyOf(id: string): EntityKey {
  return { cid: nodes, id };
}

function nowUs(): number {
  return Math.floor(realClock.nowMs()) * 1_000;
}

/** Edges as they lie in the store, readable or not. */
async function storedTo(id: string): Promise<number> {
  let [count, cursor] = [0, undefined as string | undefined];
  do {
    const page = await store.edges(keyOf(id), "in", { limit: 1_000, ...(cursor === undefined ? {} : { cursor }) });
    count += page.items.length;
    cursor = page.cursor;
  } while (cursor !== undefined);
  return count;
}

async function seenOf(id: string, request: EdgeRequest): Promise<string[]> {
  const seen: string[] = [];
  for await (const page of objects.unrestricted.edges(admin, [{ id }], request))
    seen.push(...page.map(({ source, type, target }) => `${source} ${type} ${target}`));
  return seen.sort();
}

async function openEndings(): Promise<number> {
  const { kv } = await engine.tenant("matrix");
  return (await kv.list("objectedges/", { limit: 1_000 })).entries.length;
}

/** A controller that is killed at some write of objects, or of what is noted beside them. */
function mortal(mortality: Mortality, part: "data" | "keys"): ObjectService {
  return new ObjectService({ stores: mortalStores(engine, () => mortality)[part], runtime: runtimeOf() });
}

test("a hub with thousands of edges is removed at once; when its controller is killed another one takes the rest away, and none of it is seen meanwhile", async () => {
  await objects.unrestricted.insert(admin, NODE, [{ name: "hub" }, { name: "late" }]);
  const to = keyOf("hub");
  const timeUs = nowUs();
  const addEdges = TYPES.map((type) => ({ type, to }));
  for (let from = 0; from < SOURCES; from += SOURCES_AT_ONCE) {
    const some = Array.from({ length: SOURCES_AT_ONCE }, (_, at) => keyOf(`s${from + at}`));
    await store.change(some.map((key) => ({ key, timeUs, birth: true as const, addEdges })));
  }
  // At the second page after it has answered.
  const mortality = new Mortality(WRITES_IN_CALL + 1, false);
  const dying = mortal(mortality, "data");
  expect(await dying.unrestricted.remove(admin, [{ id: "node:hub" }])).toBe(1);
  await mortality.died;
  expect([await storedTo("hub"), await openEndings()]).toEqual([EDGES - EDGES_ENDED_IN_CALL_MAX - OBJECT_PAGE_MAX, 1]);
  for (const id of ["hub", "s1", `s${SOURCES - 1}`].map((name) => `node:${name}`))
    expect([await seenOf(id, { direction: "out" }), await seenOf(id, { direction: "in" })]).toEqual([[], []]);

  // There is a hub again, with an edge of its own.
  await objects.unrestricted.insert(admin, NODE, [{ name: "hub" }]);
  await objects.unrestricted.update(admin, { id: "node:late" }, [
    { column: "cable3", operation: "add", value: ["node:hub"] },
  ]);
  const fresh = ["node:late cable3 node:hub"];
  expect(await seenOf("node:hub", { direction: "in" })).toEqual(fresh);
  expect(await seenOf(`node:s${SOURCES - 1}`, { direction: "out" })).toEqual([]);

  await objects.maintain(admin);
  await objects.settled();
  expect([await openEndings(), await storedTo("hub")]).toEqual([0, 1]);
  expect(await seenOf("node:hub", { direction: "in" })).toEqual(fresh);
  await dying.leave("matrix");
});

test("an edge that its removed target has left behind was there before the removal, and is not afterwards", async () => {
  await objects.unrestricted.insert(admin, KEPT, [{ name: "to" }]);
  await objects.unrestricted.insert(admin, KEPT, [{ name: "from", cable1: "kept:to" }]);
  const edge = ["kept:from cable1 kept:to"];
  const cid = (await objects.catalog(admin)).get(KEPT)?.cid ?? 0;
  const key = { cid, id: "to" };
  const [entity] = await store.get([key]);
  const diedUs = (entity?.lastUs ?? 0) + 2_000_000;
  await store.change([{ key, timeUs: diedUs, death: true }]);
  await store.change([{ key, timeUs: diedUs + 1_000_000, birth: true }]);
  const asOf = (timeUs: number): Promise<string[]> =>
    seenOf("kept:from", { direction: "out", asOfMs: Math.floor(timeUs / 1_000) });
  expect(await seenOf("kept:from", { direction: "out" })).toEqual([]);
  expect([await asOf(diedUs - 1_000_000), await asOf(diedUs + 1_500_000)]).toEqual([edge, []]);
});

describe("edges of removed objects", () => {
  const REMOVED_US = 150;

  interface Controller {
    readonly endings: EdgeEndings;
    /** As maintenance does. */
    goOn(): Promise<void>;
  }

  /** One that knows of no other, and of definitions that never change. */
  function controller(stores: Stores, objectsOf: ObjectStore, clock: Clock = realClock): Controller {
    const runtime = runtimeOf(clock);
    const own = Buffer.from(runtime.random.bytes(8)).toString("hex");
    const held = { snapshot: { byCid: () => undefined }, isHeld: () => true, end: () => undefined };
    const catalog = { begin: async () => held, resumed: async () => held } as never;
    const journal = endingJournal({ stores, runtime, controllers: { own, has: (id) => id === own } });
    const endings = new EdgeEndings({ tenant: "matrix", journal, runtime, store: objectsOf, catalog });
    const goOn = async (): Promise<void> => {
      for await (const found of journal.abandoned("matrix")) await endings.takeUp(found);
      await journal.inFlight.settled();
    };
    return { endings, goOn };
  }

  const linked = (id: string, timeUs: number, to: EntityKey): EntityChange => {
    return { key: keyOf(id), timeUs, birth: true, addEdges: [{ type: "cable0", to }] };
  };

  async function timesTo(id: string): Promise<number[]> {
    const { items } = await store.edges(keyOf(id), "in", { limit: 100 });
    return items.map(({ timeUs }) => timeUs).sort();
  }

  test.each(["keys", "data"] as const)(
    "are taken away by another controller at whatever write of its %s the first is killed, those of the next object of that name stay",
    async (part) => {
      for (let writes = 0; ; writes += 1) {
        const ids = [1, 2].map((at) => `${part}${writes}-${at}`);
        const targets = ids.map((id) => ({ ...keyOf(id), endUs: REMOVED_US }));
        await store.change(targets.map((to) => linked(`from ${to.id}`, 100, to)));
        const mortality = new Mortality(writes, false);
        const stores = mortalStores(engine, () => mortality);
        const dying = controller(
          part === "keys" ? stores.keys : engine,
          (await (part === "data" ? stores.data : engine).tenant("matrix")).objects,
        );
        const work = dying.endings.across(targets, () => Promise.resolve()).then(dying.goOn);
        const isKilled = await Promise.race([work.then(() => false), mortality.died.then(() => true)]);
        await store.change(targets.map((to) => ({ key: keyOf(to.id), timeUs: 160, birth: true })));
        await store.change(targets.map((to) => linked(`new ${to.id}`, 200, to)));
        // Killed before anything was noted: the write was not made either, and nothing ends.
        const stays = (await openEndings()) === 0 && isKilled ? [100, 200] : [200];
        const hard = faulty(engine, { random: seededRandom(writes) });
        const retried = retrying((await hard.tenant("matrix")).objects, new Retry(runtimeOf()));
        await controller(engine, retried).goOn();
        for (const id of ids) expect(await timesTo(id), `killed at write ${writes}`).toEqual(stays);
        expect(await openEndings()).toBe(0);
        if (!isKilled) break;
      }
    },
  );

  test("stay while their object does, and what was noted is given up when its removal can come no more", async () => {
    const to = keyOf("living");
    await store.change([{ key: to, timeUs: 90, birth: true }, linked("friend", 100, to)]);
    const failing = controller(engine, store, realClock);
    const removal = failing.endings.across([{ ...to, endUs: REMOVED_US }], () => Promise.reject(new Error("no")));
    await expect(removal).rejects.toThrow("no");
    await failing.goOn();
    expect([await timesTo("living"), await openEndings()]).toEqual([[100], 1]);
    const later = { ...realClock, nowMs: () => realClock.nowMs() + WRITE_LATE_MS };
    await controller(engine, store, later).goOn();
    expect([await timesTo("living"), await openEndings()]).toEqual([[100], 0]);
  });

  test.skipIf(onCluster)("are waited for by the call when very many of its tenant wait already", async () => {
    let goOn = (): void => undefined;
    const gate = new Promise<void>((resolve) => (goOn = resolve));
    const waiting = new Proxy(store, {
      get: (target, name: keyof ObjectStore) => {
        if (name === "get") return (keys: readonly EntityKey[]) => gate.then(() => target.get(keys));
        const member = target[name];
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    const { endings } = controller(engine, waiting);
    const one = (): Promise<void> => endings.across([{ ...keyOf("nobody"), endUs: 1 }], () => Promise.resolve());
    for (let calls = 0; calls < EDGE_ENDINGS_WAITING_MAX; calls += 1) await one();
    const next = one().then(() => "answered");
    await expect.poll(openEndings).toBe(EDGE_ENDINGS_WAITING_MAX + 1);
    expect(await Promise.race([next, Promise.resolve("waits")])).toBe("waits");
    goOn();
    expect(await next).toBe("answered");
    await expect.poll(openEndings).toBe(0);
  });
});
