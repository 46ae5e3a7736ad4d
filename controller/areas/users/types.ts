import type { DataRule, Principal, RoleName } from "../permissions/index.ts";

export type NodeKind = "usr" | "org";

/** What the tree tells of a user or an organisation, besides its place and its rights. */
export interface Details {
  readonly firstname: string;
  readonly lastname: string;
  readonly gender: string;
  readonly address: string;
  readonly imaccount: string;
  readonly remark: string;
  /** How the user is meant to sign in; kept for clients, without effect. */
  readonly auth: string;
  readonly email: readonly string[];
  readonly mobile: readonly string[];
  readonly telephone: readonly string[];
  /** Of the client's meaning. */
  readonly status: number;
  readonly config: Readonly<Record<string, string>>;
}

/** A user as others may see one. */
export interface User {
  readonly tenant: string;
  readonly username: string;
  /** 19 or 20 decimal digits, given once. */
  readonly id: string;
  /** Id of the organisation the user is in. */
  readonly parent: string;
  readonly details: Details;
  /** Groups as named in `grpset`. */
  readonly groups: readonly string[];
  readonly rights: Rights;
  /** An inactive user cannot sign in, and open sessions end. */
  readonly active: boolean;
  /** Path of the page that signing in leads to; absent: the tenant's. */
  readonly home?: string;
  readonly createdMs: number;
  readonly changedMs: number;
}

/** A role every tenant has, or grants of the user's own. */
export type Rights =
  | { readonly role: RoleName }
  | { readonly grants: readonly string[]; readonly data: readonly DataRule[] };

export interface NewUser {
  readonly username: string;
  readonly password: string;
  /** The password was made by the platform: how easily it is guessed is not asked. */
  readonly isGenerated?: boolean;
  readonly rights: Rights;
  /** Path or id of an organisation; the root when absent. */
  readonly parent?: string;
  readonly details?: Partial<Details>;
  readonly groups?: readonly string[];
  readonly active?: boolean;
  /** The account this user is made for: nobody else may have it. */
  readonly openId?: ProviderAccount;
}

/** A user of an OpenID provider, by what is never given to another one there. */
export interface ProviderAccount {
  readonly issuer: string;
  readonly subject: string;
}

/** What a provider vouches for, and what the installation makes of it. */
export interface ProviderSignIn {
  readonly tenant: string;
  readonly account: ProviderAccount;
  /** For a user that is made: what the provider says of the account. */
  readonly profile: {
    readonly username: string | undefined;
    readonly firstname: string | undefined;
    readonly lastname: string | undefined;
    readonly email: string | undefined;
  };
  /** Groups of here, of those that are governed. */
  readonly groups: readonly string[];
  /** Groups of here that users of the provider are in by its word alone. */
  readonly governed: readonly string[];
  /** A user is made for an account that nobody here has. */
  readonly creates: boolean;
  readonly remember: boolean;
  /** As in `SignInRequest`. */
  readonly replaced: string | undefined;
  readonly redirect: string;
  readonly remote: string;
  readonly traceparent: string;
}

/** Of a user who gave the password to link an account of the provider. */
export interface PendingLink {
  readonly tenant: string;
  readonly username: string;
  readonly epoch: string;
}

export interface NewOrganization {
  readonly username: string;
  readonly parent?: string;
  readonly details?: Partial<Details>;
  readonly active?: boolean;
}

export interface UserChange {
  readonly details?: Partial<Details>;
  readonly groups?: readonly string[];
  readonly rights?: Rights;
  readonly active?: boolean;
}

/** A change of a node of the tree; what is absent stays as it is. */
export interface NodeChange {
  readonly details?: Partial<Details>;
  readonly groups?: readonly string[];
  /** False takes the role of administrator away, and leaves other rights as they are. */
  readonly isAdmin?: boolean;
  readonly active?: boolean;
  readonly password?: string;
  /** The caller's own, which a new password of the caller takes. */
  readonly presentPassword?: string;
}

/** One node of the tree as told to those who may see users. */
export interface UserNode extends Details {
  readonly id: string;
  /** `/` for the root. */
  readonly username: string;
  /** Its path from the root. */
  readonly fullname: string;
  /** Path of the organisation it is in; empty for the root. */
  readonly parent: string;
  readonly otype: NodeKind;
  readonly isadmin: boolean;
  readonly isactive: boolean;
  readonly wechat: string;
  readonly grpset: readonly string[];
  /** By name, organisations first. */
  readonly nodes: readonly UserNode[];
}

/** What stops working when a user goes: told to who deletes one. */
export interface AuthoredWork {
  /** One sentence for each kind of work, such as `2 rules stop: …`. */
  endsWith(principal: Principal, username: string): Promise<readonly string[]>;
}

/**
 * Work that goes on with the rights that its user had when it began, whatever the user loses: told to who deletes or
 * narrows one, or a group.
 */
export interface BegunWork {
  /** In the plural: `job runs`. */
  readonly kind: string;
  /** What those users began and is not over, each by its name, as far as the principal may see it. */
  goesOn(principal: Principal, isTheirs: (username: string) => Promise<boolean>): Promise<readonly string[]>;
}

export interface SignInRequest {
  /** When absent or empty: the company before the first dot of `username`, else the installation's only tenant. */
  readonly company?: string;
  readonly username: string;
  readonly password: string;
  /** One-time password or recovery code, for a user with a second factor. */
  readonly code?: string;
  /** A session that outlives the browser. */
  readonly remember?: boolean;
  /** Path of a page of this site to go to in place of the start page. */
  readonly redirect?: string;
  /** The session that the browser had: over once the new one is open, for no cookie names it any more. */
  readonly replaced?: string | undefined;
  readonly remote: string;
  readonly traceparent: string;
}

/** What a session is opened with, however its user was verified. */
export type Opening = Pick<SignInRequest, "remember" | "redirect" | "replaced" | "remote">;

/** The second step of a sign-in, without the password. */
export interface CodeRequest {
  readonly ticket: string;
  readonly code: string;
  /** As in `SignInRequest`. */
  readonly replaced?: string | undefined;
  readonly remote: string;
  readonly traceparent: string;
}

/** Told once. */
export interface NewSecondFactor {
  /** `otpauth://totp/…`: what authenticators read from a QR code. */
  readonly uri: string;
  /** The same secret in base32, to be typed. */
  readonly secret: string;
}

export interface SignedIn {
  readonly session: string;
  /** Present when the client wants the session to outlive the browser. */
  readonly lastingMs?: number;
  /** Path of the user's start page. */
  readonly home: string;
}

export interface NewToken {
  readonly name: string;
  /** Grants as of `Principal.grants`, each within those of its maker. */
  readonly scopes: readonly string[];
  readonly days: number;
  readonly remote: string;
}

export interface TokenView {
  /** Names it, and does not sign in. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly createdMs: number;
  readonly expiresMs: number;
  /** Where it was made. */
  readonly remote: string;
}

export interface SessionView {
  /** Names it, and does not sign in. */
  readonly id: string;
  readonly createdMs: number;
  /** Where it was made. */
  readonly remote: string;
  /** The call that asks came by it. */
  readonly current: boolean;
}

/** Users of all tenants and their sessions. */
export interface Users {
  /**
   * `AppError("denied")` for anything wrong with company, name or password, without saying what, and after a right
   * password for a missing or wrong code; `limited` after too many failures.
   */
  signIn(request: SignInRequest): Promise<SignedIn>;
  /**
   * Ends a session, on other controllers within `SIGN_IN_CACHE_MS`; one that is unknown is no error. Takes no
   * permission, but is refused to a principal that reads only.
   */
  signOut(principal: Principal, session: string): Promise<void>;
  /** Undefined for a session that is unknown or over, or whose user changed since. */
  bySession(session: string, traceparent: string): Promise<Principal | undefined>;
  /** In the principal's tenant, as all below. `AppError("conflict")` when the name is taken. */
  create(principal: Principal, user: NewUser): Promise<User>;
  /**
   * `AppError("not_found")` for an unknown user. Ends the user's sessions when rights or activity change, as `signOut`
   * does.
   */
  update(principal: Principal, username: string, change: UserChange): Promise<User>;
  /** Ends the user's sessions, as `signOut` does. */
  setPassword(principal: Principal, username: string, password: string): Promise<void>;
  find(principal: Principal, username: string): Promise<User | undefined>;
}
