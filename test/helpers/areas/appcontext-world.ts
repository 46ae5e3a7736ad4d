import { afterAll, beforeAll } from "vitest";
import { realClock, shiftedClock } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import type { ObjectStore } from "../../../controller/store/objects.ts";
import { AppcontextService } from "../../../controller/areas/appcontext/service.ts";
import type { Item, ItemQuery } from "../../../controller/areas/appcontext/types.ts";

/** Variables and collections of one tenant, read and written by several controllers. */

export const admin = testPrincipal();

/** Stores that all tests of the calling file share. */
export let engine: TestEngine;
/** A controller whose clock is right. */
export let appcontext: AppcontextService;

/** Opens one engine for all tests of the calling file. */
export function useAppcontext(): void {
  beforeAll(async () => {
    engine = await openTestEngine();
    appcontext = serviceAt();
  });
  afterAll(() => engine.close());
}

/** Returns a further controller, whose clock is ahead by `aheadMs`. */
export function serviceAt(aheadMs = 0, stores: Stores = engine): AppcontextService {
  const clock = shiftedClock(realClock, aheadMs);
  const random = { next: () => Math.random(), bytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)) };
  return new AppcontextService({ stores, runtime: { ...testRuntime(clock), random } });
}

/** Returns the items of all pages. */
export async function all(service: AppcontextService, query: ItemQuery, principal = admin): Promise<readonly Item[]> {
  const items: Item[] = [];
  for await (const page of service.list(principal, query)) items.push(...page);
  return items;
}

/** Creates an item, and returns its id. */
export async function create(collection: string, value: object, ttlSeconds?: number): Promise<string> {
  const item = { collection, text: JSON.stringify(value), ...(ttlSeconds !== undefined && { ttlSeconds }) };
  return (await appcontext.create(admin, item)).id;
}

/** Returns stores with some functions of the object store replaced. */
export function storesWith(change: (objects: ObjectStore) => Partial<ObjectStore>): Stores {
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

/** Returns a controller that counts its calls of the object store: keys got, pages and items found. */
export function counting(aheadMs = 0) {
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
