import { printJoinToken } from "../../../../common/agent/enrolment.ts";
import type { TokenInput, TokenView } from "../../../../common/api/hosts.ts";
import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { ulidOf } from "../../../../common/ids.ts";
import { JOIN_TOKEN_DEFAULT_MINUTES, JOIN_TOKENS_AT_ONCE } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { SecretBox } from "../../../secrets/index.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import type { HostRecords } from "../records.ts";
import { checkHostName } from "../store.ts";
import { keptUntilMs, TOKENS, tokenSecret, type StoredToken } from "./store.ts";

export interface HostTokensDependencies {
  /** The system's KvStore. */
  readonly kv: KvStore;
  readonly secrets: SecretBox;
  readonly runtime: Runtime;
  readonly records: Pick<HostRecords, "find">;
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
  /** Returns true if any controller has a session of the host. */
  readonly isOnline: (tenant: string, host: string) => Promise<boolean>;
}

interface MadeToken {
  readonly token: string;
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly expires: number;
}

/** Join tokens of tenants: made, listed and revoked by users. `Enrolment` uses them. */
export class HostTokens {
  readonly #with: HostTokensDependencies;

  constructor(dependencies: HostTokensDependencies) {
    this.#with = dependencies;
  }

  /**
   * Makes a token. Nothing changes until an agent uses it. `warn` is called if the host has a connected agent, which
   * the user of the token replaces. `AppError("denied")` for a host that the principal may not see.
   */
  async create(
    principal: Principal,
    wish: TokenInput,
    warn: (text: string) => void = () => undefined,
  ): Promise<MadeToken> {
    requirePermission(principal, "hosts:write");
    const { kv, secrets, runtime } = this.#with;
    const host = wish.host === undefined ? undefined : checkHostName(wish.host);
    if (host !== undefined) await this.#requireOwn(principal, host, warn);
    const minutes = wish.minutes ?? JOIN_TOKEN_DEFAULT_MINUTES;
    const expires = runtime.clock.nowMs() + minutes * 60_000;
    const id = ulidOf(expires, runtime.random.bytes(10));
    const stored: StoredToken = {
      tenant: principal.tenant,
      user: principal.user,
      expiresAtMs: expires,
      keyId: secrets.keyId,
      ...(host !== undefined && { host }),
    };
    await kv.put(TOKENS + id, encodeJson(stored), { ifRevision: 0, expiresAtMs: keptUntilMs(stored) });
    return { token: printJoinToken({ id, secret: tokenSecret(secrets, id, secrets.keyId) }), id, expires };
  }

  /** Tokens of the tenant, used or not, until they expire. Those for hosts that the principal may not see are absent. */
  async list(principal: Principal): Promise<readonly TokenView[]> {
    requirePermission(principal, "hosts:write");
    const { kv, runtime } = this.#with;
    const views: TokenView[] = [];
    for await (const { key, value } of entriesUnder(kv, TOKENS)) {
      const token = decodeStored<StoredToken>(value);
      if (token.tenant !== principal.tenant || token.expiresAtMs <= runtime.clock.nowMs()) continue;
      views.push(viewOf(key.slice(TOKENS.length), token));
    }
    const shown = await mapLimited(views, JOIN_TOKENS_AT_ONCE, (view) => this.#isShown(principal, view));
    return views.filter((_, at) => shown[at]);
  }

  /**
   * Ends a token that was not used. `AppError("not_found")` if there is none, `conflict` if it was used: its agent is
   * enrolled then.
   */
  async revoke(principal: Principal, id: string): Promise<void> {
    requirePermission(principal, "hosts:write");
    const { kv } = this.#with;
    const entry = await kv.get(TOKENS + id);
    const token = entry && decodeStored<StoredToken>(entry.value);
    const isTheirs = token?.tenant === principal.tenant && (await this.#isShown(principal, viewOf(id, token)));
    if (!entry || !isTheirs) throw new AppError("not_found", `There is no join token ${id}.`);
    if (token.used) throw usedBy(token.used.host);
    if ((await kv.delete(TOKENS + id, { ifRevision: entry.revision })).ok) return;
    const now = await kv.get(TOKENS + id);
    const used = now && decodeStored<StoredToken>(now.value).used;
    if (used) throw usedBy(used.host);
  }

  async #requireOwn(principal: Principal, host: string, warn: (text: string) => void): Promise<void> {
    if (await this.#isHidden(principal, host))
      throw new AppError("denied", `${principal.user} may not change the host ${host}.`);
    if (await this.#with.isOnline(principal.tenant, host))
      warn(
        `The agent of ${host} is connected. The agent that uses this token takes its place: the former one is no longer admitted, and keeps its data.`,
      );
  }

  async #isShown(principal: Principal, { host, usedBy: by }: TokenView): Promise<boolean> {
    for (const name of new Set([host, by])) if (name !== "" && (await this.#isHidden(principal, name))) return false;
    return true;
  }

  /** True if there is a record of the host that the principal may not see. */
  async #isHidden(principal: Principal, host: string): Promise<boolean> {
    const { records, actAs } = this.#with;
    if (await records.find(principal, host)) return false;
    return (await records.find(await actAs(principal.tenant, principal.traceparent), host)) !== undefined;
  }
}

function viewOf(id: string, { host = "", user = "", expiresAtMs, used }: StoredToken): TokenView {
  return { id, host, user, expires: expiresAtMs, used: used?.atMs ?? 0, usedBy: used?.host ?? "" };
}

function usedBy(host: string): AppError {
  return new AppError(
    "conflict",
    `The agent of ${host} has used this join token. To end its enrolment, remove the host.`,
  );
}
