import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import {
  CATALOG_ACKNOWLEDGE_DEADLINE_MS,
  CATALOG_CHANGE_ATTEMPTS_MAX,
  CATALOG_LEASE_MS,
  CATALOG_RESUME_DEADLINE_MS,
  CATALOG_RETRY_MS,
  STORE_CALL_DEADLINE_MS,
} from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { KvEntry, KvLease, KvStore, KvTxn } from "../../../store/kv.ts";
import type { SystemClass } from "./system-class.ts";
import { AwaitedRevisions } from "./awaited.ts";
import type { Definitions } from "./definition.ts";
import { DefinitionLog } from "./definitionlog.ts";
import { COUNTER_KEY, DEFINITIONS_PREFIX, Draft } from "./draft.ts";
import { Followers, type Follower } from "./followers.ts";
import { InFlightWrites } from "./inflight.ts";
import { Snapshot } from "./snapshot.ts";

export interface CatalogDependencies {
  readonly kv: KvStore;
  readonly runtime: Runtime;
  /** Owners of system classes by whole path. */
  readonly owners: ReadonlyMap<string, SystemClass>;
}

/** A period in which the definitions were followed without a gap. */
interface Span {
  readonly follower: Follower;
  /** Aborted when the span has to end although its lease is held. */
  readonly given: AbortController;
  acknowledged: number;
}

/** Definitions for a write. While `isHeld`, the snapshot contains every resolved change of definitions. */
export interface Held {
  readonly snapshot: Snapshot;
  /** The store removes keys bound to this lease when the controller is gone. */
  readonly lease: string;
  isHeld(): boolean;
}

export interface InFlightWrite extends Held {
  /** Call once, after success or failure, because changes of definitions wait for it. */
  end(): void;
}

/**
 * The class definitions of one tenant. A watch follows them under a lease. While the lease or the watch is lost, the
 * definitions may be old, so writes are refused until all definitions are read again. The catalog acknowledges its
 * definitions under its lease, after all writes that began with older ones have ended. A change of definitions waits
 * for this acknowledgement.
 */
export class TenantCatalog {
  readonly #kv: KvStore;
  readonly #runtime: Runtime;
  readonly #owners: ReadonlyMap<string, SystemClass>;
  readonly #followers: Followers;
  readonly #log = new DefinitionLog();
  readonly #writes = new InFlightWrites();
  readonly #closing = new AbortController();
  #snapshot: Snapshot;
  #stale = true;
  #span: Span | undefined;
  #followerNumber = 0;
  #resumed: (() => void)[] = [];
  #acknowledging: Promise<void> = Promise.resolve();
  #isAcknowledging = false;
  #released: Promise<void> = Promise.resolve();
  readonly #awaited = new AwaitedRevisions();
  #changes: Promise<unknown> = Promise.resolve();
  #loop: Promise<void> = Promise.resolve();

  constructor(of: CatalogDependencies) {
    this.#kv = of.kv;
    this.#runtime = of.runtime;
    this.#owners = of.owners;
    this.#followers = new Followers(of.kv, of.runtime);
    this.#snapshot = new Snapshot(this.#log.definitions(), 0, { owners: of.owners });
  }

  /** Resolves when the definitions are known. They are followed until `close`. */
  async open(): Promise<void> {
    const span = await this.#load();
    this.#loop = this.#follow(span);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#loop;
    await this.#acknowledging;
    await this.#released;
  }

  /** Unique among the controllers that follow these definitions; below `CATALOG_FOLLOWERS_MAX`. */
  get followerNumber(): number {
    return this.#followerNumber;
  }

  current(): Snapshot {
    if (!this.#stale) return this.#snapshot;
    this.#snapshot = new Snapshot(this.#log.definitions(), this.#log.revision, {
      before: this.#snapshot,
      owners: this.#owners,
    });
    this.#stale = false;
    return this.#snapshot;
  }

  /** A draft of the known definitions that is never written. */
  draft(): Draft {
    return this.#draftOf(this.#log.definitions());
  }

  /** The snapshot that would be followed if the draft were written. */
  preview(draft: Draft): Snapshot {
    return new Snapshot(draft.definitions(), this.#log.revision, { before: this.current(), owners: this.#owners });
  }

  #draftOf(definitions: Definitions): Draft {
    return new Draft(definitions, { nowMs: this.#runtime.clock.nowMs(), lease: this.#span?.follower.lease.id ?? "" });
  }

  /** Throws `AppError("unavailable")` while the definitions may be old. */
  requireCurrent(): Snapshot {
    return this.#heldNow().snapshot;
  }

  /** Undefined while the definitions may be old. */
  now(): Held | undefined {
    return this.#isFollowed() ? this.#heldNow() : undefined;
  }

  /** Like `requireCurrent`, but reads everything again at once if this controller was stopped or lost its lease. */
  async resumed(): Promise<Held> {
    if (!this.#isFollowed()) await this.#following();
    return this.#heldNow();
  }

  /**
   * Begins a write under the known definitions. If `isHeld` is true after the write, it fits the current definitions.
   */
  async begin(): Promise<InFlightWrite> {
    if (!this.#isFollowed()) await this.#following();
    // In the same turn, so that the acknowledged revision is not newer than the revision of this write.
    const held = this.#heldNow();
    return { end: this.#writes.begin(held.snapshot.revision), ...held };
  }

  /**
   * Applies a change to the definitions; when it resolves, `current` has the change. `edit` may run several times, each
   * time on newer definitions; its errors are thrown. Returns the revision of the definitions, for `acknowledged`.
   */
  change(edit: (draft: Draft) => void): Promise<number> {
    const done = this.#changes.then(() => this.#change(edit));
    this.#changes = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }

  /**
   * True when no controller uses older definitions, now or later: each has acknowledged these or lost its lease. False
   * when that takes longer than `CATALOG_ACKNOWLEDGE_DEADLINE_MS`; nothing may rely on them then.
   */
  async acknowledged(revision: number): Promise<boolean> {
    const late = new AbortController();
    const cancel = this.#runtime.clock.after(CATALOG_ACKNOWLEDGE_DEADLINE_MS, () => late.abort());
    const signal = AbortSignal.any([late.signal, this.#closing.signal]);
    try {
      await this.#writes.drained(revision, signal);
      return await this.#followers.acknowledged(revision, this.#span?.follower.key, signal);
    } catch (error) {
      if (!isAppError(error, "unavailable", "unknown_outcome")) throw error;
      return false;
    } finally {
      cancel();
    }
  }

  /** Resolves when definitions newer than these are known, or the signal fires. */
  newerThan(revision: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#log.revision > revision) return Promise.resolve();
    return new Promise((resolve) => {
      const forget = this.#awaited.until(revision + 1, () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      });
      const giveUp = (): void => {
        forget();
        resolve();
      };
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }

  #heldNow(): Held {
    const span = this.#span;
    if (span === undefined || !this.#isHeld(span)) throw notFollowed();
    return { snapshot: this.current(), lease: span.follower.lease.id, isHeld: () => this.#isHeld(span) };
  }

  #isFollowed(): boolean {
    return this.#span !== undefined && this.#isHeld(this.#span);
  }

  #isHeld(span: Span): boolean {
    return span === this.#span && span.follower.lease.held();
  }

  /** Resolves when the definitions are followed, at the latest at the deadline. */
  async #following(): Promise<void> {
    const timeout = new AbortController();
    const cancel = this.#runtime.clock.after(CATALOG_RESUME_DEADLINE_MS, () => timeout.abort());
    const signal = AbortSignal.any([timeout.signal, this.#closing.signal]);
    // An expired lease is noticed soon; then a new span begins.
    while (!signal.aborted && !this.#isFollowed()) {
      const over = this.#span;
      if (over !== undefined) over.given.abort();
      await new Promise<void>((resolve) => {
        this.#resumed.push(resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    cancel();
  }

  async #change(edit: (draft: Draft) => void): Promise<number> {
    const name = Buffer.from(this.#runtime.random.bytes(12)).toString("hex");
    for (let attempt = 1; attempt <= CATALOG_CHANGE_ATTEMPTS_MAX; attempt++) {
      this.requireCurrent();
      if (this.#log.saw(name)) return this.#log.revision;
      // After a list of several pages the counter may be newer than the classes.
      await this.#passed(this.#log.counterRevision);
      const definitions = this.#log.definitions();
      const draft = this.#draftOf(definitions);
      edit(draft);
      const request = draft.request(name);
      if (request === undefined) return definitions.counterRevision;
      const revision = await this.#write(request);
      if (revision !== undefined) {
        await this.#passed(revision);
        return revision;
      }
      await this.#catchUp();
    }
    throw new AppError("unavailable", "The class definitions are changed by too many at once: try again.");
  }

  /** The revision of the write; `undefined` when it lost a race or its outcome is unknown. */
  async #write(request: KvTxn): Promise<number | undefined> {
    try {
      const result = await this.#kv.txn(request);
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
      const forget = this.#awaited.until(revision, () => {
        cancel();
        resolve();
      });
      const cancel = this.#runtime.clock.after(STORE_CALL_DEADLINE_MS, () => {
        forget();
        reject(new AppError("unknown_outcome", "The change of the class definitions was not seen to arrive in time."));
      });
    });
  }

  #advanced(): void {
    this.#stale = true;
    this.#awaited.tell(this.#log.revision);
    if (!this.#isAcknowledging) this.#acknowledging = this.#acknowledge();
  }

  /** Acknowledges the definitions that this controller uses. */
  async #acknowledge(): Promise<void> {
    this.#isAcknowledging = true;
    for (let span = this.#span; span !== undefined && span.acknowledged < this.#log.revision; span = this.#span) {
      const { revision } = this.#log;
      await this.#writes.drained(revision, this.#closing.signal);
      if (this.#closing.signal.aborted) break;
      await this.#tell(span, revision);
    }
    // Same turn as the last check: later calls start again.
    this.#isAcknowledging = false;
  }

  async #tell(span: Span, revision: number): Promise<void> {
    try {
      if (await this.#followers.acknowledge(span.follower, revision)) span.acknowledged = revision;
      else span.given.abort();
    } catch (error) {
      this.#runtime.log.debug(
        { reason: errorText(error) },
        "an acknowledgement of class definitions has to be repeated",
      );
      // Ends the span and its lease, so that no change waits for this controller.
      if (!isAppError(error, "unavailable", "unknown_outcome")) span.given.abort();
      await wait(this.#runtime.clock, CATALOG_RETRY_MS, this.#closing.signal);
    }
    if (span.given.signal.aborted && span === this.#span) this.#span = undefined;
  }

  async #load(): Promise<Span> {
    const lease = await this.#kv.lease(CATALOG_LEASE_MS);
    try {
      const follower = await this.#followers.join(lease);
      const { entries, revision } = await this.#list();
      this.#log.replace(entries, revision);
      return this.#begin({ follower, given: new AbortController(), acknowledged: 0 });
    } catch (error) {
      await this.#release(lease);
      throw error;
    }
  }

  #begin(span: Span): Span {
    this.#span = span;
    this.#followerNumber = span.follower.number;
    this.#advanced();
    const resumed = this.#resumed;
    this.#resumed = [];
    for (const resolve of resumed) resolve();
    return span;
  }

  async #list(): Promise<{ readonly entries: readonly KvEntry[]; readonly revision: number }> {
    let page = await this.#kv.list(DEFINITIONS_PREFIX);
    // Later pages may be newer. The watch begins at the first page's revision and delivers what the others lack.
    const { revision } = page;
    const entries = [...page.entries];
    while (page.next !== undefined) {
      page = await this.#kv.list(DEFINITIONS_PREFIX, { after: page.next });
      entries.push(...page.entries);
    }
    return { entries, revision };
  }

  async #follow(first: Span): Promise<void> {
    let span: Span | undefined = first;
    while (!this.#closing.signal.aborted) {
      try {
        span ??= await this.#load();
        await this.#watch(span);
      } catch (error) {
        await this.#lost(error);
      }
      // Comes before the release of the lease, because without the lease no change waits for this controller.
      this.#span = undefined;
      // Not awaited: a store that does not answer would delay the next span.
      this.#released = Promise.all([this.#released, this.#release(span?.follower.lease)]).then(() => undefined);
      span = undefined;
    }
  }

  /** Ends when the lease is lost or the catalog closes. */
  async #watch(span: Span): Promise<void> {
    const { lost } = span.follower.lease;
    const stop = (): void => {
      if (this.#span === span) this.#span = undefined;
    };
    lost.addEventListener("abort", stop, { once: true });
    const signal = AbortSignal.any([this.#closing.signal, lost, span.given.signal]);
    for await (const events of this.#kv.watch(DEFINITIONS_PREFIX, { sinceRevision: this.#log.revision, signal })) {
      this.#log.apply(events);
      this.#advanced();
    }
  }

  async #lost(error: unknown): Promise<void> {
    this.#span = undefined;
    if (isAppError(error, "compacted")) return;
    this.#runtime.log.warn(
      { reason: errorText(error) },
      "class definitions cannot be followed; writing stops until they can",
    );
    await wait(this.#runtime.clock, CATALOG_RETRY_MS, this.#closing.signal);
  }

  async #release(lease: KvLease | undefined): Promise<void> {
    if (lease === undefined || lease.lost.aborted) return;
    await this.#followers.leave(lease, this.#closing.signal);
  }
}

function notFollowed(): AppError {
  return new AppError("unavailable", "The class definitions cannot be followed at the moment: nothing was changed.");
}
