import { rm } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import {
  APPCONTEXT_ITEM_MAX_BYTES,
  APPCONTEXT_NAME_MAX_BYTES,
  APPCONTEXT_TEXT_MAX_BYTES,
  APPCONTEXT_TTL_MAX_SECONDS,
} from "../../../common/limits.ts";
import { realClock, seededRandom, shiftedClock } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { openEmbeddedEngine } from "../../store/embedded/index.ts";
import type { Stores } from "../../store/engine.ts";
import type { ObjectStore } from "../../store/objects.ts";
import { AppcontextService } from "./service.ts";
import type { Item, ItemQuery } from "./types.ts";
import { storeFolder } from "../../../test/helpers/runs/folders.ts";
import { AGED_CHANGES } from "../../../test/helpers/time/times.ts";

const admin = testPrincipal();
const neighbour = testPrincipal("administrator", "second");
const viewer = testPrincipal("viewer");
const stranger = { ...admin, user: "bob", grants: ["objects:read", "jobs:*"] };
const AGED = onCluster ? 300 : AGED_CHANGES;
const AT_ONCE = 100;

let engine: TestEngine;
let appcontext: AppcontextService;
beforeAll(async () => {
  engine = await openTestEngine();
  appcontext = serviceAt();
});
afterAll(() => engine.close());

/** Another controller, whose clock is ahead by `aheadMs`. */
function serviceAt(aheadMs = 0, stores: Stores = engine): AppcontextService {
  const clock = shiftedClock(realClock, aheadMs);
  const random = { next: () => Math.random(), bytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)) };
  return new AppcontextService({ stores, runtime: { ...testRuntime(clock), random } });
}

async function all(service: AppcontextService, query: ItemQuery, principal = admin): Promise<readonly Item[]> {
  const items: Item[] = [];
  for await (const page of service.list(principal, query)) items.push(...page);
  return items;
}

async function create(collection: string, value: object, ttlSeconds?: number): Promise<string> {
  const item = { collection, text: JSON.stringify(value), ...(ttlSeconds !== undefined && { ttlSeconds }) };
  return (await appcontext.create(admin, item)).id;
}

/** Makes `count` calls, `AT_ONCE` at a time. */
async function many(count: number, call: (at: number) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < count; from += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, at) => call(from + at)));
}

/** Stores of a controller with some functions of the object store replaced. */
function storesWith(change: (objects: ObjectStore) => Partial<ObjectStore>): Stores {
  return {
    system: () => engine.system(),
    tenant: async (name) => {
      const store = await engine.tenant(name);
      const { objects } = store;
      const whole: ObjectStore = {
        change: (changes) => objects.change(changes),
        get: (keys) => objects.get(keys),
        trace: (keys) => objects.trace(keys),
        find: (request, page) => objects.find(request, page),
        estimate: (request) => objects.estimate(request),
        countClass: (term, cursor) => objects.countClass(term, cursor),
        countRecords: (span, cursor) => objects.countRecords(span, cursor),
        terms: (request, page) => objects.terms(request, page),
        scan: (page) => objects.scan(page),
        history: (key, range, page) => objects.history(key, range, page),
        edges: (key, direction, page) => objects.edges(key, direction, page),
        append: (records) => objects.append(records),
        timeline: (request, page) => objects.timeline(request, page),
        getRecords: (keys) => objects.getRecords(keys),
        removeRecords: (keys) => objects.removeRecords(keys),
      };
      return { ...store, objects: { ...whole, ...change(objects) } };
    },
  };
}

describe("a variable", () => {
  test("is the text that was set last, to every controller, and is gone when it is removed", async () => {
    const other = serviceAt();
    for (const text of ["one", "", '{"a": [1,  2]}', "二\u0000\n"]) {
      await appcontext.setVariable(admin, { key: "v", text });
      expect(await other.variable(admin, "v")).toBe(text);
    }
    await other.removeVariable(admin, "v");
    await other.removeVariable(admin, "v");
    await expect(appcontext.variable(admin, "v")).rejects.toMatchObject({ code: "not_found" });
    await appcontext.setVariable(admin, { key: "v", text: "again" });
    expect(await other.variable(admin, "v")).toBe("again");
  });

  test("expires after its ttl, which every set gives anew", async () => {
    const later = serviceAt(61_000);
    await appcontext.setVariable(admin, { key: "ttl", text: "short", ttlSeconds: 60 });
    expect(await appcontext.variable(admin, "ttl")).toBe("short");
    await expect(later.variable(admin, "ttl")).rejects.toMatchObject({ code: "not_found" });
    await appcontext.setVariable(admin, { key: "ttl", text: "for ever" });
    expect(await later.variable(admin, "ttl")).toBe("for ever");
    await appcontext.setVariable(admin, { key: "ttl", text: "longer", ttlSeconds: 120 });
    expect(await later.variable(admin, "ttl")).toBe("longer");
    await appcontext.setVariable(admin, { key: "ttl", text: "zero", ttlSeconds: 0 });
    expect(await serviceAt(10 * 365 * 24 * 3_600_000).variable(admin, "ttl")).toBe("zero");
  });

  test("is written over by the controller whose clock is behind", async () => {
    await serviceAt(3_600_000).setVariable(admin, { key: "clocks", text: "ahead" });
    await appcontext.setVariable(admin, { key: "clocks", text: "behind" });
    expect(await appcontext.variable(admin, "clocks")).toBe("behind");
    await appcontext.removeVariable(admin, "clocks");
    await expect(appcontext.variable(admin, "clocks")).rejects.toMatchObject({ code: "not_found" });
  });

  test("that two controllers set at once is one of the two for both", async () => {
    const other = serviceAt();
    for (let round = 0; round < 20; round++) {
      await Promise.all([
        appcontext.setVariable(admin, { key: "race", text: `mine ${round}` }),
        other.setVariable(admin, { key: "race", text: `theirs ${round}` }),
      ]);
      const text = await appcontext.variable(admin, "race");
      expect([`mine ${round}`, `theirs ${round}`]).toContain(text);
      expect(await other.variable(admin, "race")).toBe(text);
    }
  });
});

describe("a collection", () => {
  test("answers its items in the order in which they were made, each with its id", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.push(await create("order", { n }));
    await appcontext.replace(admin, { collection: "order", id: ids[1] ?? "", text: '{"n":"new"}' });
    expect(await all(serviceAt(), { collection: "order" })).toEqual(
      ids.map((id, n) => ({ id, n: n === 1 ? "new" : n })),
    );
    expect(await appcontext.end(admin, { collection: "order" }, "first")).toEqual({ id: ids[0], n: 0 });
    expect(await appcontext.end(admin, { collection: "order" }, "last")).toEqual({ id: ids[4], n: 4 });
    expect(new Set(ids.map((id) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)))).toEqual(new Set([true]));
  });

  test("is in that order also when one of its items is of a controller whose clock was years ahead", async () => {
    const [ahead, present] = [serviceAt(4 * 365 * 86_400_000), serviceAt()];
    const put = (by: AppcontextService, id: string) => by.put(admin, { collection: "ahead", id, text: "{}" });
    await put(ahead, "future");
    await put(present, "future");
    await put(present, "first");
    // Two controllers do not agree on an order within one millisecond.
    await put(serviceAt(1_000), "second");
    expect((await all(present, { collection: "ahead" })).map(({ id }) => id)).toEqual(["first", "second", "future"]);
  });

  test("that nothing was put into is empty", async () => {
    expect(await all(appcontext, { collection: "none" })).toEqual([]);
    expect(await appcontext.end(admin, { collection: "none" }, "first")).toBeUndefined();
    await appcontext.removeItems(admin, "none");
    await appcontext.removeItem(admin, "none", "x");
    await expect(appcontext.item(admin, "none", "x")).rejects.toMatchObject({ code: "not_found" });
  });

  test("answers what fulfils a condition, of all items its first and last", async () => {
    for (let n = 0; n < 300; n++) await create("where", { n, os: n % 3 === 0 ? "linux" : "aix", tags: [`t${n % 7}`] });
    const where = "os = 'linux' && n % 2 = 0 && (n > 290 || tags contains 't0' && n < 50)";
    const found = await all(appcontext, { collection: "where", where });
    expect(found.map(({ n }) => n)).toEqual([0, 42, 294]);
    expect((await appcontext.end(admin, { collection: "where", where }, "first"))?.["n"]).toBe(0);
    expect((await appcontext.end(admin, { collection: "where", where }, "last"))?.["n"]).toBe(294);
    expect(await appcontext.end(admin, { collection: "where", where: "n > 1000" }, "last")).toBeUndefined();
    expect(await all(appcontext, { collection: "where", where: `id = '${found[1]?.id}'` })).toEqual([found[1]]);
    expect(await all(appcontext, { collection: "where", where: " " })).toHaveLength(300);
  });

  test("loses its items as they expire", async () => {
    const stays = await create("expiry", { n: 1 });
    const goes = await create("expiry", { n: 2 }, 60);
    const later = serviceAt(61_000);
    expect((await all(appcontext, { collection: "expiry" })).map(({ id }) => id)).toEqual([stays, goes]);
    expect((await all(later, { collection: "expiry" })).map(({ id }) => id)).toEqual([stays]);
    expect((await later.end(admin, { collection: "expiry" }, "last"))?.id).toBe(stays);
    await expect(later.item(admin, "expiry", goes)).rejects.toMatchObject({ code: "not_found" });
    const expired = { collection: "expiry", id: goes, text: "{}" };
    await expect(later.replace(admin, expired)).rejects.toMatchObject({ code: "not_found" });
    await later.put(admin, expired);
    expect((await all(later, { collection: "expiry" })).map(({ id }) => id)).toEqual([stays, goes]);
  });

  test("keeps its items apart from those of names that begin alike, and is emptied alone", async () => {
    await create("alike", { n: 1 });
    await create("alike/2", { n: 2 });
    await create("ALIKE", { n: 3 });
    await appcontext.setVariable(admin, { key: "alike", text: "variable" });
    await appcontext.removeItems(admin, "alike");
    expect(await all(appcontext, { collection: "alike" })).toEqual([]);
    expect(await all(appcontext, { collection: "alike/2" })).toHaveLength(1);
    expect(await all(appcontext, { collection: "ALIKE" })).toHaveLength(1);
    expect(await appcontext.variable(admin, "alike")).toBe("variable");
  });

  test("takes an item of any id, and says when its member id is another", async () => {
    const item = { collection: "own", id: "Ä/b c:%", text: '{"id":"Ä/b c:%","__proto__":{"x":1},"n":1}' };
    expect(await appcontext.put(admin, item)).toEqual({ id: item.id, warnings: [] });
    expect(await appcontext.item(admin, "own", item.id)).toEqual({ id: item.id, n: 1 });
    const { warnings } = await appcontext.put(admin, { ...item, text: '{"id":7}' });
    expect(warnings).toEqual([`The member id of an item is its id in the collection, ${item.id}.`]);
    expect(await all(appcontext, { collection: "own" })).toEqual([{ id: item.id }]);
  });
});

describe("with age", () => {
  test("a variable and an item that were changed very often are one entry each", async () => {
    const id = await create("changed", { n: -1 });
    await many(AGED, async (n) => {
      await appcontext.setVariable(admin, { key: "changed", text: `text ${n}` });
      await appcontext.replace(admin, { collection: "changed", id, text: `{"n":${n}}` });
    });
    await appcontext.setVariable(admin, { key: "changed", text: "last" });
    await appcontext.replace(admin, { collection: "changed", id, text: '{"n":"last"}' });
    const { service, counts } = counting();
    expect(await service.variable(admin, "changed")).toBe("last");
    expect(await all(service, { collection: "changed" })).toEqual([{ id, n: "last" }]);
    expect(counts).toMatchObject({ get: 1, found: 1 });
    expect(counts.find).toBeLessThanOrEqual(2);
  });

  test("a collection in which very many items have expired is read as one that never had them", async () => {
    const stays = await create("expired", { n: "stays" });
    await many(AGED, (n) => create("expired", { n }, 3_600));
    const { service, counts } = counting(3_601_000);
    expect(await all(service, { collection: "expired" })).toEqual([{ id: stays, n: "stays" }]);
    expect(counts.found).toBe(1);
    // Pages of the embedded engine also pass over entries of other collections in this test.
    expect(counts.find).toBeLessThanOrEqual(onCluster ? 2 : 10);
  });
});

/** A controller that counts its calls of the store. */
function counting(aheadMs = 0) {
  const counts = { get: 0, find: 0, found: 0 };
  const stores = storesWith((objects) => ({
    get: (keys) => {
      counts.get += keys.length;
      return objects.get(keys);
    },
    find: async (request, page) => {
      const found = await objects.find(request, page);
      counts.find += 1;
      counts.found += found.items.length;
      return found;
    },
  }));
  return { service: serviceAt(aheadMs, stores), counts };
}

describe("what is refused", () => {
  test("is said by name: keys, sizes, ttl, forms", async () => {
    const set = (key: string, text = "", ttlSeconds = 0) => appcontext.setVariable(admin, { key, text, ttlSeconds });
    const put = (id: string, text = "{}") => appcontext.put(admin, { collection: "c", id, text });
    const long = "é".repeat(APPCONTEXT_NAME_MAX_BYTES / 2);
    await set(long, "x");
    expect(await appcontext.variable(admin, long)).toBe("x");
    await expect(set(`${long}x`)).rejects.toMatchObject({ code: "too_large" });
    await expect(set("")).rejects.toThrow("The key is empty.");
    await expect(set("a\nb")).rejects.toThrow("control characters");
    await expect(put("a\u0000")).rejects.toThrow("control characters");
    await expect(put("\ud800")).rejects.toMatchObject({ code: "invalid" });
    await expect(create("c\n", {})).rejects.toMatchObject({ code: "invalid" });
    await set("large", "x".repeat(APPCONTEXT_TEXT_MAX_BYTES));
    expect(await appcontext.variable(admin, "large")).toHaveLength(APPCONTEXT_TEXT_MAX_BYTES);
    await expect(set("large", "x".repeat(APPCONTEXT_TEXT_MAX_BYTES + 1))).rejects.toMatchObject({ code: "too_large" });
    await put("large", JSON.stringify({ x: "x".repeat(APPCONTEXT_ITEM_MAX_BYTES - 8) }));
    await expect(put("l", JSON.stringify({ x: "x".repeat(APPCONTEXT_ITEM_MAX_BYTES - 7) }))).rejects.toMatchObject({
      code: "too_large",
    });
    await expect(set("t", "", -1)).rejects.toThrow("ttl is a number of seconds from 1");
    await expect(set("t", "", APPCONTEXT_TTL_MAX_SECONDS + 1)).rejects.toMatchObject({ code: "invalid" });
    for (const text of ["[1]", "null", "5", '"text"']) await expect(put("p", text)).rejects.toThrow("is a JSON object");
    for (const text of ["", "{", "a=1", `${'{"a":'.repeat(100)}1${"}".repeat(100)}`])
      await expect(put("p", text)).rejects.toBeInstanceOf(AppError);
    await expect(appcontext.item(admin, "c", "p")).rejects.toMatchObject({ code: "not_found" });
  });

  test("a condition that is too long or too deep is, before an item is read", async () => {
    const { service, counts } = counting();
    for (const where of ["a".repeat(1_000_000), "(".repeat(60_000), "size = ", "a ~= '(?=a)'"]) {
      await expect(all(service, { collection: "c", where })).rejects.toBeInstanceOf(AppError);
      await expect(service.end(admin, { collection: "c", where }, "last")).rejects.toBeInstanceOf(AppError);
    }
    expect(counts.find).toBe(0);
  });

  test("who may read only reads, and who may do neither does neither", async () => {
    await appcontext.setVariable(admin, { key: "rights", text: "seen" });
    const id = await create("rights", { n: 1 });
    expect(await appcontext.variable(viewer, "rights")).toBe("seen");
    expect(await all(appcontext, { collection: "rights" }, viewer)).toEqual([{ id, n: 1 }]);
    const item = { collection: "rights", id, text: "{}" };
    for (const who of [viewer, stranger]) {
      const denied = { code: "denied" };
      await expect(appcontext.setVariable(who, { key: "rights", text: "" })).rejects.toMatchObject(denied);
      await expect(appcontext.removeVariable(who, "rights")).rejects.toMatchObject(denied);
      await expect(appcontext.create(who, item)).rejects.toMatchObject(denied);
      await expect(appcontext.put(who, item)).rejects.toMatchObject(denied);
      await expect(appcontext.replace(who, item)).rejects.toMatchObject(denied);
      await expect(appcontext.removeItem(who, "rights", id)).rejects.toMatchObject(denied);
      await expect(appcontext.removeItems(who, "rights")).rejects.toMatchObject(denied);
    }
    await expect(appcontext.variable(stranger, "rights")).rejects.toMatchObject({ code: "denied" });
    await expect(appcontext.item(stranger, "rights", id)).rejects.toMatchObject({ code: "denied" });
    await expect(all(appcontext, { collection: "rights" }, stranger)).rejects.toMatchObject({ code: "denied" });
    await expect(appcontext.end(stranger, { collection: "rights" }, "last")).rejects.toMatchObject({ code: "denied" });
  });

  test("a neighbour sees and removes only what is its own", async () => {
    await appcontext.setVariable(admin, { key: "shared", text: "mine" });
    const id = await create("shared", { n: 1 });
    await appcontext.removeVariable(neighbour, "shared");
    await appcontext.removeItems(neighbour, "shared");
    await appcontext.removeItem(neighbour, "shared", id);
    expect(await all(appcontext, { collection: "shared" }, neighbour)).toEqual([]);
    await expect(appcontext.item(neighbour, "shared", id)).rejects.toMatchObject({ code: "not_found" });
    expect(await appcontext.variable(admin, "shared")).toBe("mine");
    expect(await all(appcontext, { collection: "shared" })).toHaveLength(1);
  });
});

describe("with a store that fails", () => {
  test("a write whose answer was lost is made once, and answered", async () => {
    let lost = 0;
    const stores = storesWith((objects) => ({
      change: async (changes) => {
        await objects.change(changes);
        if (lost++ < 2) throw new AppError("unknown_outcome", "The answer was lost.");
      },
    }));
    const { id } = await serviceAt(0, stores).create(admin, { collection: "lost", text: '{"n":1}' });
    expect(lost).toBe(3);
    expect(await all(appcontext, { collection: "lost" })).toEqual([{ id, n: 1 }]);
  });

  test("on a folder of its own, what was answered is there after a restart", async () => {
    const dir = await storeFolder("odp-appcontext-");
    const open = () => openEmbeddedEngine({ dir, runtime: testRuntime(realClock) });
    const before = await open();
    await before.createTenant("matrix");
    await serviceAt(0, before).setVariable(admin, { key: "kept", text: "kept", ttlSeconds: 3_600 });
    const { id } = await serviceAt(0, before).create(admin, { collection: "kept", text: '{"n":1}', ttlSeconds: 60 });
    await before.close();
    const after = await open();
    expect(await serviceAt(0, after).variable(admin, "kept")).toBe("kept");
    expect(await all(serviceAt(0, after), { collection: "kept" })).toEqual([{ id, n: 1 }]);
    expect(await all(serviceAt(61_000, after), { collection: "kept" })).toEqual([]);
    await after.close();
    await rm(dir, { recursive: true });
  });

  test("that stays away, a call fails by that name", async () => {
    const away = (): Promise<never> => Promise.reject(new AppError("unavailable", "away"));
    const service = serviceAt(
      0,
      storesWith(() => ({ get: away, trace: away, find: away })),
    );
    await expect(service.variable(admin, "v")).rejects.toMatchObject({ code: "unavailable" });
    await expect(service.setVariable(admin, { key: "v", text: "" })).rejects.toMatchObject({ code: "unavailable" });
    await expect(all(service, { collection: "c" })).rejects.toMatchObject({ code: "unavailable" });
  });

  test("removing all items is repeated until it is done", async () => {
    for (let n = 0; n < 600; n++) await create("emptied", { n });
    let calls = 0;
    const stores = storesWith((objects) => ({
      change: (changes) => {
        calls += 1;
        return calls > 1 && calls < 9 ? Promise.reject(new AppError("unavailable", "away")) : objects.change(changes);
      },
    }));
    const service = serviceAt(0, stores);
    await expect(service.removeItems(admin, "emptied")).rejects.toMatchObject({ code: "unavailable" });
    expect((await all(appcontext, { collection: "emptied" })).length).toBeLessThan(600);
    await service.removeItems(admin, "emptied");
    expect(await all(appcontext, { collection: "emptied" })).toEqual([]);
  });

  test.each([1, 2, 3])("everything is as the answered calls left it (seed %i)", async (seed) => {
    await using nasty = await openTestEngine({ faultySeed: seed });
    const random = seededRandom(seed);
    const below = (end: number): number => Math.floor(random.next() * end);
    const service = serviceAt(0, nasty);
    const model = new Map<string, number>();
    const ids = Array.from({ length: 20 }, (_, at) => `id${at}`);
    for (let round = 0; round < 100; round++) {
      const id = ids[below(ids.length)] ?? "";
      const item = { collection: "model", id, text: `{"n":${round}}` };
      if (below(30) === 0) {
        await untilDone(() => service.removeItems(admin, "model"));
        model.clear();
      } else if (below(4) === 0) {
        await untilDone(() => service.removeItem(admin, "model", id));
        model.delete(id);
      } else {
        await untilDone(() => service.put(admin, item));
        model.set(id, round);
      }
      const read = await untilDone(() => all(service, { collection: "model" }));
      expect(new Map(read.map((one) => [one.id, one["n"]])), `seed ${seed} round ${round}`).toEqual(model);
    }
  });
});

async function untilDone<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof AppError) || !["unavailable", "unknown_outcome"].includes(error.code)) throw error;
    }
  }
}
