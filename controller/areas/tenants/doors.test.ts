import { expect, test } from "vitest";
import type { TenantStore } from "../../store/engine.ts";
import type { ObjectStore } from "../../store/objects.ts";
import { closable } from "./doors.ts";

const GIVEN = ["first", "second", "third"];
const OPEN = new AbortController().signal;

/** A store of objects that answers every call with its arguments. */
const answering = new Proxy({} as ObjectStore, {
  get:
    () =>
    (...given: readonly unknown[]) =>
      Promise.resolve(given),
});
const store = { kv: {}, objects: answering, blobs: {}, scrub: {} } as unknown as TenantStore;
const { objects } = closable(store, OPEN, () => undefined);
/** Number of arguments of each call; those without a line here have one. */
const COUNTS: Partial<Record<keyof ObjectStore, number>> = {
  ...{ change: 2, append: 2, get: 2, find: 2, countClass: 2, countRecords: 2 },
  ...{ terms: 2, history: 3, edges: 3, timeline: 2 },
};

test.each(Object.keys(objects) as (keyof ObjectStore)[])(
  "open stores give %s all that it is called with",
  async (name) => {
    const call = objects[name] as (...given: readonly unknown[]) => Promise<unknown>;
    expect(await call(...GIVEN)).toEqual(GIVEN.slice(0, COUNTS[name] ?? 1));
  },
);
