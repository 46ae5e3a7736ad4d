import { AppError } from "../../../common/errors.ts";
import { OPENID_CHECKS_AT_ONCE_MAX, OPENID_GROUPS_MAX, OPENID_TICKET_MS } from "../../../common/limits.ts";
import type { OpenIdSettings } from "../../openid-settings.ts";
import type { Runtime } from "../../runtime.ts";
import type { SecretBox } from "../../secrets/index.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import {
  isOwnPath,
  type PendingLink,
  type ProviderAccount,
  type ProviderSignIns,
  type SignedIn,
} from "../users/index.ts";
import { Provider, type Claims } from "./provider.ts";
import { Tickets, type Ticket } from "./tickets.ts";

export interface OpenIdDependencies {
  readonly runtime: Runtime;
  readonly secrets: SecretBox;
  readonly users: ProviderSignIns;
  /** Absent: there is no provider, and nobody signs in by one. */
  readonly settings: OpenIdSettings | undefined;
  /** Where the provider may live besides public addresses and its issuer's host. */
  readonly networks: readonly string[];
  /** Whether it may live at a public address; true when absent. */
  readonly isPublicOpen?: boolean | undefined;
}

/** A browser that is to go to the provider. */
export interface Departure {
  readonly address: string;
  /** For the browser to bring back. */
  readonly ticket: string;
  readonly lastingMs: number;
}

/** A browser that came back. */
export interface Arrival {
  /** What the provider sent along with it. */
  readonly answer: Readonly<Record<string, string>>;
  readonly ticket: string | undefined;
  readonly principal: Principal;
  /** The session that the browser came with. */
  readonly session: string | undefined;
  readonly remote: string;
}

interface Known {
  readonly settings: OpenIdSettings;
  readonly provider: Provider;
}

/** Signing in by an OpenID provider: authorization code with PKCE. */
export class OpenIdService {
  readonly #runtime: Runtime;
  readonly #tickets: Tickets;
  readonly #users: ProviderSignIns;
  readonly #known: Known | undefined;
  #checks = 0;

  constructor({ runtime, secrets, users, settings, networks, isPublicOpen }: OpenIdDependencies) {
    this.#runtime = runtime;
    this.#tickets = new Tickets(secrets, runtime.clock);
    this.#users = users;
    this.#known = settings && { settings, provider: new Provider({ settings, runtime, networks, isPublicOpen }) };
  }

  /** `AppError("invalid")` for a `redirect` that leads away from here, `unavailable` while the provider is away. */
  async begin({ remember = false, redirect = "" }: Partial<Pick<Ticket, "remember" | "redirect">>): Promise<Departure> {
    if (redirect !== "" && !isOwnPath(redirect))
      throw new AppError("invalid", "redirect must be the path of a page of this site.");
    return this.#depart({ remember, redirect });
  }

  /** The caller's own, with the password: whoever has the account of the provider signs in as the caller then. */
  async beginLink(principal: Principal, password: string): Promise<Departure> {
    const { tenant } = this.#required().settings;
    if (principal.tenant !== tenant) throw otherTenant();
    return this.#depart({ remember: false, redirect: "", link: await this.#users.beginLink(principal, password) });
  }

  /**
   * What came back from the provider: `undefined` when an account is linked by it. `AppError("deadline")` when this
   * browser did not begin it or began too long ago, `denied` for what does not hold, `unavailable` while the provider is
   * away; besides those of `ProviderSignIns.signIn`.
   */
  async finish({ answer, ticket: text, principal, session, remote }: Arrival): Promise<SignedIn | undefined> {
    const { settings } = this.#required();
    const ticket = this.#tickets.open(text);
    const claims = await this.#checked(answer, ticket);
    const account = this.#account(String(claims["sub"]));
    if (ticket.link !== undefined) {
      await this.#users.finishLink(principal, ticket.link, account);
      return undefined;
    }
    const { tenant, createUsers: creates, usernameClaim, groups } = settings;
    const { remember, redirect } = ticket;
    return this.#users.signIn({
      ...{ tenant, account, creates, remember, redirect, remote, replaced: session },
      profile: {
        username: textOf(claims[usernameClaim]),
        firstname: textOf(claims["given_name"]),
        lastname: textOf(claims["family_name"]),
        email: textOf(claims["email"]),
      },
      groups: this.#groupsOf(claims),
      governed: [...new Set([...groups.values()].flat())],
      traceparent: principal.traceparent,
    });
  }

  /** The caller's own account; undefined without one. */
  own(principal: Principal): Promise<ProviderAccount | undefined> {
    return this.#users.own(principal);
  }

  /** The caller's own, with the password. */
  unlinkOwn(principal: Principal, password: string): Promise<void> {
    return this.#users.unlinkOwn(principal, password);
  }

  /** Of a user; undefined without one. */
  async of(principal: Principal, userId: string): Promise<ProviderAccount | undefined> {
    requirePermission(principal, "users:read");
    return this.#users.of(principal, userId);
  }

  /** Whoever has that account at the provider signs in as the user then. */
  async link(principal: Principal, userId: string, subject: string): Promise<void> {
    requirePermission(principal, "users:write");
    if (principal.tenant !== this.#required().settings.tenant) throw otherTenant();
    await this.#users.link(principal, userId, this.#account(subject));
  }

  async unlink(principal: Principal, userId: string): Promise<void> {
    requirePermission(principal, "users:write");
    await this.#users.unlink(principal, userId);
  }

  async #depart(wanted: {
    readonly remember: boolean;
    readonly redirect: string;
    readonly link?: PendingLink;
  }): Promise<Departure> {
    const { provider } = this.#required();
    const proofs = { state: this.#unguessable(), nonce: this.#unguessable(), verifier: this.#unguessable() };
    const address = await provider.address(proofs);
    return { address, ticket: this.#tickets.make({ ...proofs, ...wanted }), lastingMs: OPENID_TICKET_MS };
  }

  async #checked(answer: Arrival["answer"], ticket: Ticket): Promise<Claims> {
    const { provider, settings } = this.#required();
    // Asked before anything is sent: strangers make this controller send nothing.
    if (answer["state"] !== ticket.state) throw new AppError("denied", "The answer belongs to another sign-in.");
    if (this.#checks >= OPENID_CHECKS_AT_ONCE_MAX)
      throw new AppError("limited", "Too many sign-ins by the provider at once; come back later.");
    this.#checks++;
    try {
      return await provider.claims(answer, ticket, [settings.usernameClaim, settings.groupsClaim]);
    } finally {
      this.#checks--;
    }
  }

  /** By the issuer as it is set: the claim was compared with what the provider found there says of itself. */
  #account(subject: string): ProviderAccount {
    return { issuer: this.#required().settings.issuer.href, subject };
  }

  /** Without the claim a user is in none: what the provider does not say it does not give. */
  #groupsOf(claims: Claims): readonly string[] {
    const { settings } = this.#required();
    const given = [claims[settings.groupsClaim] ?? []].flat().slice(0, OPENID_GROUPS_MAX);
    return [...new Set(given.flatMap((group) => settings.groups.get(String(group)) ?? []))];
  }

  #unguessable(): string {
    return Buffer.from(this.#runtime.random.bytes(32)).toString("base64url");
  }

  #required(): Known {
    if (this.#known) return this.#known;
    throw new AppError("unsupported", "This installation has no OpenID provider: the setting openid_issuer names one.");
  }
}

function textOf(claim: unknown): string | undefined {
  return typeof claim === "string" && claim !== "" ? claim : undefined;
}

function otherTenant(): AppError {
  return new AppError("denied", "Users of this tenant do not sign in by the OpenID provider.");
}
