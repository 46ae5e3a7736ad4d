import type { TenantStore } from "../../store/engine.ts";
import type { BlobStore } from "../../store/blobs.ts";
import type { KvStore } from "../../store/kv.ts";
import type { ObjectStore } from "../../store/objects.ts";
import type { ScrubStore } from "../../store/scrub.ts";

/** Throws when the stores are closed. Returns a promise if it has to look that up. */
export type Check = () => void | Promise<void>;

/**
 * The same stores until `closed` fires. After that every call throws what `check` throws, also for callers that already
 * hold the stores, and watches end.
 */
export function closable(store: TenantStore, closed: AbortSignal, check: Check): TenantStore {
  return {
    kv: closableKv(store.kv, closed, check),
    objects: closableObjects(store.objects, check),
    blobs: closableBlobs(store.blobs, check),
    scrub: closableScrub(store.scrub, check),
  };
}

/** Async, so that a refusal is always a rejection. */
async function open<T>(check: Check, call: () => Promise<T>): Promise<T> {
  const looked = check();
  if (looked) await looked;
  return call();
}

function closableKv(kv: KvStore, closed: AbortSignal, check: Check): KvStore {
  return {
    get: (key) => open(check, () => kv.get(key)),
    put: (key, value, options) => open(check, () => kv.put(key, value, options)),
    delete: (key, options) => open(check, () => kv.delete(key, options)),
    list: (prefix, options) => open(check, () => kv.list(prefix, options)),
    lease: (ttlMs) => open(check, () => kv.lease(ttlMs)),
    txn: (request) => open(check, () => kv.txn(request)),
    async *watch(prefix, options) {
      await check();
      yield* kv.watch(prefix, { ...options, signal: AbortSignal.any([options.signal, closed]) });
      if (!options.signal.aborted) await check();
    },
  };
}

function closableObjects(objects: ObjectStore, check: Check): ObjectStore {
  return {
    ...(objects.spansSeams === true && { spansSeams: true }),
    change: (changes, inCommit) => open(check, () => objects.change(changes, inCommit)),
    get: (keys, cells) => open(check, () => objects.get(keys, cells)),
    trace: (keys) => open(check, () => objects.trace(keys)),
    find: (request, page) => open(check, () => objects.find(request, page)),
    estimate: (request) => open(check, () => objects.estimate(request)),
    countClass: (term, cursor) => open(check, () => objects.countClass(term, cursor)),
    countRecords: (span, cursor) => open(check, () => objects.countRecords(span, cursor)),
    terms: (request, page) => open(check, () => objects.terms(request, page)),
    scan: (page) => open(check, () => objects.scan(page)),
    history: (key, range, page) => open(check, () => objects.history(key, range, page)),
    edges: (key, direction, page) => open(check, () => objects.edges(key, direction, page)),
    append: (records, inCommit) => open(check, () => objects.append(records, inCommit)),
    timeline: (request, page) => open(check, () => objects.timeline(request, page)),
    getRecords: (keys) => open(check, () => objects.getRecords(keys)),
    removeRecords: (keys) => open(check, () => objects.removeRecords(keys)),
  };
}

function closableScrub(scrub: ScrubStore, check: Check): ScrubStore {
  return {
    postings: (page) => open(check, () => scrub.postings(page)),
    ended: (page) => open(check, () => scrub.ended(page)),
    endingInParts: (page) => open(check, () => scrub.endingInParts(page)),
    missing: (entities) => open(check, () => scrub.missing(entities)),
    add: (changes) => open(check, () => scrub.add(changes)),
    remove: (postings) => open(check, () => scrub.remove(postings)),
    edges: (from, page) => open(check, () => scrub.edges(from, page)),
    contents: (page) => open(check, () => scrub.contents(page)),
    verify: (digest, paced) => open(check, () => scrub.verify(digest, paced)),
    rows: (page) => open(check, () => scrub.rows(page)),
    repairs: () => open(check, () => scrub.repairs()),
  };
}

function closableBlobs(blobs: BlobStore, check: Check): BlobStore {
  return {
    put: (...content) => open(check, () => blobs.put(...content)),
    stat: (digest) => open(check, () => blobs.stat(digest)),
    mark: (digest, owner) => open(check, () => blobs.mark(digest, owner)),
    unmark: (digest, owner) => open(check, () => blobs.unmark(digest, owner)),
    sweep: (graceMs) => open(check, () => blobs.sweep(graceMs)),
    append: (stream, offset, bytes) => open(check, () => blobs.append(stream, offset, bytes)),
    readStream: (stream, offset, maxBytes) => open(check, () => blobs.readStream(stream, offset, maxBytes)),
    removeStream: (stream) => open(check, () => blobs.removeStream(stream)),
    async *read(digest, range) {
      await check();
      for await (const part of blobs.read(digest, range)) {
        await check();
        yield part;
      }
    },
  };
}
