/** The caller. Every service function takes one; there is no other source of rights. */
export interface Principal {
  readonly tenant: string;
  /** The tenant's name space, such as `/matrix`. */
  readonly ospace: string;
  readonly user: string;
  readonly groups: readonly string[];
  /** `area:verb` each; `*` stands for any area or any verb, as in `*:read`. */
  readonly grants: readonly string[];
  /**
   * What may be seen and changed of objects. The rule of the longest matching class path decides; without one: nothing.
   */
  readonly data: readonly DataRule[];
  /** W3C trace context of the call, carried into every message, record and log line it causes. */
  readonly traceparent: string;
  /** Address the call came from; absent for calls of the controller itself. */
  readonly remote?: string;
  /** Why this principal reads only, whatever the user may do otherwise: `readingOnly` made it. */
  readonly readsOnlyBecause?: string;
}

/**
 * Every permission there is, as `area:verb`: `read` looks, `write` changes what is kept, `run` makes something happen
 * on hosts. A name that does not stand here does not compile.
 */
export type Permission =
  | "appcontext:read"
  | "appcontext:write"
  | "audit:read"
  | "cluster:read"
  | "config:read"
  | "config:write"
  | "consolelog:read"
  | "consolelog:write"
  | "depots:read"
  | "depots:run"
  | "depots:write"
  | "files:read"
  | "files:write"
  | "hosts:read"
  | "hosts:run"
  | "hosts:write"
  | "jobs:read"
  | "jobs:run"
  | "jobs:write"
  | "notifications:read"
  | "objects:read"
  | "objects:write"
  | "policies:read"
  | "policies:run"
  | "policies:write"
  | "rules:read"
  | "rules:write"
  | "users:read"
  | "tables:read"
  | "tables:write"
  | "tags:read"
  | "tags:write"
  | "users:write";

export interface DataRule {
  /** Class path; holds for the class and its subclasses. `/` is every class. */
  readonly class: string;
  readonly access: "none" | "read" | "write";
  /** An MQL condition; rows that do not fulfil it do not exist for this principal. */
  readonly where?: string;
  /** Columns that do not exist for this principal. */
  readonly hidden?: readonly string[];
}

/** What one principal may do with one class: the rule that decides, made definite. */
export interface ClassAccess {
  readonly readable: boolean;
  readonly writable: boolean;
  readonly where: string | undefined;
  readonly hidden: ReadonlySet<string>;
}
