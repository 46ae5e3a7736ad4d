import { errorText, isAppError } from "../../../common/errors.ts";
import { TENANT_FOLLOWER_AGAIN_MS, TENANT_FOLLOWER_LEASE_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvLease, KvStore } from "../../store/kv.ts";

const PREFIX = "tenant-followers/";

/** Entry of one controller, under its lease: the controller has handled all changes up to that revision. */
interface Acknowledgement {
  readonly revision: number;
}

export interface FollowerOptions {
  /** The system's KvStore. */
  readonly kv: KvStore;
  readonly runtime: Runtime;
  readonly controllerId: string;
}

/** The controllers that follow the registry of tenants, and the revision each of them has handled. */
export class TenantFollowers {
  readonly #with: FollowerOptions;
  readonly #stop = new AbortController();
  #revision = 0;
  #lease: KvLease | undefined;
  #writing: Promise<void> = Promise.resolve();
  #keeping: Promise<void> | undefined;

  constructor(options: FollowerOptions) {
    this.#with = options;
  }

  /** To be called before the registry is read: from then on a deletion waits for this controller. */
  async join(): Promise<void> {
    await this.#write();
    this.#keeping = this.#keep();
  }

  /**
   * True while deletions wait for this controller: its lease is still valid by the clock. If false, its view of the
   * tenants may be out of date.
   */
  held(): boolean {
    return this.#lease?.held() ?? false;
  }

  acknowledge(revision: number): void {
    if (revision <= this.#revision) return;
    this.#revision = revision;
    void this.#written();
  }

  /** True once every other controller has acknowledged `revision` or is gone; false when the signal fires before. */
  async acknowledged(revision: number, signal: AbortSignal): Promise<boolean> {
    const { kv } = this.#with;
    while (!signal.aborted) {
      // Read before the list, so that the watch misses no change.
      const { revision: sinceRevision } = await kv.list(PREFIX, { limit: 1 });
      if (await this.#areAllPast(revision)) return true;
      await this.#nextChange(sinceRevision, signal);
    }
    return false;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#keeping;
    await this.#writing;
    await this.#lease?.revoke().catch(() => undefined);
  }

  async #areAllPast(revision: number): Promise<boolean> {
    const { kv, controllerId } = this.#with;
    for await (const { key, value } of entriesUnder(kv, PREFIX)) {
      if (key !== PREFIX + controllerId && decodeStored<Acknowledgement>(value).revision < revision) return false;
    }
    return true;
  }

  async #nextChange(sinceRevision: number, signal: AbortSignal): Promise<void> {
    try {
      for await (const events of this.#with.kv.watch(PREFIX, { sinceRevision, signal })) if (events.length > 0) return;
    } catch (error) {
      if (!isAppError(error, "compacted")) throw error;
    }
  }

  /** Writes one after the other. Never fails: a missing entry is written again later. */
  #written(): Promise<void> {
    this.#writing = this.#writing
      .then(() => this.#write())
      .catch((error: unknown) =>
        this.#with.runtime.log.warn({ reason: errorText(error) }, "what is known of the tenants could not be told yet"),
      );
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { kv, controllerId } = this.#with;
    const known = this.#lease;
    const lease = known && !known.lost.aborted ? known : await kv.lease(TENANT_FOLLOWER_LEASE_MS);
    const value = encodeJson({ revision: this.#revision } satisfies Acknowledgement);
    this.#lease = lease;
    await kv.put(PREFIX + controllerId, value, { lease: lease.id });
  }

  /** Writes the entry again whenever the lease is lost. */
  async #keep(): Promise<void> {
    const { runtime } = this.#with;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      if (this.#lease?.lost.aborted === false) await either(this.#lease.lost, signal);
      else await wait(runtime.clock, TENANT_FOLLOWER_AGAIN_MS, signal);
      if (!signal.aborted) await this.#written();
    }
  }
}

function either(one: AbortSignal, other: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const both = AbortSignal.any([one, other]);
    if (both.aborted) resolve();
    else both.addEventListener("abort", () => resolve(), { once: true });
  });
}
