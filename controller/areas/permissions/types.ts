import type { Row } from "../../../common/value.ts";
import type { Permission } from "./names.ts";

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
   * What may be seen and changed of objects. Among the rules of one group, and among those of none, the one of the
   * longest matching class path decides; without one: nothing. What the groups open adds up, value by value.
   */
  readonly data: readonly DataRule[];
  /**
   * Paths of scripts and files, each with all below it, that are open to the user; absent: no path is closed. Asked by
   * `pathAllowed`.
   */
  readonly paths?: readonly string[];
  /** The zone of calendars in statements that name none; absent: that of the class, or else UTC. */
  readonly timeZone?: string;
  /** W3C trace context of the call, carried into every message, record and log line it causes. */
  readonly traceparent: string;
  /** Address the call came from; absent for calls of the controller itself. */
  readonly remote?: string;
  /** How many scripts wait for this call, each in a host call; absent: none. */
  readonly scriptDepth?: number;
  /** The triggers whose work this is; absent for the work of others. */
  readonly chain?: TriggerChain;
  /**
   * A token signed the call in, with all grants of its user or with a part of them: it manages no sessions and tokens of
   * its user, and with a part it leaves nothing that runs later with all of them.
   */
  readonly byToken?: "whole" | "part";
  /**
   * The id of the one job context that is open to a command of a run, which signed in by the token of its run and has no
   * other rights.
   */
  readonly context?: string;
  /**
   * What the user has to do before anything else, by the policy of the tenant: such a principal has no other rights.
   * `undefined`: nothing.
   */
  readonly owes?: "password" | "second factor" | undefined;
  /** Why this principal reads only, whatever the user may do otherwise: `readingOnly` made it. */
  readonly readsOnlyBecause?: string;
}

/** Triggers that run one by the other: a write, its trigger, what that writes, and so on. */
export interface TriggerChain {
  /** Unique in the controller. */
  readonly id: string;
  /** Number of triggers so far. */
  readonly steps: number;
  /** Objects that its writes wait for the end of, and those its triggers were called for: it may not write them. */
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
  /** Conditions that are asked of classes which have all their fields; a row of these fulfils `where` or one of them. */
  readonly anywhere?: readonly FieldCondition[];
  /** The rule opens the rows of its conditions, and no class for which it has none. */
  readonly rowsOnly?: true;
  /** Whose rule it is: rules of different groups add up. Absent: the user's own. */
  readonly group?: string;
}

/** An MQL condition with the fields it is about. */
export interface FieldCondition {
  readonly where: string;
  readonly fields: readonly string[];
}

/** Objects of a class that its owner closes to some principals, whatever rules open: they do not exist for these. */
export interface RowLimit {
  /** The columns it follows from. */
  readonly columns: readonly string[];
  /** Whether an object of these values exists for the principal; `undefined`: all of them do. */
  of(principal: Principal): RowTest | undefined;
}

export type RowTest = (values: Row) => boolean;

/**
 * A class of the platform says by it who reads its objects. It holds for every way: MQL, search, export, `MATCH`,
 * scripts and notifications.
 */
export interface ClassReading {
  /** The endpoint that answers such objects asks for the same. */
  readonly permission: Permission;
  /**
   * Operational data: a group of the tenant that opens the class opens it to its members without the permission. A token
   * with a part of its user's rights always takes the permission.
   */
  readonly isOpenToGroups?: true;
  /** Without the permission these columns stay closed. */
  readonly withheld?: readonly string[];
}

/** Columns that do not exist for a principal. */
export interface HiddenColumns {
  has(column: string): boolean;
  /** 0: none is hidden. */
  readonly size: number;
}

/** What one group opens of one class: its columns of its rows. */
export interface AccessPart {
  readonly writable: boolean;
  /** The rows; absent: all. */
  readonly where: string | undefined;
  readonly hidden: HiddenColumns;
}

/** What one principal may do with one class: the rules that decide, made definite. */
export interface ClassAccess {
  readonly readable: boolean;
  /** At least some columns of some rows. */
  readonly writable: boolean;
  /** The rows that exist for the principal at all. */
  readonly where: string | undefined;
  /** Columns that exist for the principal in no row. */
  readonly hidden: HiddenColumns;
  /**
   * A value is seen when one part has its row and its column, and written when such a part is writable, before and
   * after. None that another one covers.
   */
  readonly parts: readonly AccessPart[];
}
