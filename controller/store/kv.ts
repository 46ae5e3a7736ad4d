/**
 * The seam for data that must be agreed on: class definitions, configuration, sessions, leases, leadership, marks. Its
 * model is etcd. It is specified for the weaker engine: the promises below hold on both engines, and nothing more.
 *
 * Every call ends by `STORE_CALL_DEADLINE_MS`. An outage is `AppError("unavailable")`. A write that may or may not have
 * happened is `AppError("unknown_outcome")`; repeating it with the same condition is safe. A key or value over its
 * limit is `AppError("too_large")`. An absent key is `undefined`. A condition that does not hold is a result, no error.
 *
 * An entry with `expiresAtMs` expires by the clock of the controller that reads it. A `get`, `list`, `put`, `delete` or
 * `txn` takes the time of day when it begins. If an entry has expired by then, the call first removes it at its
 * revision, and then decides and returns its result. Therefore:
 * - It is absent for a caller whose clock has reached the expiry time, as after a delete: conditions count it as
 *   absent, lists leave it out, and the next `put` begins a new life with a new `createRevision`.
 * - Once absent for one caller, it is absent for all, even on slower clocks and on a clock that was set back. Until
 *   then, a controller whose clock is slower by d may read and prolong it for up to d longer.
 * - A removal that loses against another write is decided again, based on that write.
 * - A watch reports the removal as a delete. A sweep (`kv/sweep.ts`) removes entries that are not read, so the delete
 *   may come late.
 * - The expiry time is stored with the value, so a restart, a new leader or a lease does not prolong it.
 */
export interface KvStore {
  /** `AppError("unavailable")` also if the entry has expired and cannot be removed. */
  get(key: string): Promise<KvEntry | undefined>;

  /** Linearizable. `ifRevision: 0` writes only if the key is absent; another number only over exactly that revision. */
  put(key: string, value: Uint8Array, options?: KvPutOptions): Promise<KvWriteResult>;

  /** `ok` also if the key was absent and there was no condition. */
  delete(key: string, options?: { readonly ifRevision?: number }): Promise<KvWriteResult>;

  /**
   * Entries whose key begins with `prefix`, in byte order of keys, after the key `after`. At most `limit`, by default
   * `KV_PAGE_MAX_ENTRIES`. `next` is the `after` of the next page; absent at the end. A page may be empty and have a
   * `next`, because expired entries are left out.
   */
  list(prefix: string, options?: KvListOptions): Promise<KvPage>;

  /**
   * Yields every change under `prefix` with a revision above `sinceRevision`, in revision order and without gaps, until
   * the signal fires; then it ends without an error. Throws `AppError("compacted")` if that history was compacted: list
   * again, and watch from the page's revision. During an outage it waits and then continues.
   */
  watch(prefix: string, options: KvWatchOptions): AsyncIterable<readonly KvEvent[]>;

  /** A lease that renews itself until it is revoked. When it ends, the entries bound to it are removed. */
  lease(ttlMs: number): Promise<KvLease>;

  /**
   * Executes all of `then` if every condition holds, otherwise nothing. At most `KV_TXN_MAX_OPERATIONS` conditions and
   * operations.
   */
  txn(request: KvTxn): Promise<{ readonly ok: boolean; readonly revision: number }>;
}

export interface KvEntry {
  readonly key: string;
  readonly value: Uint8Array;
  /** Revision of the write that created the key. A delete ends that life of the key. */
  readonly createRevision: number;
  /** Revision of the latest write. Revisions increase over the whole store, not per key. */
  readonly revision: number;
  readonly lease?: string;
  /** Absent: the entry does not expire. */
  readonly expiresAtMs?: number;
}

export interface KvPutOptions {
  readonly ifRevision?: number;
  readonly lease?: string;
  /**
   * Whole milliseconds since 1970, at most `Number.MAX_SAFE_INTEGER`; the past is allowed. Otherwise
   * `AppError("invalid")`. Every `put` sets it again: a `put` without it removes the expiry.
   */
  readonly expiresAtMs?: number;
}

export type KvWriteResult =
  | { readonly ok: true; readonly revision: number }
  /** The condition did not hold; `current` is the stored entry. */
  | { readonly ok: false; readonly current: KvEntry | undefined };

export interface KvListOptions {
  readonly after?: string;
  readonly limit?: number;
}

export interface KvPage {
  readonly entries: readonly KvEntry[];
  /** The store's revision when the page was read. A watch from here misses nothing. */
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
  /** Fires when the lease is lost or may be lost, before any other client can see its keys removed. */
  readonly lost: AbortSignal;
  /**
   * True if the lease is held right now, by the clock. This is correct even if timers are late, as in a process that
   * was stopped and continued.
   */
  held(): boolean;
  revoke(): Promise<void>;
}

export interface KvTxn {
  readonly if: readonly KvCondition[];
  readonly then: readonly KvOperation[];
}

/**
 * `revision: 0` means that the key is absent. `createRevision` requires the same life of the key; other writes during
 * that life do not matter.
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
  /** See `KvPutOptions`. */
  readonly expiresAtMs?: number;
}
