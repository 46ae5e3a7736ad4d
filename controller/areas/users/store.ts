import { hash } from "node:crypto";
import { isAppError } from "../../../common/errors.ts";
import type { Stamped } from "../../../common/revisions.ts";
import type { Clock } from "../../../common/time.ts";
import type { Stores } from "../../store/engine.ts";
import type { EvidenceList } from "../../store/evidence.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvStore } from "../../store/kv.ts";
import { putOnce, txnOnce } from "../../store/once.ts";
import { NO_DETAILS } from "./directory/details.ts";
import { ROOT_ID } from "./directory/organizations.ts";
import { RecentReads } from "./sessions/recent.ts";
import type { ProviderAccount, User } from "./types.ts";

/** A stored user. Its hash never leaves the area. */
export interface UserRecord extends User, Stamped {
  /** argon2id in PHC form. */
  readonly hash: string;
  /**
   * Changes whenever password, rights or activity change. Sessions and cached sign-ins with an older epoch are no
   * longer valid.
   */
  readonly epoch: string;
  /** True if signing in by password also needs a code. */
  readonly secondFactor?: boolean;
  /**
   * Time from which a first password is refused. Present if another user set the password while the policy said
   * `firstPasswords: once`: the user must change it before doing anything else.
   */
  readonly firstPasswordUntilMs?: number;
  /** The account of an OpenID provider that signs in as this user; written together with the key of `link-store.ts`. */
  readonly openId?: ProviderAccount;
}

type BeforeTree = Omit<UserRecord, "id" | "parent" | "details">;

export interface StoredUser {
  readonly record: UserRecord;
  readonly revision: number;
}

export const USERS = "users/";
const SESSIONS = "usersessions/";
/** Index of sessions and tokens by user. */
export const SIGN_INS = "signins/";

/** Users in their tenant's key-value store. */
export class UserStore {
  readonly #stores: Stores;
  readonly #recent: RecentReads<StoredUser>;

  constructor(stores: Stores, clock: Clock) {
    this.#stores = stores;
    this.#recent = new RecentReads(clock);
  }

  /** The user for a call, at most `SIGN_IN_CACHE_MS` old. */
  recent(tenant: string, username: string, evidence?: EvidenceList): Promise<StoredUser | undefined> {
    return this.#recent.read(JSON.stringify([tenant, username]), () => this.get(tenant, username), evidence);
  }

  /**
   * Drops a cached user, because another controller may have changed it. Drops all of the tenant if `username` is
   * undefined.
   */
  forget(tenant: string, username: string | undefined): void {
    if (username === undefined) this.#recent.forgetAll();
    else this.#recent.forget(JSON.stringify([tenant, username]));
  }

  async get(tenant: string, username: string): Promise<StoredUser | undefined> {
    const kv = await this.#kv(tenant);
    const entry = await kv?.get(USERS + username);
    return entry && { record: decodeUser(entry.value), revision: entry.revision };
  }

  /** All users of a tenant, by name, page by page. */
  async *pages(tenant: string): AsyncGenerator<readonly StoredUser[]> {
    const { kv } = await this.#stores.tenant(tenant);
    let after: string | undefined;
    do {
      const page = await kv.list(USERS, after === undefined ? {} : { after });
      yield page.entries.map(({ value, revision }) => ({ record: decodeUser(value), revision }));
      after = page.next;
    } while (after !== undefined);
  }

  /** Stores the user if it is still at `revision`; 0: if it is new. False if another write came first. */
  async put(record: UserRecord, revision: number): Promise<boolean> {
    const { kv } = await this.#stores.tenant(record.tenant);
    const put = { key: USERS + record.username, value: encodeJson(record), ifRevision: revision };
    return (await this.written(record, () => putOnce(kv, put, repeated))).ok;
  }

  /** Must wrap every write of a user. Cached reads that began before the end of the write are dropped. */
  written<R>({ tenant, username }: Pick<UserRecord, "tenant" | "username">, write: () => Promise<R>): Promise<R> {
    return this.#recent.written(JSON.stringify([tenant, username]), write);
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

/** The id of the user is empty if an older version stored it and `UserDirectory.repair` has not run yet. */
function decodeUser(value: Uint8Array): UserRecord {
  const stored = decodeStored<UserRecord | BeforeTree>(value);
  return "id" in stored ? stored : { ...stored, id: "", parent: ROOT_ID, details: NO_DETAILS };
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

/** When and from where a session or token was made. */
export interface SignInOrigin {
  readonly createdMs: number;
  readonly remote: string;
}

const SESSION = "session";

/** Key prefix of the sessions and tokens of a user, to list or to watch. */
export function signInsOf({ tenant, username }: Pick<SessionRecord, "tenant" | "username">): string {
  return `${SIGN_INS}${tenant}/${username}/`;
}

function indexKey(record: SessionRecord, key: string): string {
  return `${signInsOf(record)}${SESSION}/${key.slice(SESSIONS.length)}`;
}

/** The user and digest in a key below `SIGN_INS`. */
export function signInOf(
  key: string,
): { readonly tenant: string; readonly username: string; readonly digest: string } | undefined {
  const [, tenant, username, , digest] = key.split("/");
  return tenant === undefined || username === undefined || digest === undefined
    ? undefined
    : { tenant, username, digest };
}

export interface StoredSession {
  readonly key: string;
  readonly record: SessionRecord;
  readonly revision: number;
}

/**
 * Sessions, in the system store. Keys contain only a digest of the id, so a reader of the store cannot use the
 * sessions.
 */
export class SessionStore {
  readonly #stores: Stores;
  readonly #recent: RecentReads<StoredSession>;

  constructor(stores: Stores, clock: Clock) {
    this.#stores = stores;
    this.#recent = new RecentReads(clock);
  }

  /** The session for a call, at most `SIGN_IN_CACHE_MS` old. */
  recent(id: string, evidence?: EvidenceList): Promise<StoredSession | undefined> {
    const key = keyOf(id);
    return this.#recent.read(key, () => this.#get(key), evidence);
  }

  async #get(key: string): Promise<StoredSession | undefined> {
    const { kv } = await this.#stores.system();
    const entry = await kv.get(key);
    return entry === undefined
      ? undefined
      : { key, record: decodeStored<SessionRecord>(entry.value), revision: entry.revision };
  }

  async add(id: string, record: SessionRecord, origin: SignInOrigin): Promise<void> {
    const { kv } = await this.#stores.system();
    const key = keyOf(id);
    const puts = [
      { kind: "put", key, value: encodeJson(record) },
      { kind: "put", key: indexKey(record, key), value: encodeJson(origin) },
    ] as const;
    await txnOnce(kv, { if: [{ key, revision: 0 }], then: puts }, repeated);
  }

  /** Sessions of a user, in no order, at most one page. */
  async of(tenant: string, username: string): Promise<readonly (SignInOrigin & { readonly digest: string })[]> {
    const { kv } = await this.#stores.system();
    const { entries } = await kv.list(`${signInsOf({ tenant, username })}${SESSION}/`);
    return entries.map(({ key, value }) => ({
      ...decodeStored<SignInOrigin>(value),
      digest: signInOf(key)?.digest ?? "",
    }));
  }

  /**
   * Drops a cached session, because another controller may have ended it. Drops all sessions if `digest` is undefined.
   */
  forget(digest: string | undefined): void {
    if (digest === undefined) this.#recent.forgetAll();
    else this.#recent.forget(SESSIONS + digest);
  }

  /** Stores `record` in place of the session. Does nothing if the session has changed or ended meanwhile. */
  async replace(session: StoredSession, record: SessionRecord): Promise<void> {
    const { kv } = await this.#stores.system();
    await this.#recent.written(session.key, () =>
      kv.put(session.key, encodeJson(record), { ifRevision: session.revision }),
    );
  }

  remove(id: string): Promise<void> {
    return this.#remove(keyOf(id));
  }

  /** Ends one session of a user. False if the user has no such session. */
  async removeOf(user: Pick<SessionRecord, "tenant" | "username">, digest: string): Promise<boolean> {
    const record = (await this.#get(SESSIONS + digest))?.record;
    if (record === undefined || record.tenant !== user.tenant || record.username !== user.username) return false;
    await this.#remove(SESSIONS + digest);
    return true;
  }

  /** Removes the sessions that `of` lists, except `kept`. */
  async removeAllOf(user: Pick<SessionRecord, "tenant" | "username">, kept: string | undefined): Promise<void> {
    const own = kept === undefined ? undefined : digestOf(kept);
    for (const { digest } of await this.of(user.tenant, user.username))
      if (digest !== own) await this.removeOf(user, digest);
  }

  async removeIf({ key, record, revision }: StoredSession): Promise<void> {
    const { kv } = await this.#stores.system();
    const then = [key, indexKey(record, key)].map((one) => ({ kind: "delete", key: one }) as const);
    await this.#recent.written(key, () => kv.txn({ if: [{ key, revision }], then }));
  }

  async #remove(key: string): Promise<void> {
    const { kv } = await this.#stores.system();
    await this.#recent.written(key, async () => {
      const record = (await this.#get(key))?.record;
      if (record === undefined) return;
      const then = [key, indexKey(record, key)].map((one) => ({ kind: "delete", key: one }) as const);
      await repeated(() => kv.txn({ if: [], then }));
    });
  }

  async *all(): AsyncIterable<StoredSession> {
    const { kv } = await this.#stores.system();
    for await (const { key, value, revision } of entriesUnder(kv, SESSIONS))
      yield { key, record: decodeStored<SessionRecord>(value), revision };
  }
}

/** Repeats a write once if it may have failed for a temporary reason; throws the next failure. */
export async function repeated<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (isAppError(error, "unknown_outcome", "unavailable")) return write();
    throw error;
  }
}

function keyOf(id: string): string {
  return SESSIONS + digestOf(id);
}

/** Identifies a session, but cannot be used to sign in. */
export function digestOf(id: string): string {
  return hash("sha256", id);
}
