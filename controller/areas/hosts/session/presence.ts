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

  /** The session with that epoch is over. */
  ended(tenant: string, host: string, epoch: number): void {
    this.#drop(sessionKey(tenant, host), epoch);
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
    const known = this.#known.get(key);
    if (known && known.epoch < revision) this.#drop(key, known.epoch);
  }

  #drop(key: string, epoch: number): void {
    if (this.#known.get(key)?.epoch !== epoch) return;
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
