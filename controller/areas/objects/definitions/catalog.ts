import { AppError, isAppError } from "../../../../common/errors.ts";
import {
  CATALOG_ACKNOWLEDGE_DEADLINE_MS,
  CATALOG_CHANGE_ATTEMPTS_MAX,
  CATALOG_RETRY_MS,
  STORE_CALL_DEADLINE_MS,
} from "../../../../common/limits.ts";
import { newStamp } from "../../../../common/revisions.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { KvStore, KvTxn } from "../../../store/kv.ts";
import type { SystemClass } from "./system-class.ts";
import { AwaitedRevisions } from "./awaited.ts";
import type { Definitions } from "./definition.ts";
import type { DefinitionLog } from "./definitionlog.ts";
import { COUNTER_KEY, Draft } from "./draft.ts";
import { FollowedDefinitions, type FollowLease } from "./followed-definitions.ts";
import { InFlightWrites } from "./inflight.ts";
import { Snapshot } from "./snapshot.ts";

export interface CatalogDependencies {
  readonly kv: KvStore;
  readonly runtime: Runtime;
  /** Owners of system classes by whole path. */
  readonly owners: ReadonlyMap<string, SystemClass>;
}

/** Definitions for a write. While `isHeld`, the snapshot contains every resolved change of definitions. */
export interface Held extends FollowLease {
  readonly snapshot: Snapshot;
}

export interface InFlightWrite extends Held {
  /** Call once, after success or failure, because changes of definitions wait for it. */
  end(): void;
}

/**
 * The class definitions of one tenant, and changes of them. `FollowedDefinitions` keeps them current. While it cannot,
 * the definitions may be old, so writes are refused. A change of definitions waits until every controller has
 * acknowledged it or lost its lease.
 */
export class TenantCatalog {
  readonly #kv: KvStore;
  readonly #runtime: Runtime;
  readonly #owners: ReadonlyMap<string, SystemClass>;
  readonly #followed: FollowedDefinitions;
  readonly #log: DefinitionLog;
  readonly #writes = new InFlightWrites();
  readonly #awaited = new AwaitedRevisions();
  #snapshot: Snapshot;
  #stale = true;
  #changes: Promise<unknown> = Promise.resolve();

  constructor(of: CatalogDependencies) {
    this.#kv = of.kv;
    this.#runtime = of.runtime;
    this.#owners = of.owners;
    const advanced = (): void => this.#advanced();
    this.#followed = new FollowedDefinitions({ kv: of.kv, runtime: of.runtime, writes: this.#writes, advanced });
    this.#log = this.#followed.log;
    this.#snapshot = new Snapshot(this.#log.definitions(), 0, { owners: of.owners });
  }

  /** Resolves when the definitions are known. They are followed until `close`. */
  open(): Promise<void> {
    return this.#followed.open();
  }

  close(): Promise<void> {
    return this.#followed.close();
  }

  /** Unique among the controllers that follow these definitions; below `CATALOG_FOLLOWERS_MAX`. */
  get followerNumber(): number {
    return this.#followed.followerNumber;
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

  #draftOf(definitions: Definitions, by?: string): Draft {
    const stamp = newStamp(by, this.#runtime);
    return new Draft(definitions, { nowMs: this.#runtime.clock.nowMs(), lease: this.#followed.lease, stamp });
  }

  /** Throws `AppError("unavailable")` while the definitions may be old. */
  requireCurrent(): Snapshot {
    return this.#heldNow().snapshot;
  }

  /** Undefined while the definitions may be old. */
  now(): Held | undefined {
    const lease = this.#followed.now();
    return lease && { snapshot: this.current(), ...lease };
  }

  /** Like `requireCurrent`, but reads everything again at once if this controller was stopped or lost its lease. */
  async resumed(): Promise<Held> {
    if (!this.#followed.isFollowed) await this.#followed.resumed();
    return this.#heldNow();
  }

  /**
   * Begins a write under the known definitions. If `isHeld` is true after the write, it fits the current definitions.
   */
  async begin(): Promise<InFlightWrite> {
    if (!this.#followed.isFollowed) await this.#followed.resumed();
    // In the same turn, so that the acknowledged revision is not newer than the revision of this write.
    const held = this.#heldNow();
    return { end: this.#writes.begin(held.snapshot.revision), ...held };
  }

  /**
   * Applies a change to the definitions; when it resolves, `current` has the change. `edit` may run several times, each
   * time on newer definitions; its errors are thrown. `by` is the user who makes the change; absent: odp itself.
   * Returns the revision of the definitions, for `acknowledged`.
   */
  change(edit: (draft: Draft) => void, by?: string): Promise<number> {
    const done = this.#changes.then(() => this.#change(edit, by));
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
    const signal = AbortSignal.any([late.signal, this.#followed.closing]);
    try {
      await this.#writes.drained(revision, signal);
      return await this.#followed.othersAcknowledged(revision, signal);
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
    const held = this.now();
    if (held === undefined) throw notFollowed();
    return held;
  }

  async #change(edit: (draft: Draft) => void, by: string | undefined): Promise<number> {
    const name = Buffer.from(this.#runtime.random.bytes(12)).toString("hex");
    for (let attempt = 1; attempt <= CATALOG_CHANGE_ATTEMPTS_MAX; attempt++) {
      this.requireCurrent();
      if (this.#log.saw(name)) return this.#log.revision;
      // After a list of several pages the counter may be newer than the classes.
      await this.#passed(this.#log.counterRevision);
      const definitions = this.#log.definitions();
      const draft = this.#draftOf(definitions, by);
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
      await wait(this.#runtime.clock, CATALOG_RETRY_MS * this.#runtime.random.next(), this.#followed.closing);
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
  }
}

function notFollowed(): AppError {
  return new AppError("unavailable", "The class definitions cannot be followed at the moment: nothing was changed.");
}
