import { errorText } from "../../../common/errors.ts";
import { CONTROLLER_LEASE_MS, CONTROLLER_REGISTER_AGAIN_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import { FollowedKeys } from "../../store/kv/follow.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvLease, KvStore } from "../../store/kv.ts";
import { Retry } from "../../store/calls/retry.ts";
import type { Member, MemberKeys } from "./types.ts";

const PREFIX = "controllers/";

export interface MembershipDependencies {
  /** The KvStore of the system. */
  readonly kv: KvStore;
  readonly runtime: Runtime;
  /** The id of this controller. */
  readonly controllerId: string;
  readonly version: string;
  /** Returns the current keys. Absent: the entry names no keys. */
  readonly keys?: () => MemberKeys;
}

/**
 * Tracks which controllers are running. Each controller keeps an entry under its own lease, takes a new lease when the
 * old one is lost, and watches the entries of the others.
 */
export class Membership {
  readonly #with: MembershipDependencies;
  readonly #members = new Map<string, Member>();
  readonly #listeners = new Set<() => void>();
  readonly #followed: FollowedKeys;
  readonly #stop = new AbortController();
  /** A short loss of the connection does not fail the start. */
  readonly #retry: Retry;
  #self: Member;
  #lease: KvLease | undefined;
  #keeping: Promise<void> | undefined;

  private constructor(dependencies: MembershipDependencies) {
    this.#with = dependencies;
    const { controllerId: id, version, runtime } = dependencies;
    this.#self = { id, version, addresses: [], url: "", sinceMs: runtime.clock.nowMs() };
    this.#retry = new Retry(runtime);
    this.#followed = new FollowedKeys({
      kv: dependencies.kv,
      runtime: dependencies.runtime,
      prefix: PREFIX,
      put: (entry) =>
        this.#change(() => this.#members.set(entry.key.slice(PREFIX.length), decodeStored<Member>(entry.value))),
      end: (key) => this.#change(() => this.#members.delete(key.slice(PREFIX.length))),
    });
  }

  /**
   * Resolves when this controller is registered and knows all others. They cannot reach it before it announces its
   * address.
   */
  static async open(dependencies: MembershipDependencies): Promise<Membership> {
    const membership = new Membership(dependencies);
    const lease = await membership.#retry.run(() => membership.#register());
    await membership.#retry.run(() => membership.#followed.start());
    membership.#keeping = membership.#keep(lease);
    return membership;
  }

  /** Publishes the addresses of this controller. */
  async announce(self: Pick<Member, "addresses" | "url">): Promise<void> {
    this.#self = { ...this.#self, ...self };
    await this.#retry.run(() => this.#register());
  }

  /** All other controllers that can be reached, oldest first. */
  others(): readonly Member[] {
    const others = [...this.#members.values()].filter(({ id, addresses }) => id !== this.own && addresses.length > 0);
    return others.sort(byAge);
  }

  /** Publishes the current keys to the other controllers. */
  async tellKeys(): Promise<void> {
    await this.#register();
  }

  /** All running controllers: this one first, then the others, oldest first. */
  all(): readonly Member[] {
    const others = [...this.#members.values()].filter(({ id }) => id !== this.own);
    return [this.#present(), ...others.sort(byAge)];
  }

  /** The id of this controller. */
  get own(): string {
    return this.#with.controllerId;
  }

  /** True if the controller is running, as far as this one knows. */
  has(id: string): boolean {
    return id === this.own || this.#members.has(id);
  }

  /** Calls the listener after every change. The returned function unsubscribes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#keeping;
    await this.#lease?.revoke().catch((error: unknown) => {
      this.#with.runtime.log.warn(
        { reason: errorText(error) },
        "this controller's entry could not be removed; its lease will",
      );
    });
    await this.#followed.close();
  }

  async #keep(first: KvLease): Promise<void> {
    const { runtime } = this.#with;
    const { signal } = this.#stop;
    let lease: KvLease | undefined = first;
    while (!signal.aborted) {
      if (lease) await lost(lease, signal);
      if (signal.aborted) return;
      if (lease) runtime.log.warn({}, "this controller lost its place among the others and takes it again");
      lease = await this.#register().catch((error: unknown) => {
        runtime.log.warn({ reason: errorText(error) }, "this controller could not show itself to the others");
        return undefined;
      });
      if (!lease) await wait(runtime.clock, CONTROLLER_REGISTER_AGAIN_MS, signal);
    }
  }

  async #register(): Promise<KvLease> {
    const { kv } = this.#with;
    const known = this.#lease;
    const lease = known && !known.lost.aborted ? known : await kv.lease(CONTROLLER_LEASE_MS);
    try {
      await kv.put(PREFIX + this.own, encodeJson(this.#present()), { lease: lease.id });
    } catch (error) {
      // Otherwise an unused lease would be kept alive.
      if (lease !== known) await lease.revoke().catch(() => undefined);
      throw error;
    }
    this.#lease = lease;
    return lease;
  }

  #present(): Member {
    const keys = this.#with.keys?.();
    return { ...this.#self, ...(keys && { keys }) };
  }

  #change(change: () => void): void {
    change();
    for (const listener of this.#listeners) listener();
  }
}

export function byAge(a: Member, b: Member): number {
  return a.sinceMs - b.sinceMs || (a.id < b.id ? -1 : 1);
}

/** Resolves when the lease is lost or the signal fires. */
function lost(lease: KvLease, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const either = AbortSignal.any([lease.lost, signal]);
    if (either.aborted) resolve();
    else either.addEventListener("abort", () => resolve(), { once: true });
  });
}
