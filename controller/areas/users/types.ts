import type { DataRule, Principal, RoleName } from "../permissions/index.ts";

/** A user as others may see one. */
export interface User {
  readonly tenant: string;
  readonly username: string;
  readonly fullname: string;
  readonly groups: readonly string[];
  readonly rights: Rights;
  /** An inactive user cannot sign in, and open sessions end. */
  readonly active: boolean;
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
  readonly rights: Rights;
  readonly fullname?: string;
  readonly groups?: readonly string[];
  readonly active?: boolean;
}

export interface UserChange {
  readonly fullname?: string;
  readonly groups?: readonly string[];
  readonly rights?: Rights;
  readonly active?: boolean;
}

export interface SignInRequest {
  /** The installation's only tenant when absent or empty. */
  readonly company?: string;
  readonly username: string;
  readonly password: string;
  /** A session that outlives the browser. */
  readonly remember?: boolean;
  readonly remote: string;
  readonly traceparent: string;
}

export interface SignedIn {
  readonly session: string;
  /** Present when the client wants the session to outlive the browser. */
  readonly lastingMs?: number;
}

/** Users of all tenants and their sessions. */
export interface Users {
  /**
   * `AppError("denied")` for anything wrong with company, name or password, without saying what; `limited` after too
   * many failures.
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
