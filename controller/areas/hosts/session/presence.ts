import { errorText, isAppError } from "../../../../common/errors.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import { decodeStored } from "../../../store/format.ts";
import type { KvEntry, KvStore } from "../../../store/kv.ts";

const PREFIX = "sessions/";
const WATCH_AGAIN_MS = 1_000;

export function sessionKey(tenant: string, host: string): string {
  return `${PREFIX}${tenant}/${host}`;
}

/** What lies under the key of a session; the key's create revision is its epoch. */
export interface StoredSession {
  readonly controller: string;
  /** Tells one attempt to register from another. */
  readonly nonce: string;
  readonly agentVersion: string;
  readonly sinceMs: number;
}

export interface PresenceEvent {
  readonly tenant: string;
  readonly host: string;
  readonly online: boolean;
}

interface Known {
  readonly epoch: number;
  readonly controller: string;
}

/** Which agents are connected to any controller, kept by a watch on the sessions in the system's KvStore. */
export class Presence {
  readonly #kv: KvStore;
  readonly #runtime: Runtime;
  readonly #known = new Map<string, Known>();
  readonly #listeners = new Set<(event: PresenceEvent) => void>();
  readonly #replaced = new Set<(key: string, revision: number) => void>();
  readonly #stop = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(dependencies: { readonly kv: KvStore; readonly runtime: Runtime }) {
    this.#kv = dependencies.kv;
    this.#runtime = dependencies.runtime;
  }

  /** Resolves once every session there is now is known. */
  async start(): Promise<void> {
    const revision = await this.#reload();
    this.#watching = this.#watch(revision);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  isOnline(tenant: string, host: string): boolean {
    return this.#known.has(sessionKey(tenant, host));
  }

  controllerOf(tenant: string, host: string): string | undefined {
    return this.#known.get(sessionKey(tenant, host))?.controller;
  }

  /** The answer ends it. */
  onChange(listener: (event: PresenceEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Told of every session's end that the store saw, with the revision of that end: sessions with smaller epochs are over. */
  onEnd(listener: (key: string, revision: number) => void): void {
    this.#replaced.add(listener);
  }

  /** A session of this controller began: known at once, not only when the watch tells. */
  began(tenant: string, host: string, session: Known): void {
    this.#add(sessionKey(tenant, host), session);
  }

  /** The session with that epoch is over. */
  ended(tenant: string, host: string, epoch: number): void {
    this.#drop(sessionKey(tenant, host), epoch);
  }

  async #watch(sinceRevision: number): Promise<void> {
    let revision = sinceRevision;
    while (!this.#stop.signal.aborted) {
      try {
        for await (const events of this.#kv.watch(PREFIX, { sinceRevision: revision, signal: this.#stop.signal })) {
          for (const event of events) {
            revision = event.kind === "put" ? event.entry.revision : event.revision;
            if (event.kind === "put") this.#add(event.entry.key, knownOf(event.entry));
            else this.#end(event.key, event.revision);
          }
        }
      } catch (error) {
        revision = await this.#recover(error, revision);
      }
    }
  }

  async #recover(error: unknown, revision: number): Promise<number> {
    if (this.#stop.signal.aborted) return revision;
    if (!isAppError(error, "compacted")) this.#runtime.log.warn({ reason: errorText(error) }, "the watch on agent sessions broke");
    try {
      return await this.#reload();
    } catch {
      await wait(this.#runtime.clock, WATCH_AGAIN_MS, this.#stop.signal);
      return revision;
    }
  }

  async #reload(): Promise<number> {
    const found = new Set<string>();
    let after: string | undefined;
    let first: number | undefined;
    do {
      const page = await this.#kv.list(PREFIX, after === undefined ? {} : { after });
      first ??= page.revision;
      for (const entry of page.entries) {
        found.add(entry.key);
        this.#add(entry.key, knownOf(entry));
      }
      after = page.next;
    } while (after !== undefined);
    for (const key of [...this.#known.keys()]) if (!found.has(key)) this.#end(key, first);
    return first;
  }

  #add(key: string, session: Known): void {
    const before = this.#known.get(key);
    if (before && before.epoch >= session.epoch) return;
    this.#known.set(key, session);
    if (!before) this.#tell(key, true);
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
    const [tenant = "", ...host] = key.slice(PREFIX.length).split("/");
    for (const listener of this.#listeners) listener({ tenant, host: host.join("/"), online });
  }
}

function knownOf(entry: KvEntry): Known {
  return { epoch: entry.createRevision, controller: decodeStored<StoredSession>(entry.value).controller };
}
