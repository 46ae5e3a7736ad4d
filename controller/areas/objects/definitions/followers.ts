import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { CATALOG_FOLLOWERS_MAX, CATALOG_LEASE_MS, CATALOG_RETRY_MS } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvEntry, KvEvent, KvLease, KvStore } from "../../../store/kv.ts";
import { Retry } from "../../../store/calls/retry.ts";

/** Prefix of an entry for each controller that follows the definitions of the tenant, under its lease. */
const FOLLOWERS_PREFIX = "objectfollowers/";

/** The entry of one controller. */
interface Acknowledgement {
  /** No write that began with older definitions is in flight. 0: still reading them. */
  readonly revision: number;
}

/** This controller in the list of followers, while its lease lasts. */
export interface Follower {
  readonly key: string;
  /** No other follower has the number at the same time. Below `CATALOG_FOLLOWERS_MAX`. */
  readonly number: number;
  readonly createRevision: number;
  readonly lease: KvLease;
}

/** All controllers that follow the definitions of a tenant, and the revisions that they use. */
export class Followers {
  readonly #kv: KvStore;
  readonly #runtime: Runtime;
  readonly #retry: Retry;

  constructor(kv: KvStore, runtime: Runtime) {
    this.#kv = kv;
    this.#runtime = runtime;
    this.#retry = new Retry(runtime);
  }

  /** Call before the definitions are read: a change of them waits for all followers. */
  async join(lease: KvLease): Promise<Follower> {
    const { entries } = await this.#entries();
    const taken = new Set(entries.map((entry) => entry.key));
    // Starts at a random number, because controllers that start together would otherwise all try the same numbers.
    const first = Math.floor(this.#runtime.random.next() * CATALOG_FOLLOWERS_MAX);
    for (let turn = 0; turn < CATALOG_FOLLOWERS_MAX; turn++) {
      const number = (first + turn) % CATALOG_FOLLOWERS_MAX;
      const key = `${FOLLOWERS_PREFIX}${number}`;
      const follower = taken.has(key) ? undefined : await this.#claim(key, number, lease);
      if (follower !== undefined) return follower;
    }
    throw new AppError("unavailable", `At most ${CATALOG_FOLLOWERS_MAX} controllers serve one tenant.`, {
      details: { limit: "CATALOG_FOLLOWERS_MAX" },
    });
  }

  /**
   * Ends the lease of a controller that follows no longer, so that no change waits for it. While the store fails, it
   * retries until the lease has expired anyway. After the signal it makes only one attempt.
   */
  async leave(lease: KvLease, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#runtime;
    const endMs = clock.monotonicMs() + CATALOG_LEASE_MS;
    for (;;) {
      try {
        return await this.#retry.run(() => lease.revoke());
      } catch (error) {
        const mayEnd = isAppError(error, "unavailable", "unknown_outcome") && clock.monotonicMs() < endMs;
        log.debug({ reason: errorText(error) }, "the lease of a catalog was not ended");
        if (!mayEnd || signal.aborted) return;
        await wait(clock, CATALOG_RETRY_MS, signal);
      }
    }
  }

  /** False when the entry and its lease are gone. */
  async acknowledge(follower: Follower, revision: number): Promise<boolean> {
    const { key, createRevision, lease } = follower;
    const value = encodeJson({ revision } satisfies Acknowledgement);
    const mine = { if: [{ key, createRevision }], then: [{ kind: "put" as const, key, value, lease: lease.id }] };
    const written = await this.#retry.run(() => this.#kv.txn(mine));
    return written.ok;
  }

  /**
   * Resolves with true after every follower except `self` has acknowledged `revision` or is gone. Resolves with false
   * if the signal fires first.
   */
  async acknowledged(revision: number, self: string | undefined, signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const page = await this.#entries();
      const behind = new Set(
        page.entries.filter((entry) => entry.key !== self && revisionOf(entry) < revision).map((entry) => entry.key),
      );
      if (behind.size === 0 || (await this.#wait(behind, revision, { since: page.revision, signal }))) return true;
    }
    return false;
  }

  /** False when the follower must be checked again. */
  async #wait(
    behind: Set<string>,
    revision: number,
    from: { readonly since: number; readonly signal: AbortSignal },
  ): Promise<boolean> {
    try {
      for await (const events of this.#kv.watch(FOLLOWERS_PREFIX, { sinceRevision: from.since, signal: from.signal })) {
        for (const event of events)
          if (isAtLeast(event, revision)) behind.delete(event.kind === "put" ? event.entry.key : event.key);
        if (behind.size === 0) return true;
      }
    } catch (error) {
      if (!isAppError(error, "compacted")) throw error;
    }
    return false;
  }

  async #claim(key: string, number: number, lease: KvLease): Promise<Follower | undefined> {
    const value = encodeJson({ revision: 0 } satisfies Acknowledgement);
    const put = await this.#retry.run(() => this.#kv.put(key, value, { ifRevision: 0, lease: lease.id }));
    if (put.ok) return { key, number, lease, createRevision: put.revision };
    // An earlier attempt succeeded, but its answer was lost.
    return put.current?.lease === lease.id
      ? { key, number, lease, createRevision: put.current.createRevision }
      : undefined;
  }

  async #entries(): Promise<{ readonly entries: readonly KvEntry[]; readonly revision: number }> {
    const entries: KvEntry[] = [];
    let page = await this.#retry.run(() => this.#kv.list(FOLLOWERS_PREFIX));
    const { revision } = page;
    entries.push(...page.entries);
    for (let after = page.next; after !== undefined; after = page.next) {
      const from = after;
      page = await this.#retry.run(() => this.#kv.list(FOLLOWERS_PREFIX, { after: from }));
      entries.push(...page.entries);
    }
    return { entries, revision };
  }
}

function isAtLeast(event: KvEvent, revision: number): boolean {
  return event.kind === "delete" || revisionOf(event.entry) >= revision;
}

function revisionOf(entry: KvEntry): number {
  return decodeStored<Acknowledgement>(entry.value).revision;
}
