import type { Row } from "../../../common/value.ts";
import type { Permission } from "./names.ts";

/** The caller. Every service function takes one; rights have no other source. */
export interface Principal {
  readonly tenant: string;
  /** The tenant's name space, such as `/matrix`. */
  readonly ospace: string;
  readonly user: string;
  readonly groups: readonly string[];
  /** `area:verb` each; `*` stands for any area or any verb, as in `*:read`. */
  readonly grants: readonly string[];
  /**
   * Rules for reading and changing objects. Among the rules of one group, and among the user's own rules, the rule with
   * the longest matching class path decides; without a match, nothing is open. The groups' rights add up, value by
   * value.
   */
  readonly data: readonly DataRule[];
  /**
   * Paths of scripts and files that are open to the user, each with everything below it; absent: no path is closed.
   * Checked by `pathAllowed`.
   */
  readonly paths?: readonly string[];
  /** Time zone of calendars in statements that name none; absent: the zone of the class, or UTC. */
  readonly timeZone?: string;
  /** W3C trace context of the call, carried into every message, record and log line it causes. */
  readonly traceparent: string;
  /** Address the call came from; absent for calls of the controller itself. */
  readonly remote?: string;
  /** How many scripts wait for this call, each in a host call; absent: none. */
  readonly scriptDepth?: number;
  /** The triggers that caused this work; absent if none did. */
  readonly chain?: TriggerChain;
  /**
   * Present if a token signed the call in: with all grants of its user, or with a part of them. Such a call manages no
   * sessions and tokens of its user. With a part it creates nothing that runs later with all grants.
   */
  readonly byToken?: "whole" | "part";
  /**
   * Id of the only job context open to this principal: a command of a run that signed in by the run's token. It has no
   * other rights.
   */
  readonly context?: string;
  /**
   * The duty of the user under the tenant's policy. Until it is done, the principal has no other rights. `undefined`:
   * none.
   */
  readonly owes?: "password" | "second factor" | undefined;
  /** Reason why this principal only reads, despite other rights of the user: set by `readingOnly`. */
  readonly readsOnlyBecause?: string;
}

/** Triggers that cause one another: a write runs its trigger, which writes and runs the next one, and so on. */
export interface TriggerChain {
  /** Unique in the controller. */
  readonly id: string;
  /** Number of triggers so far. */
  readonly steps: number;
  /** Objects whose end its writes wait for, and objects its triggers were called for: the chain may not write them. */
  readonly holds: readonly string[];
}

export interface DataRule {
  /** Class path; holds for the class and its subclasses. `/` is every class. */
  readonly class: string;
  readonly access: "none" | "read" | "write";
  /** An MQL condition; rows that do not fulfil it do not exist for this principal. */
  readonly where?: string;
  /** Columns that do not exist for this principal. */
  readonly hidden?: readonly string[];
  /** The only columns that exist for this principal; absent: all but the hidden ones. */
  readonly shown?: readonly string[];
  /**
   * Conditions for all classes that have all their fields. A row of such a class must fulfil `where` or one of these.
   */
  readonly anywhere?: readonly FieldCondition[];
  /** The rule opens only rows that fulfil its conditions, and no class without a condition. */
  readonly rowsOnly?: true;
  /** The group that the rule belongs to; rules of different groups add up. Absent: the user's own rule. */
  readonly group?: string;
}

/** An MQL condition and the fields it uses. */
export interface FieldCondition {
  readonly where: string;
  readonly fields: readonly string[];
}

/** Objects of a class that its owner hides from some principals, even if rules open them. */
export interface RowLimit {
  /** The columns that the test needs. */
  readonly columns: readonly string[];
  /** The test for objects the principal may see; `undefined`: it may see all of them. */
  of(principal: Principal): RowTest | undefined;
}

export type RowTest = (values: Row) => boolean;

/**
 * Who may read objects of a class of the platform. It applies to every way of reading: MQL, search, export, `MATCH`,
 * scripts and notifications.
 */
export interface ClassReading {
  /** Permission of the endpoint that answers the same objects. */
  readonly permission: Permission;
  /**
   * Operational data: if a group of the tenant opens the class, its members read it without the permission. A token
   * with a part of its user's rights always needs the permission.
   */
  readonly isOpenToGroups?: true;
  /** Columns that stay hidden without the permission. */
  readonly withheld?: readonly string[];
}

/** Columns that do not exist for a principal. */
export interface HiddenColumns {
  has(column: string): boolean;
  /** 0: none is hidden. */
  readonly size: number;
}

/** Rights of one group on one class: columns of the rows it opens. */
export interface AccessPart {
  readonly writable: boolean;
  /** The rows; absent: all. */
  readonly where: string | undefined;
  readonly hidden: HiddenColumns;
}

/** Rights of one principal on one class, computed from the deciding rules. */
export interface ClassAccess {
  readonly readable: boolean;
  /** True if at least some columns of some rows are writable. */
  readonly writable: boolean;
  /** The rows that exist for the principal at all. */
  readonly where: string | undefined;
  /** Columns that are hidden in every row. */
  readonly hidden: HiddenColumns;
  /**
   * A value is readable if one part has its row and its column. It is writable if such a part is writable, both before
   * and after the write. No part is covered by another one.
   */
  readonly parts: readonly AccessPart[];
}
