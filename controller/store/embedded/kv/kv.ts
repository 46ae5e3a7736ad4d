import { AppError } from "../../../../common/errors.ts";
import {
  KV_KEY_MAX_BYTES,
  KV_PAGE_MAX_BYTES,
  KV_PAGE_MAX_ENTRIES,
  KV_TXN_MAX_OPERATIONS,
  KV_VALUE_MAX_BYTES,
} from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type {
  KvCondition,
  KvEntry,
  KvEvent,
  KvLease,
  KvListOptions,
  KvOperation,
  KvPage,
  KvPutOptions,
  KvStore,
  KvTxn,
  KvWatchOptions,
  KvWriteResult,
} from "../../kv.ts";
import { checkExpiry, hasExpired, removal } from "../../kv/expiry.ts";
import type { Environment } from "../environment/environment.ts";
import { following, prefixEnd, textBytes } from "../bytes/keys.ts";
import { KvLeases } from "./leases.ts";
import { KvLog, packEntry, unpackEntry } from "./log.ts";
import type { InTurn } from "../environment/read-turns.ts";
import { Wakeup } from "./wakeup.ts";

export interface KvStoreOptions {
  readonly env: Environment;
  readonly runtime: Pick<Runtime, "clock" | "random">;
  readonly inTurn: InTurn;
}

/** The key-value seam on LMDB. Each write that changes something gets one revision in the whole environment. */
export class EmbeddedKvStore implements KvStore {
  readonly #env: Environment;
  readonly #inTurn: InTurn;
  readonly #log: KvLog;
  readonly #leases: KvLeases;
  readonly #changed = new Wakeup();
  readonly #clock: Clock;

  constructor({ env, runtime, inTurn }: KvStoreOptions) {
    this.#env = env;
    this.#inTurn = inTurn;
    this.#clock = runtime.clock;
    this.#log = new KvLog(env);
    this.#leases = new KvLeases({
      env,
      runtime,
      endEntries: (keys) => this.#removeKeys(keys),
      committed: () => this.#committed(),
    });
  }

  /** Ends the leases of an earlier process. Await it before the first use. */
  async open(): Promise<void> {
    await this.#leases.endAll();
  }

  async get(key: string): Promise<KvEntry | undefined> {
    const bytes = checkedKey(key);
    const nowMs = this.#clock.nowMs();
    const stored = await this.#inTurn(() => this.#env.read().kv.getSound(bytes));
    const entry = stored === undefined ? undefined : unpackEntry(stored);
    if (entry === undefined || !hasExpired(entry, nowMs)) return entry;
    return removal(
      this.#write(() => {
        this.#endExpired([key], nowMs);
        return this.#read(bytes);
      }),
    );
  }

  async put(key: string, value: Uint8Array, options: KvPutOptions = {}): Promise<KvWriteResult> {
    const { ifRevision, ...bound } = options;
    return this.#single({ kind: "put", key, value: copyValue(value), ...bound }, ifRevision);
  }

  async delete(key: string, options: { readonly ifRevision?: number } = {}): Promise<KvWriteResult> {
    return this.#single({ kind: "delete", key }, options.ifRevision);
  }

  async list(prefix: string, options: KvListOptions = {}): Promise<KvPage> {
    const limit = checkedLimit(options.limit ?? KV_PAGE_MAX_ENTRIES);
    const nowMs = this.#clock.nowMs();
    const page = await this.#inTurn(() => this.#page(prefix, { ...options, limit }));
    if (!page.entries.some((entry) => hasExpired(entry, nowMs))) return page;
    // Read again, because others may have written in the meantime.
    return removal(this.#write(() => this.#withoutExpired(this.#page(prefix, { ...options, limit }), nowMs)));
  }

  #withoutExpired(page: KvPage, nowMs: number): KvPage {
    const expired = page.entries.filter((entry) => hasExpired(entry, nowMs));
    this.#removeKeys(expired.map(({ key }) => key));
    const entries = page.entries.filter((entry) => !hasExpired(entry, nowMs));
    return { ...page, entries, revision: this.#log.state().revision };
  }

  #page(prefix: string, options: KvListOptions & { readonly limit: number }): KvPage {
    const { limit } = options;
    const start =
      options.after !== undefined && options.after >= prefix ? following(textBytes(options.after)) : textBytes(prefix);
    const end = prefixEnd(textBytes(prefix));
    const tables = this.#env.read();
    const entries: KvEntry[] = [];
    let [bytes, more] = [0, false];
    const from = start.length === 0 ? Uint8Array.of(0) : start;
    for (const { value } of tables.kv.getRange(end === undefined ? { start: from } : { start: from, end })) {
      more = entries.length >= limit || (bytes >= KV_PAGE_MAX_BYTES && entries.length > 0);
      if (more) break;
      bytes += value.length;
      entries.push(unpackEntry(value));
    }
    const page = { entries, revision: this.#log.state().revision };
    return more ? { ...page, next: entries.at(-1)!.key } : page;
  }

  async *watch(prefix: string, options: KvWatchOptions): AsyncIterable<readonly KvEvent[]> {
    let position = options.sinceRevision;
    while (!options.signal.aborted) {
      // Created before the read: a change in between wakes it.
      const changed = this.#changed.next(options.signal);
      const since = position;
      const { events, revision } = await this.#inTurn(() => this.#log.read(since, prefix));
      const caughtUp = revision === position;
      position = revision;
      if (events.length > 0) yield events;
      else if (caughtUp) await changed;
    }
  }

  async lease(ttlMs: number): Promise<KvLease> {
    return this.#leases.grant(ttlMs);
  }

  async txn(request: KvTxn): Promise<{ readonly ok: boolean; readonly revision: number }> {
    checkTxn(request);
    const operations = request.then.map((operation) =>
      operation.kind === "put" ? { ...operation, value: copyValue(operation.value) } : operation,
    );
    const nowMs = this.#clock.nowMs();
    return this.#write(() => this.#decide({ if: request.if, then: operations }, nowMs));
  }

  /**
   * The transaction as part of another write: call `decide` inside that, and `committed` after its commit. The caller does
   * not change the values in between.
   */
  within(request: KvTxn): { readonly decide: () => boolean; readonly committed: () => void } {
    checkTxn(request);
    const nowMs = this.#clock.nowMs();
    return { decide: () => this.#decide(request, nowMs).ok, committed: () => this.#committed() };
  }

  /** Removes the history of changes. Watches from before the current revision end with `AppError("compacted")`. */
  async compact(): Promise<void> {
    await this.#write(() => this.#log.compact());
  }

  /**
   * Ends every watch with `AppError("unavailable")` and marks every lease as lost. The next `open` removes the entries
   * that are bound to leases.
   */
  close(): void {
    this.#leases.close();
    this.#changed.wake();
  }

  async #single(operation: KvOperation, ifRevision: number | undefined): Promise<KvWriteResult> {
    checkOperation(operation);
    const nowMs = this.#clock.nowMs();
    return this.#write(() => {
      const current = this.#alive(operation.key, nowMs);
      const holds = ifRevision === undefined || (current?.revision ?? 0) === ifRevision;
      if (holds) this.#requireLeases([operation]);
      this.#endExpired([operation.key], nowMs);
      return holds ? { ok: true, revision: this.#apply([operation]) } : { ok: false, current };
    });
  }

  #write<T>(action: () => T): Promise<T> {
    return this.#env.write(action, () => this.#committed());
  }

  #committed(): void {
    this.#log.committed();
    this.#changed.wake();
  }

  #read(key: Uint8Array): KvEntry | undefined {
    const stored = this.#env.read().kv.get(key);
    return stored === undefined ? undefined : unpackEntry(stored);
  }

  #alive(key: string, nowMs: number): KvEntry | undefined {
    const entry = this.#read(textBytes(key));
    return entry === undefined || hasExpired(entry, nowMs) ? undefined : entry;
  }

  #holds(condition: KvCondition, nowMs: number): boolean {
    const current = this.#alive(condition.key, nowMs);
    if ("createRevision" in condition) return (current?.createRevision ?? 0) === condition.createRevision;
    return (current?.revision ?? 0) === condition.revision;
  }

  /** Call it inside a write transaction. */
  #decide(
    { if: conditions, then: operations }: KvTxn,
    nowMs: number,
  ): { readonly ok: boolean; readonly revision: number } {
    const ok = conditions.every((condition) => this.#holds(condition, nowMs));
    if (ok) this.#requireLeases(operations);
    this.#endExpired(
      [...conditions, ...operations].map(({ key }) => key),
      nowMs,
    );
    return { ok, revision: ok ? this.#apply(operations) : this.#log.state().revision };
  }

  /** Call it inside a write transaction, before its first write. */
  #requireLeases(operations: readonly KvOperation[]): void {
    for (const operation of operations) {
      if (operation.kind === "put" && operation.lease !== undefined) this.#leases.require(operation.lease);
    }
  }

  /**
   * Call it inside a write transaction, before the operations. Uses a revision of its own, so that the next put begins
   * a new life.
   */
  #endExpired(keys: readonly string[], nowMs: number): void {
    const expired = [...new Set(keys)].filter((key) => {
      const entry = this.#read(textBytes(key));
      return entry !== undefined && hasExpired(entry, nowMs);
    });
    this.#removeKeys(expired);
  }

  /**
   * Call it inside a write transaction. Returns the store's revision afterwards; deleting an absent key does not
   * increase it.
   */
  #apply(operations: readonly KvOperation[]): number {
    const state = this.#log.state();
    const revision = state.revision + 1;
    const events = operations
      .map((operation) => this.#applyOne(operation, revision))
      .filter((event) => event !== undefined);
    if (events.length === 0) return state.revision;
    this.#log.append(state, revision, events);
    return revision;
  }

  #applyOne(operation: KvOperation, revision: number): KvEvent | undefined {
    const key = textBytes(operation.key);
    const current = this.#read(key);
    if (current?.lease !== undefined) this.#leases.unbind(current.lease, operation.key);
    if (operation.kind === "delete") {
      if (current === undefined) return undefined;
      this.#env.tables.kv.remove(key);
      return { kind: "delete", key: operation.key, revision };
    }
    if (operation.lease !== undefined) this.#leases.bind(operation.lease, operation.key);
    const { value, lease, expiresAtMs } = operation;
    const bound = { ...(lease !== undefined && { lease }), ...(expiresAtMs !== undefined && { expiresAtMs }) };
    const createRevision = current?.createRevision ?? revision;
    const entry: KvEntry = { key: operation.key, value, createRevision, revision, ...bound };
    this.#env.tables.kv.put(key, packEntry(entry));
    return { kind: "put", entry };
  }

  #removeKeys(keys: readonly string[]): void {
    this.#apply(keys.map((key) => ({ kind: "delete", key })));
  }
}

/** A copy, because the caller may reuse its buffer while the write waits. */
function copyValue(value: Uint8Array): Uint8Array {
  return new Uint8Array(value);
}

function checkedKey(key: string): Uint8Array {
  const bytes = textBytes(key);
  if (bytes.length === 0) throw new AppError("invalid", "A key must not be empty.");
  if (bytes.length > KV_KEY_MAX_BYTES) throw tooLarge("key", bytes.length, KV_KEY_MAX_BYTES);
  return bytes;
}

function checkedLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= KV_PAGE_MAX_ENTRIES) return limit;
  throw new AppError("invalid", `A page has 1 to ${KV_PAGE_MAX_ENTRIES} entries, not ${limit}.`);
}

function checkOperation(operation: KvOperation): void {
  checkedKey(operation.key);
  if (operation.kind === "delete") return;
  if (operation.value.length > KV_VALUE_MAX_BYTES) throw tooLarge("value", operation.value.length, KV_VALUE_MAX_BYTES);
  checkExpiry(operation.expiresAtMs);
}

function checkTxn(request: KvTxn): void {
  const count = request.if.length + request.then.length;
  if (count > KV_TXN_MAX_OPERATIONS) {
    throw new AppError(
      "too_large",
      `A transaction has at most ${KV_TXN_MAX_OPERATIONS} conditions and operations, not ${count}.`,
    );
  }
  for (const condition of request.if) checkedKey(condition.key);
  for (const operation of request.then) checkOperation(operation);
  const keys = new Set(request.then.map((operation) => operation.key));
  if (keys.size !== request.then.length) throw new AppError("invalid", "A transaction writes each key at most once.");
}

function tooLarge(what: string, size: number, limit: number): AppError {
  return new AppError("too_large", `A ${what} has at most ${limit} bytes, not ${size}.`);
}
