import type { Stamp } from "../../../common/revisions.ts";
import type { DataRule, Principal, RoleName } from "../permissions/index.ts";

export type NodeKind = "usr" | "org";

/** Data of a user or an organisation, except its place and its rights. */
export interface Details {
  readonly firstname: string;
  readonly lastname: string;
  readonly gender: string;
  readonly address: string;
  readonly imaccount: string;
  readonly remark: string;
  /** Intended way to sign in. Stored for clients; the platform ignores it. */
  readonly auth: string;
  readonly email: readonly string[];
  readonly mobile: readonly string[];
  readonly telephone: readonly string[];
  /** Meaning defined by the client. */
  readonly status: number;
  readonly config: Readonly<Record<string, string>>;
}

/** A user without its secret data. */
export interface User {
  readonly tenant: string;
  readonly username: string;
  /** 19 or 20 decimal digits, assigned once. */
  readonly id: string;
  /** Id of the organisation that contains the user. */
  readonly parent: string;
  readonly details: Details;
  /** Full names or ids of the user's groups (`grpset`). */
  readonly groups: readonly string[];
  readonly rights: Rights;
  /** An inactive user cannot sign in. The user's open sessions end when the user is made inactive. */
  readonly active: boolean;
  /** Path of the page that opens after sign-in; absent: the tenant's start page. */
  readonly home?: string;
  readonly createdMs: number;
  readonly changedMs: number;
  readonly stamp?: Stamp | undefined;
}

/** A role that exists in every tenant, or grants given to this user directly. */
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
  /** Claims of the provider. A user that is created for the account gets them as details. */
  readonly profile: {
    readonly username: string | undefined;
    readonly firstname: string | undefined;
    readonly lastname: string | undefined;
    readonly email: string | undefined;
  };
  /** Groups that the provider gives to the account, all of them in `governed`. */
  readonly groups: readonly string[];
  /** Groups whose membership only the provider decides, for its own users. */
  readonly governed: readonly string[];
  /** True if an account without a user gets a new user. */
  readonly creates: boolean;
  readonly remember: boolean;
  /** See `SignInRequest.replaced`. */
  readonly replaced: string | undefined;
  readonly redirect: string;
  readonly remote: string;
  readonly traceparent: string;
}

/** A link in progress: its user has given the password, and the account is not known yet. */
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

export interface MadeOrganization {
  readonly id: string;
  readonly revision: string;
}

export interface UserChange {
  readonly details?: Partial<Details>;
  readonly groups?: readonly string[];
  readonly rights?: Rights;
  readonly active?: boolean;
}

/** A change of a node of the tree; absent members stay unchanged. */
export interface NodeChange {
  readonly details?: Partial<Details>;
  readonly groups?: readonly string[];
  /** False takes away the role of administrator; other rights stay. */
  readonly isAdmin?: boolean;
  readonly active?: boolean;
  readonly password?: string;
  /** The caller's current password. Required if the caller sets a new password for itself. */
  readonly presentPassword?: string;
}

/** One node of the tree, as callers with the permission to read users get it. */
export interface UserNode extends Details {
  readonly id: string;
  /** `/` for the root. */
  readonly username: string;
  /** Path of the node from the root. */
  readonly fullname: string;
  /** Path of the organisation that contains the node; empty for the root. */
  readonly parent: string;
  readonly otype: NodeKind;
  readonly isadmin: boolean;
  readonly isactive: boolean;
  readonly wechat: string;
  readonly grpset: readonly string[];
  /** Absent for an organisation that the caller sees only as the way to nodes below it. */
  readonly revision?: string;
  /** Nodes below this one: organisations first, each kind sorted by name. */
  readonly nodes: readonly UserNode[];
}

/** Work that stops when its author is deleted. Asked when a user is deleted. */
export interface AuthoredWork {
  /** One sentence for each kind of work, such as `2 rules stop: …`. */
  endsWith(principal: Principal, username: string): Promise<readonly string[]>;
}

/**
 * Work that keeps the rights its user had when it began, even if the user loses rights. Asked when a user is deleted,
 * or when a user or group loses rights.
 */
export interface BegunWork {
  /** Name of the kind of work in messages, in the plural: `job runs`. */
  readonly kind: string;
  /**
   * Names of unfinished work begun by users for whom `isTheirs` answers true. Includes only work that the principal may
   * see.
   */
  goesOn(principal: Principal, isTheirs: (username: string) => Promise<boolean>): Promise<readonly string[]>;
}

export interface SignInRequest {
  /** If absent or empty: the company before the first dot of `username`, or the installation's only tenant. */
  readonly company?: string;
  readonly username: string;
  readonly password: string;
  /** One-time password or recovery code, for a user with a second factor. */
  readonly code?: string;
  /** True for a session that continues after the browser is closed. */
  readonly remember?: boolean;
  /** Path of a page of this site to open instead of the start page. */
  readonly redirect?: string;
  /** The earlier session of the browser. It ends when the new session is open, because no cookie names it any more. */
  readonly replaced?: string | undefined;
  readonly remote: string;
  readonly traceparent: string;
}

/** Options of a new session, independent of the way the user was verified. */
export type Opening = Pick<SignInRequest, "remember" | "redirect" | "replaced" | "remote">;

/** The second step of a sign-in: a ticket and a code, without the password. */
export interface CodeRequest {
  readonly ticket: string;
  readonly code: string;
  /** See `SignInRequest.replaced`. */
  readonly replaced?: string | undefined;
  readonly remote: string;
  readonly traceparent: string;
}

/** A new second factor, shown once. */
export interface NewSecondFactor {
  /** `otpauth://totp/…`: the text of the QR code for authenticators. */
  readonly uri: string;
  /** The same secret in base32, to be typed. */
  readonly secret: string;
}

export interface SignedIn {
  readonly session: string;
  /** Present if the client wants the session to continue after the browser is closed. */
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
  /** Identifies the token, but cannot be used to sign in. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly createdMs: number;
  readonly expiresMs: number;
  /** Address of the client that created the token. */
  readonly remote: string;
}

export interface SessionView {
  /** Identifies the session, but cannot be used to sign in. */
  readonly id: string;
  readonly createdMs: number;
  /** Address of the client that opened the session. */
  readonly remote: string;
  /** True for the session of this call. */
  readonly current: boolean;
}

/** Users of all tenants and their sessions. */
export interface Users {
  /**
   * `AppError("denied")` if company, name or password are wrong, without saying which, or if the code is missing or
   * wrong after a right password. `AppError("limited")` after too many failures.
   */
  signIn(request: SignInRequest): Promise<SignedIn>;
  /**
   * Ends a session; other controllers refuse it within `SIGN_IN_CACHE_MS`. An unknown session is no error. Needs no
   * permission, but is refused to a read-only principal.
   */
  signOut(principal: Principal, session: string): Promise<void>;
  /** Answers the user of a session. Undefined for an unknown or ended session, or if the user has changed since. */
  bySession(session: string, traceparent: string): Promise<Principal | undefined>;
  /**
   * Creates a user. `AppError("conflict")` if the name is taken. This function and those below use the principal's
   * tenant.
   */
  create(principal: Principal, user: NewUser): Promise<User>;
  /**
   * Changes a user. `AppError("not_found")` for an unknown user. If rights or activity change, the user's sessions end
   * as with `signOut`.
   */
  update(principal: Principal, username: string, change: UserChange): Promise<User>;
  /** Sets the password. The user's sessions end as with `signOut`. */
  setPassword(principal: Principal, username: string, password: string): Promise<void>;
  find(principal: Principal, username: string): Promise<User | undefined>;
}
