import { hash } from "node:crypto";
import { AppError } from "../../../../common/errors.ts";
import { DAY_SECONDS, TOKENS_PER_USER_MAX } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import { txnOnce } from "../../../store/once.ts";
import { RecentReads } from "./recent.ts";
import { repeated, signInOf, SIGN_INS, signInsOf } from "../store.ts";
import type { NewToken, TokenView, User } from "../types.ts";

export interface TokenRecord {
  readonly tenant: string;
  readonly ospace: string;
  readonly username: string;
  /** Id of the user who created it. A later user of the same name does not get the token. */
  readonly userId: string;
  /** Absent in tokens of earlier versions. */
  readonly name?: string;
  readonly scopes: readonly string[];
  readonly expiresMs: number;
}

type Kept = Omit<TokenView, "id">;

const TOKENS = "tokens/";
const KIND = "token/";
/** Prefix of every token, so that searches find tokens in logs and files. */
const PREFIX = "odp_";

/**
 * Tokens of programs, in the system store. Keys contain only a digest of the token, so a reader of the store cannot use
 * the tokens. The store removes expired ones.
 */
export class Tokens {
  readonly #stores: Stores;
  readonly #runtime: Runtime;
  readonly #recent: RecentReads<TokenRecord>;

  constructor({ stores, runtime }: { readonly stores: Stores; readonly runtime: Runtime }) {
    this.#stores = stores;
    this.#runtime = runtime;
    this.#recent = new RecentReads(runtime.clock);
  }

  /** Creates a token and answers it: 256 unpredictable bits, shown once. */
  async make(user: User, wanted: NewToken & { readonly ospace: string }): Promise<string> {
    const { tenant, username, id: userId } = user;
    if ((await this.list(user)).length >= TOKENS_PER_USER_MAX)
      throw new AppError("too_large", `A user has at most ${String(TOKENS_PER_USER_MAX)} tokens.`, {
        details: { limit: "TOKENS_PER_USER_MAX" },
      });
    const token = PREFIX + Buffer.from(this.#runtime.random.bytes(32)).toString("base64url");
    const { name, scopes, days, ospace, remote } = wanted;
    const createdMs = this.#runtime.clock.nowMs();
    const expiresAtMs = createdMs + days * DAY_SECONDS * 1_000;
    const record: TokenRecord = { tenant, ospace, username, userId, name, scopes, expiresMs: expiresAtMs };
    const kept: Kept = { name, scopes, createdMs, expiresMs: expiresAtMs, remote };
    const digest = digestOf(token);
    const key = TOKENS + digest;
    const { kv } = await this.#stores.system();
    const puts = [
      { kind: "put", key, value: encodeJson(record), expiresAtMs },
      { kind: "put", key: indexKey(user, digest), value: encodeJson(kept), expiresAtMs },
    ] as const;
    await txnOnce(kv, { if: [{ key, revision: 0 }], then: puts }, repeated);
    return token;
  }

  /** The record of a token, at most `SIGN_IN_CACHE_MS` old. Undefined for an unknown, expired or removed token. */
  async use(text: string): Promise<TokenRecord | undefined> {
    if (!text.startsWith(PREFIX)) return undefined;
    const key = TOKENS + digestOf(text);
    const record = await this.#recent.read(key, async () => {
      const entry = await (await this.#stores.system()).kv.get(key);
      return entry && decodeStored<TokenRecord>(entry.value);
    });
    return record !== undefined && record.expiresMs > this.#runtime.clock.nowMs() ? record : undefined;
  }

  /** Tokens of a user, at most one page. */
  async list(user: Pick<User, "tenant" | "username">): Promise<readonly TokenView[]> {
    const { entries } = await (await this.#stores.system()).kv.list(signInsOf(user) + KIND);
    return entries.map(({ key, value }) => ({ id: signInOf(key)?.digest ?? "", ...decodeStored<Kept>(value) }));
  }

  /** Names of all tokens of a tenant, by user. */
  async namesIn(tenant: string): Promise<ReadonlyMap<string, readonly string[]>> {
    const names = new Map<string, string[]>();
    const { kv } = await this.#stores.system();
    for await (const { key, value } of entriesUnder(kv, `${SIGN_INS}${tenant}/`)) {
      const found = signInOf(key);
      if (found === undefined || !key.startsWith(signInsOf(found) + KIND)) continue;
      const { name } = decodeStored<Kept>(value);
      names.set(found.username, [...(names.get(found.username) ?? []), name]);
    }
    return names;
  }

  /** Ends one token of a user. False if the user has no such token. */
  async remove(user: Pick<User, "tenant" | "username">, id: string): Promise<boolean> {
    const { kv } = await this.#stores.system();
    if (!/^[0-9a-f]{64}$/.test(id) || (await kv.get(indexKey(user, id))) === undefined) return false;
    const then = [TOKENS + id, indexKey(user, id)].map((key) => ({ kind: "delete", key }) as const);
    await this.#recent.written(TOKENS + id, () => repeated(() => kv.txn({ if: [], then })));
    return true;
  }

  /** Removes all tokens of a user. Answers their number. */
  async removeAllOf(user: Pick<User, "tenant" | "username">): Promise<number> {
    const tokens = await this.list(user);
    for (const { id } of tokens) await this.remove(user, id);
    return tokens.length;
  }

  /** Drops a cached token, because another controller may have ended it. Drops all tokens if `digest` is undefined. */
  forget(digest: string | undefined): void {
    if (digest === undefined) this.#recent.forgetAll();
    else this.#recent.forget(TOKENS + digest);
  }
}

function digestOf(token: string): string {
  return hash("sha256", token);
}

function indexKey(user: Pick<User, "tenant" | "username">, digest: string): string {
  return `${signInsOf(user)}${KIND}${digest}`;
}
