import { hash } from "node:crypto";
import { USER_CHANGE_ATTEMPTS_MAX } from "../../../../common/limits.ts";
import { AppError } from "../../../../common/errors.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvCondition, KvOperation, KvStore } from "../../../store/kv.ts";
import { txnOnce } from "../../../store/once.ts";
import { repeated, USERS, type UserRecord, type UserStore } from "../store.ts";
import type { ProviderAccount } from "../types.ts";

interface LinkRecord {
  readonly username: string;
}

const LINKS = "openidlinks/";

export function linkKey({ issuer, subject }: ProviderAccount): string {
  return LINKS + hash("sha256", JSON.stringify([issuer, subject]));
}

export function putLink(account: ProviderAccount, username: string): KvOperation {
  const record: LinkRecord = { username };
  return { kind: "put", key: linkKey(account), value: encodeJson(record) };
}

type Whose = Pick<UserRecord, "tenant" | "username" | "id">;

/**
 * Links accounts of an OpenID provider to users. The user's record contains the account, and a key finds that record by
 * the account. Both change in one transaction, so an account has at most one user.
 */
export class LinkStore {
  readonly #stores: Stores;
  readonly #users: UserStore;

  constructor(stores: Stores, users: UserStore) {
    this.#stores = stores;
    this.#users = users;
  }

  async find(tenant: string, account: ProviderAccount): Promise<UserRecord | undefined> {
    const entry = await (await this.#kv(tenant)).get(linkKey(account));
    const user = entry && (await this.#users.get(tenant, decodeStored<LinkRecord>(entry.value).username))?.record;
    return user && isSame(user.openId, account) ? user : undefined;
  }

  /**
   * Links the account, in place of an earlier account of that user. `AppError("conflict")` if the account belongs to
   * another user.
   */
  async link(whose: Whose, account: ProviderAccount, epoch?: string): Promise<void> {
    await this.#change(whose, async (user, kv) => {
      const key = linkKey(account);
      const entry = await kv.get(key);
      if (entry !== undefined && !isSame(user.openId, account))
        throw new AppError("conflict", "That account of the provider belongs to another user.");
      const before = user.openId === undefined || isSame(user.openId, account) ? [] : [deletion(user.openId)];
      const next = { ...user, openId: account, ...(epoch !== undefined && { epoch }) };
      return {
        next,
        if: [{ key, revision: entry?.revision ?? 0 }],
        then: [putLink(account, user.username), ...before],
      };
    });
  }

  async unlink(whose: Whose, epoch: string): Promise<void> {
    await this.#change(whose, ({ openId, ...user }) => {
      if (openId === undefined) return Promise.resolve(undefined);
      return Promise.resolve({ next: { ...user, epoch }, if: [], then: [deletion(openId)] });
    });
  }

  /**
   * Writes the planned change. Plans again if the user was changed meanwhile. Does nothing if `plan` answers
   * `undefined`.
   */
  async #change(
    whose: Whose,
    plan: (user: UserRecord, kv: KvStore) => Promise<PlannedChange | undefined>,
  ): Promise<void> {
    const kv = await this.#kv(whose.tenant);
    const key = USERS + whose.username;
    for (let attempt = 1; attempt <= USER_CHANGE_ATTEMPTS_MAX; attempt++) {
      const user = await this.#users.get(whose.tenant, whose.username);
      if (user?.record.id !== whose.id) throw new AppError("not_found", `There is no user ${whose.username} any more.`);
      const change = await plan(user.record, kv);
      if (change === undefined) return;
      const put = { kind: "put", key, value: encodeJson(change.next) } as const;
      const request = { if: [{ key, revision: user.revision }, ...change.if], then: [put, ...change.then] };
      if ((await this.#users.written(whose, () => txnOnce(kv, request, repeated))).ok) return;
    }
    throw new AppError("conflict", `Others change the user ${whose.username} all the time.`);
  }

  async #kv(tenant: string): Promise<KvStore> {
    return (await this.#stores.tenant(tenant)).kv;
  }
}

interface PlannedChange {
  readonly next: UserRecord;
  readonly if: readonly KvCondition[];
  readonly then: readonly KvOperation[];
}

function isSame(one: ProviderAccount | undefined, other: ProviderAccount): boolean {
  return one?.issuer === other.issuer && one.subject === other.subject;
}

function deletion(account: ProviderAccount): KvOperation {
  return { kind: "delete", key: linkKey(account) };
}
