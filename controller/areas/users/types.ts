import type { DataRule, Principal, RoleName } from "../permissions/index.ts";

export type NodeKind = "usr" | "org";

/** Data of a user or an organisation, besides its place and its rights. */
export interface Details {
  readonly firstname: string;
  readonly lastname: string;
  readonly gender: string;
  readonly address: string;
  readonly imaccount: string;
  readonly remark: string;
  /** Intended way to sign in; stored for clients, without effect. */
  readonly auth: string;
  readonly email: readonly string[];
  readonly mobile: readonly string[];
  readonly telephone: readonly string[];
  /** Meaning defined by the client. */
  readonly status: number;
  readonly config: Readonly<Record<string, string>>;
}

/** A user as others may see one. */
export interface User {
  readonly tenant: string;
  readonly username: string;
  /** 19 or 20 decimal digits, assigned once. */
  readonly id: string;
  /** Id of the organisation the user is in. */
  readonly parent: string;
  readonly details: Details;
  /** Groups as named in `grpset`. */
  readonly groups: readonly string[];
  readonly rights: Rights;
  /** An inactive user cannot sign in, and the user's open sessions end. */
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
  /** True if the platform generated the password: its strength is not checked. */
  readonly isGenerated?: boolean;
  readonly rights: Rights;
  /** Path or id of an organisation; the root when absent. */
  readonly parent?: string;
  readonly details?: Partial<Details>;
  readonly groups?: readonly string[];
  readonly active?: boolean;
  /** The account that the user is created for; no other user may have it. */
  readonly openId?: ProviderAccount;
}

/** An account at an OpenID provider. The provider never gives the same pair to another account. */
export interface ProviderAccount {
  readonly issuer: string;
  readonly subject: string;
}

/** A sign-in that a provider has verified, with the settings of this installation. */
export interface ProviderSignIn {
  readonly tenant: string;
  readonly account: ProviderAccount;
  /** Claims of the provider, for a user to be created. */
  readonly profile: {
    readonly username: string | undefined;
    readonly firstname: string | undefined;
    readonly lastname: string | undefined;
    readonly email: string | undefined;
  };
  /** Groups of this installation, all of them governed ones. */
  readonly groups: readonly string[];
  /** Groups of this installation whose members, among the provider's users, the provider alone decides. */
  readonly governed: readonly string[];
  /** True if a user is created for an account that no user has. */
  readonly creates: boolean;
  readonly remember: boolean;
  /** As in `SignInRequest`. */
  readonly replaced: string | undefined;
  readonly redirect: string;
  readonly remote: string;
  readonly traceparent: string;
}

/** A user who gave the password to link an account of the provider. */
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

/** A change of a node of the tree; absent members stay as they are. */
export interface NodeChange {
  readonly details?: Partial<Details>;
  readonly groups?: readonly string[];
  /** False takes the role of administrator away; other rights stay as they are. */
  readonly isAdmin?: boolean;
  readonly active?: boolean;
  readonly password?: string;
  /** The caller's present password, which a new password of the caller needs. */
  readonly presentPassword?: string;
}

/** One node of the tree, for callers who may see users. */
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

/** Work that stops when its author is deleted, for the caller who deletes the user. */
export interface AuthoredWork {
  /** One sentence for each kind of work, such as `2 rules stop: …`. */
  endsWith(principal: Principal, username: string): Promise<readonly string[]>;
}

/**
 * Work that continues with the rights its user had when it began, even when the user loses rights. For the caller who
 * deletes a user, or reduces the rights of a user or group.
 */
export interface BegunWork {
  /** In the plural: `job runs`. */
  readonly kind: string;
  /** Names of unfinished work that those users began, as far as the principal may see it. */
  goesOn(principal: Principal, isTheirs: (username: string) => Promise<boolean>): Promise<readonly string[]>;
}

export interface SignInRequest {
  /** If absent or empty: the company before the first dot of `username`, or the installation's only tenant. */
  readonly company?: string;
  readonly username: string;
  readonly password: string;
  /** One-time password or recovery code, for a user with a second factor. */
  readonly code?: string;
  /** True for a session that outlives the browser. */
  readonly remember?: boolean;
  /** Path of a page of this site to open instead of the start page. */
  readonly redirect?: string;
  /** The earlier session of the browser. It ends when the new one is open, because no cookie names it any more. */
  readonly replaced?: string | undefined;
  readonly remote: string;
  readonly traceparent: string;
}

/** Options of a new session, however its user was verified. */
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

/** Shown once. */
export interface NewSecondFactor {
  /** `otpauth://totp/…`: the text of the QR code for authenticators. */
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
  /** Grants like those of `Principal.grants`, each within the grants of the token's owner. */
  readonly scopes: readonly string[];
  readonly days: number;
  readonly remote: string;
}

export interface TokenView {
  /** Identifies it, but cannot be used to sign in. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly createdMs: number;
  readonly expiresMs: number;
  /** Address it was made from. */
  readonly remote: string;
}

export interface SessionView {
  /** Identifies it, but cannot be used to sign in. */
  readonly id: string;
  readonly createdMs: number;
  /** Address it was made from. */
  readonly remote: string;
  /** True for the session of this call. */
  readonly current: boolean;
}

/** Users of all tenants and their sessions. */
export interface Users {
  /**
   * `AppError("denied")` if company, name or password are wrong, without saying which, and for a missing or wrong code
   * after a right password; `limited` after too many failures.
   */
  signIn(request: SignInRequest): Promise<SignedIn>;
  /**
   * Ends a session, on other controllers within `SIGN_IN_CACHE_MS`; an unknown session is no error. Needs no
   * permission, but is refused to a principal that only reads.
   */
  signOut(principal: Principal, session: string): Promise<void>;
  /** Undefined for a session that is unknown or over, or whose user has changed since. */
  bySession(session: string, traceparent: string): Promise<Principal | undefined>;
  /** In the principal's tenant, like all functions below. `AppError("conflict")` if the name is taken. */
  create(principal: Principal, user: NewUser): Promise<User>;
  /**
   * `AppError("not_found")` for an unknown user. Ends the user's sessions when rights or activity change, like
   * `signOut`.
   */
  update(principal: Principal, username: string, change: UserChange): Promise<User>;
  /** Ends the user's sessions, like `signOut`. */
  setPassword(principal: Principal, username: string, password: string): Promise<void>;
  find(principal: Principal, username: string): Promise<User | undefined>;
}
