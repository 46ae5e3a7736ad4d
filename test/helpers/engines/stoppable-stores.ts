import type { Stores, TenantStore } from "../../../controller/store/engine.ts";
import type { KvEvent, KvLease, KvStore } from "../../../controller/store/kv.ts";
import type { ObjectStore } from "../../../controller/store/objects.ts";
import { wrappedKv } from "./wrapped-kv.ts";

/** A call that is held before it reaches the store, until it may continue. */
export interface HeldCall {
  goOn(): void;
}

type Writing = "change" | "append" | "trace" | "txn";

/**
 * The stores of one controller that can be stopped as SIGSTOP stops a process: in the middle of a write, while its
 * lease expires for all others and its own timers do not fire. While stopped it makes no store calls and gets no
 * answers.
 */
export class StoppableStores implements Stores {
  readonly #stores: Stores;
  readonly #leases: KvLease[] = [];
  /** Present while stopped. Holds back events of the watch and of the lease's own timer. */
  #stopped: { readonly ended: Promise<void>; readonly end: () => void } | undefined;
  #expired = 0;
  #hold: { readonly writing: Writing; readonly arrived: (call: HeldCall) => void } | undefined;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  system(): Promise<TenantStore> {
    return this.#stores.system();
  }

  async tenant(name: string): Promise<TenantStore> {
    const store = await this.#stores.tenant(name);
    return { ...store, kv: this.#kv(store.kv), objects: this.#objects(store.objects) };
  }

  /** Holds the next call of that kind. */
  hold(writing: Writing): Promise<HeldCall> {
    return new Promise((arrived) => {
      this.#hold = { writing, arrived };
    });
  }

  /** From now on no changes of definitions are received, and the existing leases end for all except their holder. */
  async stop(): Promise<void> {
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#stopped = { ended, end };
    this.#expired = this.#leases.length;
    for (const lease of this.#leases) await lease.revoke();
  }

  goOn(): void {
    this.#stopped?.end();
    this.#stopped = undefined;
  }

  #kv(inner: KvStore): KvStore {
    return wrappedKv(inner, {
      get: (key) => this.#running(() => inner.get(key)),
      put: (key, value, options) => this.#running(() => inner.put(key, value, options)),
      list: (prefix, options) => this.#running(() => inner.list(prefix, options)),
      txn: (request) => this.#call("txn", () => inner.txn(request)),
      watch: (prefix, options) => this.#watch(inner.watch(prefix, options)),
      lease: (ttlMs) => this.#running(async () => this.#lease(await inner.lease(ttlMs))),
    });
  }

  async *#watch(events: AsyncIterable<readonly KvEvent[]>): AsyncIterable<readonly KvEvent[]> {
    for await (const batch of events) {
      await this.#stopped?.ended;
      yield batch;
    }
  }

  /** Its timers are late: the clock shows the end before `lost` fires. */
  #lease(inner: KvLease): KvLease {
    const place = this.#leases.push(inner);
    const lost = new AbortController();
    inner.lost.addEventListener(
      "abort",
      () => void (this.#stopped?.ended ?? Promise.resolve()).then(() => setImmediate(() => lost.abort())),
      { once: true },
    );
    return {
      id: inner.id,
      lost: lost.signal,
      held: () => place > this.#expired && inner.held(),
      revoke: () => inner.revoke(),
    };
  }

  #objects(inner: ObjectStore): ObjectStore {
    return {
      change: (changes, inCommit) => this.#call("change", () => inner.change(changes, inCommit)),
      append: (records, inCommit) => this.#call("append", () => inner.append(records, inCommit)),
      trace: (keys) => this.#call("trace", () => inner.trace(keys)),
      get: (keys) => inner.get(keys),
      find: (request, page) => inner.find(request, page),
      estimate: (request) => inner.estimate(request),
      countClass: (term, cursor) => inner.countClass(term, cursor),
      countRecords: (span, cursor) => inner.countRecords(span, cursor),
      terms: (request, page) => inner.terms(request, page),
      scan: (page) => inner.scan(page),
      history: (key, range, page) => inner.history(key, range, page),
      edges: (key, direction, page) => inner.edges(key, direction, page),
      timeline: (request, page) => inner.timeline(request, page),
      getRecords: (keys) => inner.getRecords(keys),
      removeRecords: (keys) => inner.removeRecords(keys),
    };
  }

  async #call<T>(writing: Writing, action: () => Promise<T>): Promise<T> {
    const hold = this.#hold;
    if (hold?.writing === writing) {
      this.#hold = undefined;
      await new Promise<void>((resolve) => hold.arrived({ goOn: resolve }));
    }
    return this.#running(action);
  }

  async #running<T>(action: () => Promise<T>): Promise<T> {
    await this.#stopped?.ended;
    try {
      return await action();
    } finally {
      await this.#stopped?.ended;
    }
  }
}
