import {
  CompareResult,
  CompareTarget,
  SortOrder,
  SortTarget,
  type ICompare,
  type IKeyValue,
  type IRequestOp,
  type ITxnRequest,
  type ITxnResponse,
} from "etcd3";
import { AppError, isAppError } from "../../../../common/errors.ts";
import { KV_PAGE_MAX_ENTRIES, KV_TXN_MAX_OPERATIONS } from "../../../../common/limits.ts";
import type {
  KvEntry,
  KvEvent,
  KvLease,
  KvListOptions,
  KvPage,
  KvPutOptions,
  KvStore,
  KvTxn,
  KvWatchOptions,
  KvWriteResult,
} from "../../kv.ts";
import { hasExpired, removal } from "../../kv/expiry.ts";
import { Deadline } from "../deadline.ts";
import type { Etcd } from "./etcd.ts";
import { endOfPrefix, PrefixedKeys } from "./keys.ts";
import { grantLease, type EtcdLease } from "./lease.ts";
import {
  comparison,
  foundIn,
  hasExpiredBy,
  notWrittenSince,
  operationRequest,
  putRequest,
  removeUnchanged,
} from "./requests.ts";
import { watchKeys } from "./watch.ts";

/** Keys of one tenant in etcd, all under one prefix that callers never see. */
export class EtcdKvStore implements KvStore {
  readonly #etcd: Etcd;
  readonly #keys: PrefixedKeys;
  readonly #leases = new Set<EtcdLease>();
  readonly #closed = new AbortController();

  constructor(etcd: Etcd, prefix: string) {
    this.#etcd = etcd;
    this.#keys = new PrefixedKeys(prefix);
  }

  async get(key: string): Promise<KvEntry | undefined> {
    const request = { key: this.#keys.bytes(key) };
    const nowMs = this.#nowMs();
    const deadline = this.#deadline();
    for (;;) {
      const answer = await this.#etcd.call("read", (call) => this.#etcd.kv.range(request, call));
      const entry = answer.kvs[0] && this.#keys.entry(answer.kvs[0]);
      if (entry === undefined || !hasExpired(entry, nowMs)) return entry;
      if (await this.#removeExpired(answer.kvs)) return undefined;
      refuseAfter(deadline);
    }
  }

  async put(key: string, value: Uint8Array, options: KvPutOptions = {}): Promise<KvWriteResult> {
    return this.#single(key, { request_put: putRequest(this.#keys.bytes(key), value, options) }, options.ifRevision);
  }

  async delete(key: string, options: { readonly ifRevision?: number } = {}): Promise<KvWriteResult> {
    return this.#single(key, { request_delete_range: { key: this.#keys.bytes(key) } }, options.ifRevision);
  }

  async list(prefix: string, options: KvListOptions = {}): Promise<KvPage> {
    let limit = options.limit ?? KV_PAGE_MAX_ENTRIES;
    if (!Number.isInteger(limit) || limit < 1 || limit > KV_PAGE_MAX_ENTRIES)
      throw new AppError("invalid", `A page has 1 to ${KV_PAGE_MAX_ENTRIES} entries.`);
    for (;;) {
      try {
        return await this.#page(prefix, options.after, limit);
      } catch (error) {
        // The entries are so large that a page of them does not fit into one answer; a shorter page does.
        if (!isAppError(error, "too_large") || limit === 1) throw error;
        limit = Math.ceil(limit / 8);
      }
    }
  }

  async *watch(prefix: string, options: KvWatchOptions): AsyncIterable<readonly KvEvent[]> {
    const signal = AbortSignal.any([options.signal, this.#closed.signal]);
    const key = this.#keys.join(prefix);
    const toEntry = (pair: IKeyValue): KvEntry => this.#keys.entry(pair);
    yield* watchKeys(this.#etcd, {
      key,
      rangeEnd: endOfPrefix(key),
      sinceRevision: options.sinceRevision,
      signal,
      toEntry,
    });
    if (!options.signal.aborted) throw new AppError("unavailable", "The store was closed.");
  }

  async lease(ttlMs: number): Promise<KvLease> {
    const lease = await grantLease(this.#etcd, ttlMs);
    this.#leases.add(lease);
    lease.lost.addEventListener("abort", () => this.#leases.delete(lease), { once: true });
    return lease;
  }

  async txn(request: KvTxn): Promise<{ readonly ok: boolean; readonly revision: number }> {
    if (request.if.length + request.then.length > KV_TXN_MAX_OPERATIONS) {
      throw new AppError(
        "too_large",
        `A transaction holds at most ${KV_TXN_MAX_OPERATIONS} conditions and operations.`,
      );
    }
    if (new Set(request.then.map((operation) => operation.key)).size !== request.then.length) {
      throw new AppError("invalid", "A transaction writes each key at most once.");
    }
    const compare = request.if.map((condition) => comparison(this.#keys, condition));
    const success = request.then.map((operation) => operationRequest(this.#keys, operation));
    await this.#endExpired([...request.if, ...request.then].map(({ key }) => key));
    return this.#write(compare, success);
  }

  /** Ends its watches and stops renewing its leases. */
  close(): void {
    this.#closed.abort();
    for (const lease of [...this.#leases]) lease.abandon();
  }

  async #page(prefix: string, after: string | undefined, limit: number): Promise<KvPage> {
    const first = this.#keys.join(prefix);
    const next = after === undefined ? first : Buffer.concat([this.#keys.join(after), Buffer.of(0)]);
    const key = Buffer.compare(first, next) > 0 ? first : next;
    const range = {
      key,
      range_end: endOfPrefix(first),
      limit,
      sort_order: SortOrder.Ascend,
      sort_target: SortTarget.Key,
    };
    // For an empty range, etcd would answer as if its end were absent.
    if (Buffer.compare(key, range.range_end) >= 0) range.range_end = Buffer.concat([key, Buffer.of(0)]);
    const nowMs = this.#nowMs();
    const deadline = this.#deadline();
    for (;;) {
      const answer = await this.#etcd.call("read", (call) => this.#etcd.kv.range(range, call));
      const entries = answer.kvs.map((pair) => this.#keys.entry(pair)).filter((entry) => entry.key.startsWith(prefix));
      const alive = entries.filter((entry) => !hasExpired(entry, nowMs));
      const expired = answer.kvs.filter((pair) => hasExpired(this.#keys.entry(pair), nowMs));
      const next = answer.more ? entries.at(-1)?.key : undefined;
      if (await this.#removeExpired(expired)) return { entries: alive, revision: Number(answer.header.revision), next };
      refuseAfter(deadline);
    }
  }

  /** Removes expired entries under these keys. An entry that is written in the meantime stays. */
  async #endExpired(keys: readonly string[]): Promise<void> {
    const nowMs = this.#nowMs();
    const found = await Promise.all([...new Set(keys)].map((key) => this.#expired(this.#keys.bytes(key), nowMs)));
    await this.#removeExpired(found.flat());
  }

  /** Key and revision of the entry, without its value, if it has expired. */
  async #expired(key: Buffer, nowMs: number): Promise<readonly IKeyValue[]> {
    const found = { request_range: { key, keys_only: true } };
    const request = { compare: hasExpiredBy(key, nowMs), success: [found], failure: [] };
    return foundIn(await this.#etcd.call("read", (call) => this.#etcd.kv.txn(request, call)));
  }

  /** Removes each entry at its revision. Returns false if one of them was written again. */
  async #removeExpired(pairs: readonly IKeyValue[]): Promise<boolean> {
    let removed = true;
    for (let from = 0; from < pairs.length; from += KV_TXN_MAX_OPERATIONS) {
      const some = pairs.slice(from, from + KV_TXN_MAX_OPERATIONS);
      const success = some.map((pair) => ({ request_txn: removeUnchanged(pair) }));
      const request = { compare: [], success, failure: [] };
      const answer = await removal(this.#etcd.call("write", (call) => this.#etcd.kv.txn(request, call)));
      removed &&= answer.responses.every((each) => (each.response_txn as ITxnResponse | undefined)?.succeeded === true);
    }
    return removed;
  }

  /**
   * An abandoned write may wait in the receive buffer of a hanging member, and be executed when the member continues.
   * Therefore each write is conditional on a revision that its sender can have known: it never overwrites anything
   * written after it was abandoned. If the key has a newer revision than the known one, etcd refuses the write, and it
   * is sent again with the newer revision.
   */
  async #write(
    compare: readonly ICompare[],
    operations: readonly IRequestOp[],
  ): Promise<{ readonly ok: boolean; readonly revision: number }> {
    const deadline = this.#deadline();
    for (;;) {
      const guards = operations.map((operation) => notWrittenSince(operation, this.#etcd.revision));
      const guarded = { request_txn: { compare: guards, success: [...operations], failure: [] } };
      const answer = await this.#counted({ compare: [...compare], success: [guarded], failure: [] }, operations);
      const revision = Number(answer.header.revision);
      if (!answer.succeeded) return { ok: false, revision };
      if ((answer.responses[0]?.response_txn as ITxnResponse | undefined)?.succeeded) return { ok: true, revision };
      refuseAfter(deadline);
    }
  }

  /**
   * One operation on one key, conditional on `ifRevision`; without it, guarded as in `#write`. If the entry has
   * expired, it is removed first, and the operation is tried again.
   */
  async #single(key: string, operation: IRequestOp, ifRevision: number | undefined): Promise<KvWriteResult> {
    const bytes = this.#keys.bytes(key);
    const nowMs = this.#nowMs();
    const deadline = this.#deadline();
    for (;;) {
      const guard = (): ICompare => notWrittenSince(operation, this.#etcd.revision);
      const compare = [ifRevision === undefined ? guard() : comparison(this.#keys, { key, revision: ifRevision })];
      const write = { compare, success: [operation], failure: [{ request_range: { key: bytes } }] };
      const expired = { request_range: { key: bytes, keys_only: true } };
      const request = { compare: hasExpiredBy(bytes, nowMs), success: [expired], failure: [{ request_txn: write }] };
      const answer = await this.#counted(request, [operation]);
      const written = answer.responses[0]?.response_txn as ITxnResponse | undefined;
      if (written?.succeeded) return { ok: true, revision: Number(answer.header.revision) };
      if (answer.succeeded) await this.#removeExpired(foundIn(answer));
      else if (ifRevision !== undefined) return { ok: false, current: this.#firstEntry(written) };
      refuseAfter(deadline);
    }
  }

  /**
   * Sends a request of nested operations. etcd checks its space quota only for top-level puts, and executes nested ones
   * beyond it. So the request gets a top-level put that is never executed. Removals need no space.
   */
  async #counted(request: ITxnRequest, operations: readonly IRequestOp[]): Promise<ITxnResponse> {
    const key = operations.find(({ request_put: put }) => put !== undefined)?.request_put?.key;
    const send = (whole: ITxnRequest): Promise<ITxnResponse> =>
      this.#etcd.call("write", (call) => this.#etcd.kv.txn(whole, call));
    if (key === undefined) return send(request);
    const never = { key, result: CompareResult.Less, target: CompareTarget.Create, create_revision: 0 };
    const put = { request_put: { key, value: Buffer.alloc(0) } };
    const { header, responses } = await send({ compare: [never], success: [put], failure: [{ request_txn: request }] });
    return { ...(responses[0]?.response_txn as ITxnResponse), header };
  }

  #firstEntry(answer: ITxnResponse | undefined): KvEntry | undefined {
    const found = answer && foundIn(answer)[0];
    return found && this.#keys.entry(found);
  }

  #nowMs(): number {
    return this.#etcd.runtime.clock.nowMs();
  }

  #deadline(): Deadline {
    const { clock, random } = this.#etcd.runtime;
    return new Deadline(clock, random);
  }
}

function refuseAfter(deadline: Deadline): void {
  if (deadline.passed()) throw new AppError("unavailable", "Others write the same keys all the time.");
}
