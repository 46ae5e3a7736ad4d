import { USER_CHANGE_ATTEMPTS_MAX } from "../../../../common/limits.ts";
import { AppError } from "../../../../common/errors.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvOperation, KvStore } from "../../../store/kv.ts";
import { putOnce, txnOnce } from "../../../store/once.ts";
import { repeated, USERS, type UserRecord, type UserStore } from "../store.ts";

/** The stored second factor of one user. */
export interface FactorRecord {
  /** The shared secret, sealed. */
  readonly sealed: string;
  readonly isConfirmed: boolean;
  /** End of the time to confirm the factor. Needed because stores may remove expired entries late. */
  readonly untilMs: number;
  /** Latest time step with an accepted code. Codes of this step and of earlier ones are refused. */
  readonly lastStep: number;
  /** Digests of the unused recovery codes. */
  readonly recovery: readonly string[];
  /** Number of wrong codes since the last right one. */
  readonly failures: number;
  readonly blockedUntilMs: number;
  /** A new random text with every write, so that no two writes are equal. */
  readonly change: string;
}

export interface StoredFactor {
  readonly record: FactorRecord;
  readonly revision: number;
}

export const FACTORS = "secondfactors/";

export const factorKey = (userId: string): string => FACTORS + userId;

type Whose = Pick<UserRecord, "tenant" | "username" | "id">;

/** Second factors in their tenant's key-value store, by user id. A later user of the same name does not get them. */
export class FactorStore {
  readonly #stores: Stores;
  readonly #users: UserStore;

  constructor(stores: Stores, users: UserStore) {
    this.#stores = stores;
    this.#users = users;
  }

  async get({ tenant, id }: Whose): Promise<StoredFactor | undefined> {
    const entry = await (await this.#kv(tenant)).get(factorKey(id));
    return entry && { record: decodeStored<FactorRecord>(entry.value), revision: entry.revision };
  }

  /** Stores the factor if it is still at `revision`; 0: if there is none. False if another write came first. */
  async put(
    { tenant, id }: Whose,
    record: FactorRecord,
    options: { readonly revision: number; readonly expiresAtMs?: number },
  ): Promise<boolean> {
    const { revision: ifRevision, ...others } = options;
    const put = { key: factorKey(id), value: encodeJson(record), ifRevision, ...others };
    return (await putOnce(await this.#kv(tenant), put, repeated)).ok;
  }

  /** Stores the confirmed factor, so that sign-in asks for it. False if the factor is no longer at `revision`. */
  confirm(whose: Whose, record: FactorRecord, revision: number): Promise<boolean> {
    const put = { kind: "put", key: factorKey(whose.id), value: encodeJson(record) } as const;
    return this.#withUser(whose, true, { change: put, revision });
  }

  async remove(whose: Whose): Promise<void> {
    await this.#withUser(whose, false, { change: { kind: "delete", key: factorKey(whose.id) } });
  }

  /**
   * Changes the factor and the mark on the user in one transaction. Repeats if the user was changed meanwhile. False if
   * the factor is no longer at `revision`.
   */
  async #withUser(
    whose: Whose,
    secondFactor: boolean,
    { change, revision }: { readonly change: KvOperation; readonly revision?: number },
  ): Promise<boolean> {
    const kv = await this.#kv(whose.tenant);
    const key = USERS + whose.username;
    const conditions = revision === undefined ? [] : [{ key: change.key, revision }];
    for (let attempt = 1; attempt <= USER_CHANGE_ATTEMPTS_MAX; attempt++) {
      const user = await this.#users.get(whose.tenant, whose.username);
      if (user?.record.id !== whose.id) throw new AppError("not_found", `There is no user ${whose.username} any more.`);
      const mark = { kind: "put", key, value: encodeJson({ ...user.record, secondFactor }) } as const;
      const request = { if: [{ key, revision: user.revision }, ...conditions], then: [mark, change] };
      if ((await this.#users.written(whose, () => txnOnce(kv, request, repeated))).ok) return true;
      if (revision !== undefined && (await kv.get(change.key))?.revision !== revision) return false;
    }
    throw new AppError("conflict", `Others change the user ${whose.username} all the time.`);
  }

  async #kv(tenant: string): Promise<KvStore> {
    return (await this.#stores.tenant(tenant)).kv;
  }
}
