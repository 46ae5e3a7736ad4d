import { hash } from "node:crypto";
import { isAppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvStore } from "../../store/kv.ts";
import { putOnce } from "../../store/once.ts";
import { RecentReads } from "./recent.ts";
import type { User } from "./types.ts";

/** A user as kept. Never leaves the area with its hash. */
export interface UserRecord extends User {
  /** argon2id in PHC form. */
  readonly hash: string;
  /** New whenever password, rights or activity change: what carries an older one is over. */
  readonly epoch: string;
}

export interface StoredUser {
  readonly record: UserRecord;
  readonly revision: number;
}

const USERS = "users/";
const SESSIONS = "sessions/";

/** Users lie in their tenant's key-value store. */
export class UserStore {
  readonly #stores: Stores;
  readonly #recent: RecentReads<StoredUser>;

  constructor(stores: Stores, clock: Clock) {
    this.#stores = stores;
    this.#recent = new RecentReads(clock);
  }

  /** For every call: as it was at most `SIGN_IN_CACHE_MS` ago. */
  recent(tenant: string, username: string): Promise<StoredUser | undefined> {
    return this.#recent.read(JSON.stringify([tenant, username]), () => this.get(tenant, username));
  }

  async get(tenant: string, username: string): Promise<StoredUser | undefined> {
    const kv = await this.#kv(tenant);
    const entry = await kv?.get(USERS + username);
    return entry === undefined
      ? undefined
      : { record: decodeStored<UserRecord>(entry.value), revision: entry.revision };
  }

  /** False when another writer was first. `revision` 0: the user must be new. */
  async put(record: UserRecord, revision: number): Promise<boolean> {
    const { kv } = await this.#stores.tenant(record.tenant);
    const put = { key: USERS + record.username, value: encodeJson(record), ifRevision: revision };
    const known = JSON.stringify([record.tenant, record.username]);
    return (await this.#recent.written(known, () => putOnce(kv, put, repeated))).ok;
  }

  async #kv(tenant: string): Promise<KvStore | undefined> {
    try {
      return (await this.#stores.tenant(tenant)).kv;
    } catch (error) {
      if (isAppError(error, "not_found")) return undefined;
      throw error;
    }
  }
}

export interface SessionRecord {
  readonly tenant: string;
  readonly ospace: string;
  readonly username: string;
  readonly epoch: string;
  readonly createdMs: number;
  readonly idleMs: number;
  readonly expiresMs: number;
}

export interface StoredSession {
  readonly key: string;
  readonly record: SessionRecord;
  readonly revision: number;
}

/** Sessions lie in the system store under a digest: a reader of the store cannot use them. */
export class SessionStore {
  readonly #stores: Stores;
  readonly #recent: RecentReads<StoredSession>;

  constructor(stores: Stores, clock: Clock) {
    this.#stores = stores;
    this.#recent = new RecentReads(clock);
  }

  /** As it was at most `SIGN_IN_CACHE_MS` ago. */
  recent(id: string): Promise<StoredSession | undefined> {
    const key = keyOf(id);
    return this.#recent.read(key, () => this.#get(key));
  }

  async #get(key: string): Promise<StoredSession | undefined> {
    const { kv } = await this.#stores.system();
    const entry = await kv.get(key);
    return entry === undefined
      ? undefined
      : { key, record: decodeStored<SessionRecord>(entry.value), revision: entry.revision };
  }

  async add(id: string, record: SessionRecord): Promise<void> {
    const { kv } = await this.#stores.system();
    await repeated(() => kv.put(keyOf(id), encodeJson(record)));
  }

  /** Does nothing when the session changed or ended meanwhile. */
  async replace(session: StoredSession, record: SessionRecord): Promise<void> {
    const { kv } = await this.#stores.system();
    await this.#recent.written(session.key, () =>
      kv.put(session.key, encodeJson(record), { ifRevision: session.revision }),
    );
  }

  async remove(id: string): Promise<void> {
    const { kv } = await this.#stores.system();
    const key = keyOf(id);
    await this.#recent.written(key, () => repeated(() => kv.delete(key)));
  }

  async removeIf(session: StoredSession): Promise<void> {
    const { kv } = await this.#stores.system();
    await this.#recent.written(session.key, () => kv.delete(session.key, { ifRevision: session.revision }));
  }

  async *all(): AsyncIterable<StoredSession> {
    const { kv } = await this.#stores.system();
    for await (const { key, value, revision } of entriesUnder(kv, SESSIONS))
      yield { key, record: decodeStored<SessionRecord>(value), revision };
  }
}

/** Once; the caller gets the next failure. */
async function repeated<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (isAppError(error, "unknown_outcome", "unavailable")) return write();
    throw error;
  }
}

function keyOf(id: string): string {
  return SESSIONS + hash("sha256", id);
}
