import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { CATALOG_CHANGE_ATTEMPTS_MAX, CATALOG_LEASE_MS, CATALOG_RETRY_MS, STORE_CALL_DEADLINE_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { KvEntry, KvLease, KvOperation, KvStore } from "../../store/kv.ts";
import { COUNTER_KEY, DEFINITIONS_PREFIX, Draft } from "./draft.ts";
import { DefinitionLog } from "./definitionlog.ts";
import { Snapshot } from "./snapshot.ts";
import type { SystemClass } from "./types.ts";

export interface CatalogDependencies {
  readonly kv: KvStore;
  readonly runtime: Runtime;
  /** Owners of system classes by whole path. */
  readonly owners: ReadonlyMap<string, SystemClass>;
}

interface Waiter {
  readonly revision: number;
  readonly resolve: () => void;
}

/**
 * The class definitions of one tenant, followed by a watch under a lease. While the lease or the watch is lost the definitions may be old:
 * then nothing may be written (`requireCurrent`), and everything is read anew before that ends.
 */
export class TenantCatalog {
  readonly #kv: KvStore;
  readonly #runtime: Runtime;
  readonly #owners: ReadonlyMap<string, SystemClass>;
  readonly #log = new DefinitionLog();
  readonly #closing = new AbortController();
  #snapshot: Snapshot;
  #stale = true;
  #following = false;
  #waiters: Waiter[] = [];
  #changes: Promise<unknown> = Promise.resolve();
  #loop: Promise<void> = Promise.resolve();

  constructor(of: CatalogDependencies) {
    this.#kv = of.kv;
    this.#runtime = of.runtime;
    this.#owners = of.owners;
    this.#snapshot = new Snapshot(this.#log.definitions(), 0, { owners: of.owners });
  }

  /** Resolves once the definitions are known; from then on they are followed until `close`. */
  async open(): Promise<void> {
    const lease = await this.#load();
    this.#loop = this.#follow(lease);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#loop;
  }

  current(): Snapshot {
    if (!this.#stale) return this.#snapshot;
    this.#snapshot = new Snapshot(this.#log.definitions(), this.#log.revision, { before: this.#snapshot, owners: this.#owners });
    this.#stale = false;
    return this.#snapshot;
  }

  /** Throws `AppError("unavailable")` while the definitions may be old. */
  requireCurrent(): Snapshot {
    if (!this.#following) throw new AppError("unavailable", "The class definitions cannot be followed at the moment: nothing was changed.");
    return this.current();
  }

  /**
   * Applies a change to the definitions; when it resolves, `current` has it. `edit` may run several times, each time on newer
   * definitions; what it throws is thrown.
   */
  change(edit: (draft: Draft) => void): Promise<void> {
    const done = this.#changes.then(() => this.#change(edit));
    this.#changes = done.catch(() => undefined);
    return done;
  }

  async #change(edit: (draft: Draft) => void): Promise<void> {
    const name = Buffer.from(this.#runtime.random.bytes(12)).toString("hex");
    for (let attempt = 1; attempt <= CATALOG_CHANGE_ATTEMPTS_MAX; attempt++) {
      this.requireCurrent();
      if (this.#log.saw(name)) return;
      // After a list of several pages the counter may be newer than the classes.
      await this.#passed(this.#log.definitions().counterRevision);
      const definitions = this.#log.definitions();
      const draft = new Draft(definitions, this.#runtime.clock.nowMs());
      edit(draft);
      const operations = draft.operations(name);
      if (operations.length === 0) return;
      const revision = await this.#write(operations, definitions.counterRevision);
      if (revision !== undefined) return this.#passed(revision);
      await this.#catchUp();
    }
    throw new AppError("unavailable", "The class definitions are changed by too many at once: try again.");
  }

  /** The revision of the write; `undefined` when somebody was faster or nobody knows. */
  async #write(operations: readonly KvOperation[], counterRevision: number): Promise<number | undefined> {
    try {
      const result = await this.#kv.txn({ if: [{ key: COUNTER_KEY, revision: counterRevision }], then: operations });
      return result.ok ? result.revision : undefined;
    } catch (error) {
      if (!isAppError(error, "unavailable", "unknown_outcome")) throw error;
      await wait(this.#runtime.clock, CATALOG_RETRY_MS * this.#runtime.random.next(), this.#closing.signal);
      return undefined;
    }
  }

  async #catchUp(): Promise<void> {
    try {
      const counter = await this.#kv.get(COUNTER_KEY);
      if (counter !== undefined) await this.#passed(counter.revision);
    } catch (error) {
      if (!isAppError(error, "unavailable")) throw error;
    }
  }

  #passed(revision: number): Promise<void> {
    if (this.#log.revision >= revision) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const waiter = { revision, resolve: done };
      const cancel = this.#runtime.clock.after(STORE_CALL_DEADLINE_MS, () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        reject(new AppError("unknown_outcome", "The change of the class definitions was not seen to arrive in time."));
      });
      function done(): void {
        cancel();
        resolve();
      }
      this.#waiters.push(waiter);
    });
  }

  #advanced(): void {
    this.#stale = true;
    const { revision } = this.#log;
    const ready = this.#waiters.filter((waiter) => waiter.revision <= revision);
    this.#waiters = this.#waiters.filter((waiter) => waiter.revision > revision);
    for (const waiter of ready) waiter.resolve();
  }

  async #load(): Promise<KvLease> {
    const lease = await this.#kv.lease(CATALOG_LEASE_MS);
    try {
      const { entries, revision } = await this.#list();
      this.#log.replace(entries, revision);
    } catch (error) {
      await this.#release(lease);
      throw error;
    }
    this.#following = !lease.lost.aborted;
    this.#advanced();
    return lease;
  }

  async #list(): Promise<{ readonly entries: readonly KvEntry[]; readonly revision: number }> {
    let page = await this.#kv.list(DEFINITIONS_PREFIX);
    // Later pages may be newer: watching from the first one's revision tells what the others lack.
    const { revision } = page;
    const entries = [...page.entries];
    while (page.next !== undefined) {
      page = await this.#kv.list(DEFINITIONS_PREFIX, { after: page.next });
      entries.push(...page.entries);
    }
    return { entries, revision };
  }

  async #follow(first: KvLease): Promise<void> {
    let lease: KvLease | undefined = first;
    while (!this.#closing.signal.aborted) {
      try {
        lease ??= await this.#load();
        await this.#watch(lease);
      } catch (error) {
        await this.#lost(error);
      }
      this.#following = false;
      await this.#release(lease);
      lease = undefined;
    }
  }

  /** Ends when the lease is lost or the catalog closes. */
  async #watch(lease: KvLease): Promise<void> {
    const stop = () => {
      this.#following = false;
    };
    lease.lost.addEventListener("abort", stop, { once: true });
    const signal = AbortSignal.any([this.#closing.signal, lease.lost]);
    for await (const events of this.#kv.watch(DEFINITIONS_PREFIX, { sinceRevision: this.#log.revision, signal })) {
      this.#log.apply(events);
      this.#advanced();
    }
  }

  async #lost(error: unknown): Promise<void> {
    this.#following = false;
    if (isAppError(error, "compacted")) return;
    this.#runtime.log.warn({ reason: errorText(error) }, "class definitions cannot be followed; writing stops until they can");
    await wait(this.#runtime.clock, CATALOG_RETRY_MS, this.#closing.signal);
  }

  async #release(lease: KvLease | undefined): Promise<void> {
    if (lease === undefined || lease.lost.aborted) return;
    try {
      await lease.revoke();
    } catch (error) {
      this.#runtime.log.debug({ reason: errorText(error) }, "a catalog's lease was left to expire");
    }
  }
}
