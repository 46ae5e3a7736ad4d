import type { Runtime } from "../../../runtime.ts";
import { FollowedKeys } from "../../../store/follow.ts";
import { decodeStored } from "../../../store/format.ts";
import type { KvEntry, KvStore } from "../../../store/kv.ts";

const PREFIX = "sessions/";

export function sessionKey(tenant: string, host: string): string {
  return `${PREFIX}${tenant}/${host}`;
}

/** What lies under the key of a session; the key's create revision is its epoch. */
export interface StoredSession {
  readonly controller: string;
  /** Distinguishes one attempt to register from another. */
  readonly nonce: string;
  readonly agentVersion: string;
  readonly sinceMs: number;
}

export interface PresenceEvent {
  readonly tenant: string;
  readonly host: string;
  readonly online: boolean;
}

/** One session, wherever it is. */
export interface Holder {
  readonly epoch: number;
  readonly controller: string;
}

/** Which agents are connected to any controller, kept by a watch on the sessions in the system's KvStore. */
export class Presence {
  readonly #followed: FollowedKeys;
  readonly #known = new Map<string, Holder>();
  readonly #listeners = new Set<(event: PresenceEvent) => void>();
  readonly #moved = new Set<(tenant: string, host: string) => void>();
  readonly #replaced = new Set<(key: string, revision: number) => void>();
  /** Hosts for which sessions register here: how many, and the latest end that was heard of meanwhile. */
  readonly #coming = new Map<string, { count: number; endRevision: number }>();

  constructor(dependencies: { readonly kv: KvStore; readonly runtime: Runtime }) {
    this.#followed = new FollowedKeys({
      ...dependencies,
      prefix: PREFIX,
      put: (entry) => this.#add(entry.key, holderIn(entry)),
      end: (key, revision) => this.#end(key, revision),
    });
  }

  /** Resolves once every session there is now is known. */
  start(): Promise<void> {
    return this.#followed.start();
  }

  close(): Promise<void> {
    return this.#followed.close();
  }

  isOnline(tenant: string, host: string): boolean {
    return this.#known.has(sessionKey(tenant, host));
  }

  holderOf(tenant: string, host: string): Holder | undefined {
    return this.#known.get(sessionKey(tenant, host));
  }

  /** The answer ends it. */
  onChange(listener: (event: PresenceEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls the listener for every session that takes the place of none or of another. */
  onMove(listener: (tenant: string, host: string) => void): void {
    this.#moved.add(listener);
  }

  /**
   * Told of every session's end that the store saw, with the revision of that end: sessions with smaller epochs are
   * over.
   */
  onEnd(listener: (key: string, revision: number) => void): void {
    this.#replaced.add(listener);
  }

  /** A session of this controller began: known at once, not only when the watch tells. */
  began(tenant: string, host: string, session: Holder): void {
    this.#add(sessionKey(tenant, host), session);
  }

  /**
   * Runs what registers a session here and tells of it by `began`. It takes an older one away first: the host is online
   * in between, or calls of that moment would be told that it is not.
   */
  async registering<T>(tenant: string, host: string, register: () => Promise<T>): Promise<T> {
    const key = sessionKey(tenant, host);
    const coming = this.#coming.get(key) ?? { count: 0, endRevision: 0 };
    this.#coming.set(key, coming);
    coming.count++;
    try {
      return await register();
    } finally {
      coming.count--;
      if (coming.count === 0) {
        this.#coming.delete(key);
        this.#dropBefore(key, coming.endRevision);
      }
    }
  }

  /** The session with that epoch is over. */
  ended(tenant: string, host: string, epoch: number): void {
    const key = sessionKey(tenant, host);
    if (this.#known.get(key)?.epoch === epoch) this.#endedBefore(key, epoch + 1);
  }

  #add(key: string, session: Holder): void {
    const before = this.#known.get(key);
    if (before && before.epoch >= session.epoch) return;
    this.#known.set(key, session);
    if (!before) this.#tell(key, true);
    const { tenant, host } = namesIn(key);
    for (const listener of this.#moved) listener(tenant, host);
  }

  #end(key: string, revision: number): void {
    for (const listener of this.#replaced) listener(key, revision);
    this.#endedBefore(key, revision);
  }

  #endedBefore(key: string, revision: number): void {
    const coming = this.#coming.get(key);
    if (coming === undefined) this.#dropBefore(key, revision);
    else coming.endRevision = Math.max(coming.endRevision, revision);
  }

  #dropBefore(key: string, revision: number): void {
    const known = this.#known.get(key);
    if (known === undefined || known.epoch >= revision) return;
    this.#known.delete(key);
    this.#tell(key, false);
  }

  #tell(key: string, online: boolean): void {
    for (const listener of this.#listeners) listener({ ...namesIn(key), online });
  }
}

function namesIn(key: string): { readonly tenant: string; readonly host: string } {
  const [tenant = "", ...host] = key.slice(PREFIX.length).split("/");
  return { tenant, host: host.join("/") };
}

function holderIn(entry: KvEntry): Holder {
  return { epoch: entry.createRevision, controller: decodeStored<StoredSession>(entry.value).controller };
}
