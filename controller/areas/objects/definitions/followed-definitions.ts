import { errorText, isAppError } from "../../../../common/errors.ts";
import { CATALOG_LEASE_MS, CATALOG_RESUME_DEADLINE_MS, CATALOG_RETRY_MS } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { KvEntry, KvLease, KvStore } from "../../../store/kv.ts";
import { DefinitionLog } from "./definitionlog.ts";
import { DEFINITIONS_PREFIX } from "./draft.ts";
import { Followers, type Follower } from "./followers.ts";
import type { InFlightWrites } from "./inflight.ts";

/** A period in which the definitions were followed without a gap. */
interface Span {
  readonly follower: Follower;
  /** Aborted when the span has to end although its lease is held. */
  readonly given: AbortController;
  acknowledged: number;
}

/** A lease under which the definitions are followed. */
export interface FollowLease {
  /** The store removes keys bound to this lease when the controller is gone. */
  readonly lease: string;
  /** True while the known definitions contain every resolved change. */
  isHeld(): boolean;
}

export interface FollowingDependencies {
  readonly kv: KvStore;
  readonly runtime: Runtime;
  /** Writes of this controller, which end before it acknowledges newer definitions. */
  readonly writes: InFlightWrites;
  /** Called in the turn in which `log` got newer definitions. */
  readonly advanced: () => void;
}

/**
 * Follows the definitions of one tenant by a watch under a lease. After a loss of the lease or the watch, it reads all
 * definitions again under a new lease. It acknowledges definitions under its lease, after all writes that began with
 * older ones have ended.
 */
export class FollowedDefinitions {
  readonly log = new DefinitionLog();
  readonly #kv: KvStore;
  readonly #runtime: Runtime;
  readonly #writes: InFlightWrites;
  readonly #onAdvance: () => void;
  readonly #followers: Followers;
  readonly #closing = new AbortController();
  #span: Span | undefined;
  #followerNumber = 0;
  #resumed: (() => void)[] = [];
  #acknowledging: Promise<void> = Promise.resolve();
  #isAcknowledging = false;
  #released: Promise<void> = Promise.resolve();
  #loop: Promise<void> = Promise.resolve();

  constructor({ kv, runtime, writes, advanced }: FollowingDependencies) {
    this.#kv = kv;
    this.#runtime = runtime;
    this.#writes = writes;
    this.#onAdvance = advanced;
    this.#followers = new Followers(kv, runtime);
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

  /** Fires when `close` begins. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Unique among the controllers that follow these definitions; below `CATALOG_FOLLOWERS_MAX`. */
  get followerNumber(): number {
    return this.#followerNumber;
  }

  /** False while the known definitions may be old. */
  get isFollowed(): boolean {
    return this.#span !== undefined && this.#isHeld(this.#span);
  }

  /** Undefined while the known definitions may be old. */
  now(): FollowLease | undefined {
    const span = this.#span;
    if (span === undefined || !this.#isHeld(span)) return undefined;
    return { lease: span.follower.lease.id, isHeld: () => this.#isHeld(span) };
  }

  /** The lease of the current span, even if it is over; empty without a span. */
  get lease(): string {
    return this.#span?.follower.lease.id ?? "";
  }

  /** Resolves when the definitions are followed, at the latest at the deadline. */
  async resumed(): Promise<void> {
    const timeout = new AbortController();
    const cancel = this.#runtime.clock.after(CATALOG_RESUME_DEADLINE_MS, () => timeout.abort());
    const signal = AbortSignal.any([timeout.signal, this.#closing.signal]);
    // An expired lease is noticed soon; then a new span begins.
    while (!signal.aborted && !this.isFollowed) {
      const over = this.#span;
      if (over !== undefined) over.given.abort();
      await new Promise<void>((resolve) => {
        this.#resumed.push(resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    cancel();
  }

  /** True when every other controller has acknowledged the revision or lost its lease. */
  othersAcknowledged(revision: number, signal: AbortSignal): Promise<boolean> {
    return this.#followers.acknowledged(revision, this.#span?.follower.key, signal);
  }

  #isHeld(span: Span): boolean {
    return span === this.#span && span.follower.lease.held();
  }

  #advanced(): void {
    this.#onAdvance();
    if (!this.#isAcknowledging) this.#acknowledging = this.#acknowledge();
  }

  /** Acknowledges the definitions that this controller uses. */
  async #acknowledge(): Promise<void> {
    this.#isAcknowledging = true;
    for (let span = this.#span; span !== undefined && span.acknowledged < this.log.revision; span = this.#span) {
      const { revision } = this.log;
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
      this.log.replace(entries, revision);
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
    for await (const events of this.#kv.watch(DEFINITIONS_PREFIX, { sinceRevision: this.log.revision, signal })) {
      this.log.apply(events);
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
