import { AppError } from "../../../../common/errors.ts";
import {
  KV_KEY_MAX_BYTES,
  KV_LEASE_MAX_MS,
  KV_LEASE_MIN_MS,
  KV_PAGE_MAX_ENTRIES,
  KV_TXN_MAX_OPERATIONS,
  KV_VALUE_MAX_BYTES,
} from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
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
} from "../../../../controller/store/kv.ts";
import { checkExpiry, hasExpired } from "../../../../controller/store/kv/expiry.ts";
import type { StoreCall } from "./call.ts";

/** A lease is renewed this many times in its lifetime. */
const BEATS = 3;

interface Lease {
  readonly ttlMs: number;
  endsMs: number;
}

/** The key-value store shared by all its clients. Every write that changes something gets a revision. */
export class MemoryKvState {
  readonly #clock: Clock;
  readonly #entries = new Map<string, KvEntry>();
  readonly #leases = new Map<string, Lease>();
  readonly #listeners = new Set<() => void>();
  #events: KvEvent[] = [];
  #compacted = 0;
  #revision = 0;
  #granted = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same entries, without their history and without leases. */
  fork(clock: Clock): MemoryKvState {
    const copy = new MemoryKvState(clock);
    for (const [key, entry] of this.#entries) if (entry.lease === undefined) copy.#entries.set(key, entry);
    copy.#revision = this.#revision;
    copy.#compacted = this.#revision;
    return copy;
  }

  /** `nowMs`, here and below, is the client's time of day: entries that have expired by then are removed first. */
  get(key: string, nowMs = this.#clock.nowMs()): KvEntry | undefined {
    checkKey(key);
    this.#endExpired([key], nowMs);
    return this.#entries.get(key);
  }

  list(prefix: string, options: KvListOptions, nowMs = this.#clock.nowMs()): KvPage {
    const limit = options.limit ?? KV_PAGE_MAX_ENTRIES;
    if (!(Number.isInteger(limit) && limit >= 1 && limit <= KV_PAGE_MAX_ENTRIES))
      throw new AppError("invalid", `A page has 1 to ${KV_PAGE_MAX_ENTRIES} entries.`);
    const keys = [...this.#entries.keys()].filter(
      (key) => key.startsWith(prefix) && (options.after === undefined || byBytes(key, options.after) > 0),
    );
    keys.sort(byBytes);
    const page = keys.slice(0, limit);
    this.#endExpired(page, nowMs);
    const entries = page.flatMap((key) => this.#entries.get(key) ?? []);
    const last = page.at(-1);
    return {
      entries,
      revision: this.#revision,
      ...(page.length < keys.length && last !== undefined ? { next: last } : {}),
    };
  }

  single(operation: KvOperation, ifRevision: number | undefined, nowMs: number): KvWriteResult {
    checkOperation(operation);
    this.#endExpired([operation.key], nowMs);
    const current = this.#entries.get(operation.key);
    if (ifRevision !== undefined && ifRevision !== (current?.revision ?? 0)) return { ok: false, current };
    return { ok: true, revision: this.#apply([operation]) };
  }

  txn(request: KvTxn, nowMs: number): { ok: boolean; revision: number } {
    checkTxn(request);
    this.#endExpired(
      [...request.if, ...request.then].map(({ key }) => key),
      nowMs,
    );
    if (!request.if.every((condition) => this.#holds(condition))) return { ok: false, revision: this.#revision };
    return { ok: true, revision: this.#apply(request.then) };
  }

  /** Events under the prefix after that revision, and the revision up to which they are complete. */
  eventsAfter(sinceRevision: number, prefix: string): { events: readonly KvEvent[]; revision: number } {
    if (sinceRevision < this.#compacted)
      throw new AppError("compacted", "The history of changes does not reach back that far.");
    const events = this.#events.filter((event) => revisionOf(event) > sinceRevision && keyOf(event).startsWith(prefix));
    return { events, revision: this.#revision };
  }

  /** Resolves when the revision is above `since`, or when the signal fires. */
  changed(since: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted || this.#revision > since) return resolve();
      const done = () => {
        this.#listeners.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#listeners.add(done);
      signal.addEventListener("abort", done, { once: true });
    });
  }

  compact(): void {
    this.#events = [];
    this.#compacted = this.#revision;
  }

  grant(ttlMs: number): string {
    if (!(ttlMs >= KV_LEASE_MIN_MS && ttlMs <= KV_LEASE_MAX_MS))
      throw new AppError("invalid", `A lease lasts from ${KV_LEASE_MIN_MS} to ${KV_LEASE_MAX_MS} ms.`);
    const id = `lease-${++this.#granted}`;
    this.#leases.set(id, { ttlMs, endsMs: this.#clock.monotonicMs() + ttlMs });
    this.#watchLease(id, ttlMs);
    return id;
  }

  /** Throws `AppError("not_found")` if the lease has ended. */
  keepAlive(id: string): void {
    const lease = this.#leases.get(id);
    if (!lease) throw noLease(id);
    lease.endsMs = this.#clock.monotonicMs() + lease.ttlMs;
  }

  revoke(id: string): void {
    this.#leases.delete(id);
    const keys = [...this.#entries.values()].filter((entry) => entry.lease === id).map(({ key }) => key);
    this.#apply(keys.map((key) => ({ kind: "delete", key })));
  }

  #watchLease(id: string, delayMs: number): void {
    this.#clock.after(delayMs, () => {
      const lease = this.#leases.get(id);
      if (!lease) return;
      const leftMs = lease.endsMs - this.#clock.monotonicMs();
      if (leftMs > 0) this.#watchLease(id, leftMs);
      else this.revoke(id);
    });
  }

  #holds(condition: KvCondition): boolean {
    const entry = this.#entries.get(condition.key);
    if ("createRevision" in condition) return condition.createRevision === (entry?.createRevision ?? 0);
    return condition.revision === (entry?.revision ?? 0);
  }

  #endExpired(keys: readonly string[], nowMs: number): void {
    const expired = [...new Set(keys)].filter((key) => hasExpired(this.#entries.get(key) ?? {}, nowMs));
    this.#apply(expired.map((key) => ({ kind: "delete", key })));
  }

  #apply(operations: readonly KvOperation[]): number {
    for (const operation of operations) {
      if (operation.kind === "put" && operation.lease !== undefined && !this.#leases.has(operation.lease))
        throw noLease(operation.lease);
    }
    const revision = this.#revision + 1;
    const events = operations.flatMap((operation) => this.#applyOne(operation, revision) ?? []);
    if (events.length === 0) return this.#revision;
    this.#revision = revision;
    this.#events.push(...events);
    for (const listener of [...this.#listeners]) listener();
    return revision;
  }

  #applyOne(operation: KvOperation, revision: number): KvEvent | undefined {
    const { key } = operation;
    const current = this.#entries.get(key);
    if (operation.kind === "delete") return this.#entries.delete(key) ? { kind: "delete", key, revision } : undefined;
    const { lease, expiresAtMs } = operation;
    const bound = { ...(lease !== undefined && { lease }), ...(expiresAtMs !== undefined && { expiresAtMs }) };
    const createRevision = current?.createRevision ?? revision;
    const entry: KvEntry = { key, value: new Uint8Array(operation.value), createRevision, revision, ...bound };
    this.#entries.set(key, entry);
    return { kind: "put", entry };
  }
}

export interface MemoryKvOptions {
  readonly state: MemoryKvState;
  readonly call: StoreCall;
  /** The client's clock: renews its leases and determines which entries have expired. */
  readonly clock: Clock;
}

/** One client of the store. */
export class MemoryKvStore implements KvStore {
  readonly #state: MemoryKvState;
  readonly #call: StoreCall;
  readonly #clock: Clock;

  constructor({ state, call, clock }: MemoryKvOptions) {
    this.#state = state;
    this.#call = call;
    this.#clock = clock;
  }

  get(key: string): Promise<KvEntry | undefined> {
    return this.#call.read(`kv.get ${key}`, () => this.#state.get(key, this.#clock.nowMs()));
  }

  put(key: string, value: Uint8Array, options: KvPutOptions = {}): Promise<KvWriteResult> {
    const { ifRevision, ...bound } = options;
    const operation: KvOperation = { kind: "put", key, value: new Uint8Array(value), ...bound };
    return this.#call.write(`kv.put ${key}`, () => this.#state.single(operation, ifRevision, this.#clock.nowMs()));
  }

  delete(key: string, options: { readonly ifRevision?: number } = {}): Promise<KvWriteResult> {
    const operation: KvOperation = { kind: "delete", key };
    const { ifRevision } = options;
    return this.#call.write(`kv.delete ${key}`, () => this.#state.single(operation, ifRevision, this.#clock.nowMs()));
  }

  list(prefix: string, options: KvListOptions = {}): Promise<KvPage> {
    return this.#call.read(`kv.list ${prefix}`, () => this.#state.list(prefix, options, this.#clock.nowMs()));
  }

  txn(request: KvTxn): Promise<{ readonly ok: boolean; readonly revision: number }> {
    const keys = request.then.map(({ key }) => key).join(" ");
    return this.#call.write(`kv.txn ${keys}`, () => this.#state.txn(request, this.#clock.nowMs()));
  }

  async *watch(prefix: string, { sinceRevision, signal }: KvWatchOptions): AsyncIterable<readonly KvEvent[]> {
    let position = sinceRevision;
    while (!signal.aborted) {
      const { events, revision } = await this.#call.watch(() => this.#state.eventsAfter(position, prefix));
      if (signal.aborted) return;
      position = revision;
      if (events.length > 0) yield events;
      else await this.#state.changed(position, signal);
    }
  }

  async lease(ttlMs: number): Promise<KvLease> {
    const askedMs = this.#clock.monotonicMs();
    const id = await this.#call.write("kv.lease", () => this.#state.grant(ttlMs));
    return new HeldLease({
      id,
      ttlMs,
      untilMs: askedMs + ttlMs,
      state: this.#state,
      call: this.#call,
      clock: this.#clock,
    });
  }
}

interface HeldLeaseOptions extends MemoryKvOptions {
  readonly id: string;
  readonly ttlMs: number;
  readonly untilMs: number;
}

/** Measures from before each renewal, so it considers itself lost before others can see that. */
class HeldLease implements KvLease {
  readonly #options: HeldLeaseOptions;
  readonly #lost = new AbortController();
  #untilMs: number;
  #stop: () => void = () => undefined;

  constructor(options: HeldLeaseOptions) {
    this.#options = options;
    this.#untilMs = options.untilMs;
    this.#beat();
  }

  get id(): string {
    return this.#options.id;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  held(): boolean {
    return !this.#lost.signal.aborted && this.#options.clock.monotonicMs() < this.#untilMs;
  }

  async revoke(): Promise<void> {
    this.#end();
    const { id, state, call } = this.#options;
    await call.write("kv.revoke", () => state.revoke(id));
  }

  #beat(): void {
    const { ttlMs, clock } = this.#options;
    const leftMs = this.#untilMs - clock.monotonicMs();
    const pauseMs = Math.max(0, Math.min(ttlMs / BEATS, leftMs));
    this.#stop = clock.after(pauseMs, () => {
      if (clock.monotonicMs() >= this.#untilMs) return this.#end();
      this.#keep().catch(() => this.#end());
      this.#beat();
    });
  }

  async #keep(): Promise<void> {
    const { id, ttlMs, state, call, clock } = this.#options;
    const askedMs = clock.monotonicMs();
    await call.watch(() => state.keepAlive(id));
    if (!this.#lost.signal.aborted) this.#untilMs = askedMs + ttlMs;
  }

  #end(): void {
    this.#stop();
    this.#lost.abort();
  }
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function revisionOf(event: KvEvent): number {
  return event.kind === "put" ? event.entry.revision : event.revision;
}

function keyOf(event: KvEvent): string {
  return event.kind === "put" ? event.entry.key : event.key;
}

function noLease(id: string): AppError {
  return new AppError("not_found", `There is no lease ${id}; it may have ended.`);
}

function checkKey(key: string): void {
  if (key === "") throw new AppError("invalid", "A key must not be empty.");
  if (Buffer.byteLength(key) > KV_KEY_MAX_BYTES) throw new AppError("too_large", "The key is too long.");
}

function checkOperation(operation: KvOperation): void {
  checkKey(operation.key);
  if (operation.kind === "delete") return;
  if (operation.value.length > KV_VALUE_MAX_BYTES) throw new AppError("too_large", "The value is too large.");
  checkExpiry(operation.expiresAtMs);
}

function checkTxn(request: KvTxn): void {
  if (request.if.length + request.then.length > KV_TXN_MAX_OPERATIONS)
    throw new AppError("too_large", "The transaction has too many parts.");
  for (const { key } of request.if) checkKey(key);
  for (const operation of request.then) checkOperation(operation);
  if (new Set(request.then.map(({ key }) => key)).size !== request.then.length)
    throw new AppError("invalid", "A transaction writes each key at most once.");
}
