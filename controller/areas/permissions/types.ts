import type { Row } from "../../../common/value.ts";
import type { Permission } from "./names.ts";

/** The caller. Every service function takes one, and rights have no other source. */
export interface Principal {
  readonly tenant: string;
  /** The tenant's name space, such as `/matrix`. */
  readonly ospace: string;
  readonly user: string;
  readonly groups: readonly string[];
  /** Each is `area:verb`; `*` stands for any area or any verb, as in `*:read`. */
  readonly grants: readonly string[];
  /**
   * Rules for reading and changing objects. Within the rules of one group, and within the user's own rules, the rule
   * with the longest matching class path decides. If no rule matches, nothing is open. The rights of several groups add
   * up, for each value separately.
   */
  readonly data: readonly DataRule[];
  /**
   * Paths of scripts and files that are open to the user, each with everything below it. Absent: all paths are open.
   * Checked by `pathAllowed`.
   */
  readonly paths?: readonly string[];
  /** Time zone for days and weeks in statements that name none; absent: the zone of the class, or UTC. */
  readonly timeZone?: string;
  /** W3C trace context of the call. Every message, record and log line that the call causes contains it. */
  readonly traceparent: string;
  /** Address the call came from; absent for calls of the controller itself. */
  readonly remote?: string;
  /** Number of scripts that wait for this call, each in a host call; absent: none. */
  readonly scriptDepth?: number;
  /** The triggers that caused this work; absent if none did. */
  readonly chain?: TriggerChain;
  /**
   * Present if the call signed in by a token: `whole` if the token has all grants of its user, `part` if it has fewer.
   * Such a call cannot manage sessions and tokens of its user. With `part`, it cannot create work that runs later with
   * all grants.
   */
  readonly byToken?: "whole" | "part";
  /** Name of that token, for errors; absent for a token of an earlier version. */
  readonly tokenName?: string;
  /**
   * Id of the only job context that this principal may use. Present for a command of a job run that signed in by the
   * token of its run. Such a principal has no other rights.
   */
  readonly context?: string;
  /**
   * The sign-in requirement that the user must fulfil first, by the policy of the tenant. Until then the principal has
   * no other rights. `undefined`: none.
   */
  readonly owes?: "password" | "second factor" | undefined;
  /** Set by `readingOnly`: the reason why this principal may only read, although the user may have more rights. */
  readonly readsOnlyBecause?: string;
}

/** Triggers that cause each other: a trigger writes an object, this write starts the next trigger, and so on. */
export interface TriggerChain {
  /** Unique in the controller. */
  readonly id: string;
  /** Number of triggers in the chain so far. */
  readonly steps: number;
  /**
   * Keys of objects whose write waits for a trigger of the chain, and of objects for which a trigger of it was called.
   * The chain may not write these objects.
   */
  readonly holds: readonly string[];
}

export interface DataRule {
  /** Class path. The rule applies to the class and its subclasses. `/` means every class. */
  readonly class: string;
  readonly access: "none" | "read" | "write";
  /** An MQL condition; rows that do not fulfil it do not exist for this principal. */
  readonly where?: string;
  /** Columns that do not exist for this principal. */
  readonly hidden?: readonly string[];
  /** The only columns that exist for this principal; absent: all except the hidden ones. */
  readonly shown?: readonly string[];
  /**
   * Conditions for every class that has all fields of the condition. A row of such a class must fulfil `where` or one
   * of these.
   */
  readonly anywhere?: readonly FieldCondition[];
  /** True: the rule opens only rows that fulfil its conditions. A class to which no condition applies stays closed. */
  readonly rowsOnly?: true;
  /** The group to which the rule belongs; rules of different groups add up. Absent: it is the user's own rule. */
  readonly group?: string;
}

/** An MQL condition and the fields it uses. */
export interface FieldCondition {
  readonly where: string;
  readonly fields: readonly string[];
}

/** Hides some objects of a class from some principals, even if rules open them. Set by the owner of the class. */
export interface RowLimit {
  /** The columns that the test needs. */
  readonly columns: readonly string[];
  /** A test that is true for the objects that the principal may see; `undefined`: it may see all of them. */
  of(principal: Principal): RowTest | undefined;
}

export type RowTest = (values: Row) => boolean;

/**
 * Permission for reading objects of a class of the platform. It applies to every way of reading: MQL, search, export,
 * `MATCH`, scripts and notifications.
 */
export interface ClassReading {
  /** The permission of the endpoint that answers the same objects. */
  readonly permission: Permission;
  /**
   * True for operational data: if a group of the tenant opens the class, its members may read it without the
   * permission. A token with a part of its user's rights always needs the permission.
   */
  readonly isOpenToGroups?: true;
  /** Columns that stay hidden without the permission. */
  readonly withheld?: readonly string[];
}

/** Columns that do not exist for a principal. */
export interface HiddenColumns {
  has(column: string): boolean;
  /** 0 if no column is hidden. */
  readonly size: number;
}

/** Rights of one group, or of the user's own rules, on one class: the rows it opens and the columns hidden in them. */
export interface AccessPart {
  readonly writable: boolean;
  /** Condition that the rows fulfil; absent: all rows. */
  readonly where: string | undefined;
  readonly hidden: HiddenColumns;
}

/** Rights of one principal on one class, computed from the rules that decide. */
export interface ClassAccess {
  readonly readable: boolean;
  /** True if at least some columns of some rows are writable. */
  readonly writable: boolean;
  /** Condition that all visible rows fulfil; absent: all rows. */
  readonly where: string | undefined;
  /** Columns that are hidden in every row. */
  readonly hidden: HiddenColumns;
  /**
   * A value is readable if one part opens both its row and its column. It is writable if such a part is writable, both
   * before and after the write. No part is covered by another one.
   */
  readonly parts: readonly AccessPart[];
}
