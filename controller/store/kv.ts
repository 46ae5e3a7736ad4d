/**
 * The seam for what must be agreed on: class definitions, configuration, sessions, leases, leadership, marks.
 * Its shape is etcd's. Written for the weaker engine: the promises below hold on both, nothing more does.
 *
 * Every call ends by `STORE_CALL_DEADLINE_MS`. An outage is `AppError("unavailable")`; a write that may or may not have
 * happened is `AppError("unknown_outcome")`, and repeating it with the same condition is safe. A key or value over its
 * limit is `AppError("too_large")`. Absence is `undefined`, a lost race an answer.
 *
 * An entry with `expiresAtMs` expires by the clock of the controller that looks at it. A `get`, `list`, `put`, `delete`
 * or `txn` takes the time of day when it begins; an entry whose moment has come by then is removed, on its revision,
 * before the call decides or answers anything. Therefore:
 * - It is absent for a caller whose clock has reached the moment, as after a delete: conditions count it as absent,
 *   lists leave it out, the next `put` begins a new life with a new `createRevision`.
 * - Once absent for one caller it is absent for all, on slower clocks and on a clock that was set back. Until then,
 *   where clocks differ by d, others may read and prolong it for up to d longer.
 * - A removal that loses against another write is decided anew, by what was written.
 * - A watch tells of the removal as a delete. Entries that are not read are removed by a sweep (`kv-sweep.ts`), so the
 *   delete may come late.
 * - The moment lies with the value: no restart, leader or lease prolongs it.
 */
export interface KvStore {
  /** A read that cannot remove what has expired is `AppError("unavailable")`. */
  get(key: string): Promise<KvEntry | undefined>;

  /** Linearizable. `ifRevision: 0` writes only when the key is absent, another number only over just that revision. */
  put(key: string, value: Uint8Array, options?: KvPutOptions): Promise<KvWriteResult>;

  /** `ok` also when the key was absent and no condition was given. */
  delete(key: string, options?: { readonly ifRevision?: number }): Promise<KvWriteResult>;

  /**
   * Entries whose key begins with `prefix`, in byte order of keys, after the key `after`. At most `limit`
   * (`KV_PAGE_MAX_ENTRIES` when absent). `next` is the `after` of the next page; absent at the end. A page whose
   * expired entries were left out may be empty and have a `next`.
   */
  list(prefix: string, options?: KvListOptions): Promise<KvPage>;

  /**
   * Every change under `prefix` with a revision above `sinceRevision`, in revision order, none left out, until the
   * signal fires (then it just ends). Throws `AppError("compacted")` when that history was compacted: list again and
   * watch from the page's revision. Outages are waited out inside.
   */
  watch(prefix: string, options: KvWatchOptions): AsyncIterable<readonly KvEvent[]>;

  /** A lease that keeps itself alive until revoked. Entries bound to it vanish when it ends. */
  lease(ttlMs: number): Promise<KvLease>;

  /**
   * All of `then` when every condition holds, else nothing. At most `KV_TXN_MAX_OPERATIONS` conditions and operations.
   */
  txn(request: KvTxn): Promise<{ readonly ok: boolean; readonly revision: number }>;
}

export interface KvEntry {
  readonly key: string;
  readonly value: Uint8Array;
  /** Revision of the write that made the key come to be; a delete ends that life. */
  readonly createRevision: number;
  /** Revision of the latest write. Revisions rise through the whole store, never per key. */
  readonly revision: number;
  readonly lease?: string;
  /** Absent: it does not expire. */
  readonly expiresAtMs?: number;
}

export interface KvPutOptions {
  readonly ifRevision?: number;
  readonly lease?: string;
  /**
   * Whole milliseconds since 1970, at most `Number.MAX_SAFE_INTEGER`, in the past as well; else `AppError("invalid")`.
   * Every `put` sets it anew: written without it an entry does not expire any more.
   */
  readonly expiresAtMs?: number;
}

export type KvWriteResult =
  | { readonly ok: true; readonly revision: number }
  /** The condition did not hold; `current` is what is there instead. */
  | { readonly ok: false; readonly current: KvEntry | undefined };

export interface KvListOptions {
  readonly after?: string;
  readonly limit?: number;
}

export interface KvPage {
  readonly entries: readonly KvEntry[];
  /** The store's revision when the page was read: watch from here to miss nothing. */
  readonly revision: number;
  readonly next?: string;
}

export interface KvWatchOptions {
  readonly sinceRevision: number;
  readonly signal: AbortSignal;
}

export type KvEvent =
  | { readonly kind: "put"; readonly entry: KvEntry }
  | { readonly kind: "delete"; readonly key: string; readonly revision: number };

export interface KvLease {
  readonly id: string;
  /** Fires once the lease is, or must be taken to be, lost: before any other client can see its keys removed. */
  readonly lost: AbortSignal;
  /**
   * Whether it is held right now, by the clock: says so too when timers are late, as in a process that was stopped and
   * goes on.
   */
  held(): boolean;
  revoke(): Promise<void>;
}

export interface KvTxn {
  readonly if: readonly KvCondition[];
  readonly then: readonly KvOperation[];
}

/**
 * `revision: 0` means the key is absent. `createRevision` fences on one life of the key, whatever was written in it.
 */
export type KvCondition =
  | { readonly key: string; readonly revision: number }
  | { readonly key: string; readonly createRevision: number };

export type KvOperation = KvPut | { readonly kind: "delete"; readonly key: string };

interface KvPut {
  readonly kind: "put";
  readonly key: string;
  readonly value: Uint8Array;
  readonly lease?: string;
  /** As of `KvPutOptions`. */
  readonly expiresAtMs?: number;
}
