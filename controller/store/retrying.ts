import type { ObjectStore } from "./objects.ts";
import type { Retry } from "./retry.ts";

/**
 * The same store; each call is repeated while it fails for a transient reason. `Retry` defines how often and how long.
 */
export function retrying(store: ObjectStore, retry: Retry): ObjectStore {
  return {
    change: (changes) => retry.run(() => store.change(changes)),
    get: (keys, cells) => retry.run(() => store.get(keys, cells)),
    trace: (keys) => retry.run(() => store.trace(keys)),
    find: (request, page) => retry.run(() => store.find(request, page)),
    estimate: (request) => retry.run(() => store.estimate(request)),
    countClass: (term, cursor) => retry.run(() => store.countClass(term, cursor)),
    countRecords: (span, cursor) => retry.run(() => store.countRecords(span, cursor)),
    terms: (request, page) => retry.run(() => store.terms(request, page)),
    scan: (page) => retry.run(() => store.scan(page)),
    history: (key, range, page) => retry.run(() => store.history(key, range, page)),
    edges: (key, direction, page) => retry.run(() => store.edges(key, direction, page)),
    append: (records) => retry.run(() => store.append(records)),
    timeline: (request, page) => retry.run(() => store.timeline(request, page)),
    getRecords: (keys) => retry.run(() => store.getRecords(keys)),
    removeRecords: (keys) => retry.run(() => store.removeRecords(keys)),
  };
}
