import { AppError } from "../../../../common/errors.ts";
import { AGENT_REGISTER_ATTEMPTS_MAX, PRESENCE_LOOKUPS_MAX } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { FollowedKeys } from "../../../store/kv/follow.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvEntry, KvStore } from "../../../store/kv.ts";
import { txnOnce } from "../../../store/once.ts";

const SESSIONS = "sessions/";
/**
 * Prefix of the keys of `heldKey`. A controller has one entry for each of its sessions, written and removed with the
 * session's key.
 */
export const HELD = "sessionsof/";

export function sessionKey(tenant: string, host: string): string {
  return `${SESSIONS}${tenant}/${host}`;
}

/**
 * Key of an entry that the controller holds a session of the host. It has no lease, so it remains if the controller
 * dies, and shows which hosts to mark as offline.
 */
export function heldKey(controller: string, tenant: string, host: string): string {
  return `${HELD}${controller}/${tenant}/${host}`;
}

/** Value of a session's key. The key's revision is the session's epoch. */
export interface StoredSession {
  readonly controller: string;
  /** Distinguishes one attempt to register from another. */
  readonly nonce: string;
  readonly agentVersion: string;
  readonly sinceMs: number;
}

export interface HostName {
  readonly tenant: string;
  readonly host: string;
}

/** Reports that a session of this controller began or ended. */
export interface PresenceEvent extends HostName {
  readonly online: boolean;
}

/** The session of a host, on any controller. */
export interface Holder {
  readonly epoch: number;
  readonly controller: string;
}

export interface PresenceDependencies {
  /** The system's KvStore. */
  readonly kv: KvStore;
  readonly runtime: Runtime;
  /** Id of this controller. */
  readonly controllerId: string;
}

/**
 * Tracks which agents are connected to which controller. A controller knows and follows its own sessions only; it looks
 * up those of others, so changes there cost it nothing.
 */
export class Presence {
  readonly #with: PresenceDependencies;
  readonly #followed: FollowedKeys;
  /** Epochs of the sessions of this controller. */
  readonly #here = new Map<string, number>();
  readonly #listeners = new Set<(event: PresenceEvent) => void>();
  readonly #replaced = new Set<(name: HostName, revision: number) => void>();

  constructor(dependencies: PresenceDependencies) {
    this.#with = dependencies;
    const prefix = `${HELD}${dependencies.controllerId}/`;
    this.#followed = new FollowedKeys({
      ...dependencies,
      prefix,
      put: () => undefined,
      end: (key, revision) => {
        const name = namesIn(key.slice(prefix.length));
        for (const listener of this.#replaced) listener(name, revision);
      },
    });
  }

  start(): Promise<void> {
    return this.#followed.start();
  }

  close(): Promise<void> {
    return this.#followed.close();
  }

  isHere(tenant: string, host: string): boolean {
    return this.#here.has(sessionKey(tenant, host));
  }

  async isOnline(tenant: string, host: string): Promise<boolean> {
    return (await this.holderOf(tenant, host)) !== undefined;
  }

  async holderOf(tenant: string, host: string): Promise<Holder | undefined> {
    const key = sessionKey(tenant, host);
    const epoch = this.#here.get(key);
    if (epoch !== undefined) return { epoch, controller: this.#with.controllerId };
    const entry = await this.#with.kv.get(key);
    return entry && holderIn(entry);
  }

  /** Controllers that hold sessions of these hosts, each with its hosts. */
  async holdersOf(tenant: string, hosts: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const held = new Map<string, string[]>();
    const add = (host: string, holder: Holder | undefined): void => {
      if (holder) held.set(holder.controller, [...(held.get(holder.controller) ?? []), host]);
    };
    if (hosts.length <= PRESENCE_LOOKUPS_MAX) {
      const holders = await Promise.all(hosts.map((host) => this.holderOf(tenant, host)));
      hosts.forEach((host, at) => add(host, holders[at]));
      return held;
    }
    const wanted = new Set(hosts);
    const prefix = sessionKey(tenant, "");
    for await (const entry of entriesUnder(this.#with.kv, prefix)) {
      const host = entry.key.slice(prefix.length);
      if (wanted.has(host)) add(host, holderIn(entry));
    }
    return held;
  }

  /** Calls `listener` for every session that begins or ends here. Call the result to stop. */
  onChange(listener: (event: PresenceEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Calls `listener` when a session of this controller was ended in the store, by a newer session or by `drop`. All
   * sessions of the host with an epoch smaller than `revision` are over.
   */
  onEnd(listener: (name: HostName, revision: number) => void): void {
    this.#replaced.add(listener);
  }

  /** Stores the session under its key, replacing an older one; returns its epoch. Calls `lease` for every attempt. */
  async register(
    { tenant, host }: HostName,
    stored: StoredSession,
    lease: () => Promise<{ readonly id: string }>,
  ): Promise<number> {
    const { kv, controllerId } = this.#with;
    const [key, held] = [sessionKey(tenant, host), heldKey(controllerId, tenant, host)];
    for (let attempt = 0; attempt < AGENT_REGISTER_ATTEMPTS_MAX; attempt += 1) {
      const current = await kv.get(key);
      const before = current && heldKey(holderIn(current).controller, tenant, host);
      const written = await txnOnce(kv, {
        if: [{ key, revision: current?.revision ?? 0 }],
        then: [
          { kind: "put", key, value: encodeJson(stored), lease: (await lease()).id },
          { kind: "put", key: held, value: encodeJson({ nonce: stored.nonce }) },
          ...(before === undefined || before === held ? [] : [{ kind: "delete" as const, key: before }]),
        ],
      });
      if (written.ok) return written.revision;
    }
    throw new AppError(
      "unavailable",
      `The session of ${host} could not be registered: others of its name keep coming.`,
    );
  }

  /** A session of this controller began; it may have replaced an older one. */
  began({ tenant, host }: HostName, epoch: number): void {
    const key = sessionKey(tenant, host);
    const before = this.#here.get(key);
    if (before !== undefined && before >= epoch) return;
    this.#here.set(key, epoch);
    if (before === undefined) this.#tell({ tenant, host, online: true });
  }

  /** The session of this controller is over. Calls the listeners even if the end cannot be written; then it throws. */
  async ended({ tenant, host }: HostName, epoch: number): Promise<void> {
    const key = sessionKey(tenant, host);
    try {
      await this.#with.kv.delete(key, { ifRevision: epoch });
    } finally {
      if (this.#here.get(key) === epoch) {
        this.#here.delete(key);
        this.#tell({ tenant, host, online: false });
      }
    }
  }

  /** Ends the session of a host on any controller. */
  async drop(tenant: string, host: string): Promise<void> {
    const { kv } = this.#with;
    const key = sessionKey(tenant, host);
    for (let attempt = 0; attempt < AGENT_REGISTER_ATTEMPTS_MAX; attempt += 1) {
      const current = await kv.get(key);
      if (!current) return;
      const keys = [key, heldKey(holderIn(current).controller, tenant, host)];
      const then = keys.map((one) => ({ kind: "delete", key: one }) as const);
      if ((await txnOnce(kv, { if: [{ key, revision: current.revision }], then })).ok) return;
    }
    throw new AppError("unavailable", `The session of ${host} could not be ended: others of its name keep coming.`);
  }

  /** Removes the entry that the controller holds a session of the host. Returns false while it still holds one. */
  async forget(controller: string, { tenant, host }: HostName): Promise<boolean> {
    const { kv } = this.#with;
    const key = heldKey(controller, tenant, host);
    const [noted, session] = await Promise.all([kv.get(key), kv.get(sessionKey(tenant, host))]);
    if (noted === undefined) return true;
    if (noted.revision === session?.revision) return false;
    return (await kv.delete(key, { ifRevision: noted.revision })).ok;
  }

  async *keysOf(tenant: string): AsyncGenerator<string> {
    const prefix = sessionKey(tenant, "");
    for await (const entry of entriesUnder(this.#with.kv, prefix)) {
      yield entry.key;
      yield heldKey(holderIn(entry).controller, tenant, entry.key.slice(prefix.length));
    }
  }

  #tell(event: PresenceEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

/** Parses `<tenant>/<host>`. */
export function namesIn(text: string): HostName {
  const [tenant = "", ...host] = text.split("/");
  return { tenant, host: host.join("/") };
}

function holderIn(entry: KvEntry): Holder {
  return { epoch: entry.revision, controller: decodeStored<StoredSession>(entry.value).controller };
}
