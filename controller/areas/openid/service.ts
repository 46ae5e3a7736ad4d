import { AppError } from "../../../common/errors.ts";
import { OPENID_CHECKS_AT_ONCE_MAX, OPENID_GROUPS_MAX, OPENID_TICKET_MS } from "../../../common/limits.ts";
import type { OpenIdSettings } from "../../settings/openid.ts";
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
  /** Absent: the installation has no provider, so sign-in by OpenID is impossible. */
  readonly settings: OpenIdSettings | undefined;
  /** Networks in which the provider may be, in addition to public addresses and the host of its issuer. */
  readonly networks: readonly string[];
  /** True if the provider may have a public address; true when absent. */
  readonly isPublicOpen?: boolean | undefined;
}

/** Data for a browser that goes to the provider: the address, and the ticket that it has to keep. */
export interface Departure {
  readonly address: string;
  /** The browser sends it back after the sign-in at the provider. */
  readonly ticket: string;
  readonly lastingMs: number;
}

/** A browser that comes back from the provider. */
export interface Arrival {
  /** Parameters that the provider added to the address. */
  readonly answer: Readonly<Record<string, string>>;
  readonly ticket: string | undefined;
  readonly principal: Principal;
  /** Session that the browser had before. A sign-in ends it. */
  readonly session: string | undefined;
  readonly remote: string;
}

interface Known {
  readonly settings: OpenIdSettings;
  readonly provider: Provider;
}

/** Sign-in through an OpenID provider: authorization code with PKCE. */
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

  /**
   * Begins a sign-in. `AppError("invalid")` if `redirect` leads to another site, `unavailable` if the provider does not
   * answer.
   */
  async begin({ remember = false, redirect = "" }: Partial<Pick<Ticket, "remember" | "redirect">>): Promise<Departure> {
    if (redirect !== "" && !isOwnPath(redirect))
      throw new AppError("invalid", "redirect must be the path of a page of this site.");
    return this.#depart({ remember, redirect });
  }

  /**
   * Begins to link the caller to an account at the provider. Requires the caller's password. After `finish`, that
   * account signs in as the caller.
   */
  async beginLink(principal: Principal, password: string): Promise<Departure> {
    const { tenant } = this.#required().settings;
    if (principal.tenant !== tenant) throw otherTenant();
    return this.#depart({ remember: false, redirect: "", link: await this.#users.beginLink(principal, password) });
  }

  /**
   * Completes a sign-in or a link with the provider's answer; returns `undefined` after a link. `AppError("deadline")`
   * if this browser did not begin it, or began too long ago. `AppError("denied")` if anything is invalid, `unavailable`
   * if the provider does not answer. Also throws the errors of `ProviderSignIns.signIn`.
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

  /** The caller's own account; `undefined` without one. */
  own(principal: Principal): Promise<ProviderAccount | undefined> {
    return this.#users.own(principal);
  }

  /** Removes the caller's link to an account. Requires the caller's password. */
  unlinkOwn(principal: Principal, password: string): Promise<void> {
    return this.#users.unlinkOwn(principal, password);
  }

  /** The account to which a user is linked; `undefined` without one. */
  async of(principal: Principal, userId: string): Promise<ProviderAccount | undefined> {
    requirePermission(principal, "users:read");
    return this.#users.of(principal, userId);
  }

  /** Links a user to an account at the provider. From then on that account signs in as the user. */
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
    // Checked before any request to the provider, so that strangers cannot make this controller send requests.
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

  /** The account of the subject at the configured issuer. The issuer claim was already compared with it. */
  #account(subject: string): ProviderAccount {
    return { issuer: this.#required().settings.issuer.href, subject };
  }

  /** Groups of the tenant for the groups that the provider names. Without the claim there are none. */
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
