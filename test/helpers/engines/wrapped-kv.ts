import type { KvStore } from "../../../controller/store/kv.ts";

/** A store that passes its calls to another one, except for those that a test replaces. */
export function wrappedKv(kv: KvStore, instead: Partial<KvStore>): KvStore {
  return {
    get: (key) => kv.get(key),
    put: (key, value, options) => kv.put(key, value, options),
    delete: (key, options) => kv.delete(key, options),
    list: (prefix, options) => kv.list(prefix, options),
    watch: (prefix, options) => kv.watch(prefix, options),
    lease: (ttlMs) => kv.lease(ttlMs),
    txn: (request) => kv.txn(request),
    ...instead,
  };
}
