import type { Row } from "../../../../common/value.ts";
import type { HiddenColumns, Principal } from "../../permissions/index.ts";
import type { EdgeRequest, ObjectEdge, ObjectRef, ObjectRow, ReadRequest } from "../types.ts";

/**
 * Objects as a principal sees them: the same rows and columns as in a query. Rows that the rules or the owner of a class
 * hide do not exist; values of hidden and sealed columns are absent. Reads are narrowed by the row condition, so an
 * index of its column serves them. `AppError("internal")` when a row condition is invalid.
 */
export interface VisibleObjects {
  /** The objects in the order of `refs`; `undefined` for one that does not exist for the principal. */
  get(principal: Principal, refs: readonly ObjectRef[]): Promise<readonly (VisibleObject | undefined)[]>;
  /**
   * `AppError("not_found")` if the class does not exist for the principal, `AppError("denied")` if it lacks the
   * permission of the class. With `newestFirst`, the order holds within each class.
   */
  read(principal: Principal, request: VisibleRead): AsyncIterable<readonly VisibleObject[]>;
  /** Edges whose ends are both visible, each once, in no order. */
  edges(principal: Principal, refs: readonly ObjectRef[], request: VisibleEdges): AsyncIterable<readonly ObjectEdge[]>;
  /** The rights on one class, for an owner that has its objects at hand. */
  of(principal: Principal, path: string): Promise<VisibleClass>;
  /**
   * The rules alone, for a class whose owner answers calls about its records itself. The owner checks its own
   * permission before, and applies `ClassGuard.limit` itself.
   */
  records(principal: Principal, path: string): Promise<VisibleRecords>;
}

export interface VisibleObject extends ObjectRow {
  /** Columns that do not exist for the principal in this object. Their values are absent. */
  readonly hidden: HiddenColumns;
}

/** `where` only narrows the read: the caller checks again. `AppError("not_found")` for a hidden column in it. */
export interface VisibleRead extends Omit<ReadRequest, "columns" | "order"> {
  /**
   * A test of the whole object, hidden columns included. Only for an owner whose endpoint selects by such columns for
   * every caller; hidden columns are allowed in `where` then.
   */
  readonly selects?: (object: ObjectRow) => boolean;
}

export interface VisibleEdges extends Omit<EdgeRequest, "asOfMs"> {
  /** Called with the number of edges of each page before they are checked, hidden ones included. It may throw. */
  readonly onRead?: (edges: number) => void;
}

type Seen = Omit<ObjectRow, "class">;

/** The rights of a principal on the objects of one class. They are the same as in a query. */
export interface VisibleClass {
  /** Columns that are hidden from the principal in all objects. */
  readonly hidden: HiddenColumns;
  /** True if the object exists for the principal. False for a class that it may not read. */
  sees(object: Seen): boolean;
  /** Columns of that object that do not exist for the principal, or are unset for it. */
  hiddenIn(object: Seen): HiddenColumns;
  /** True if a statement of the principal could write these columns of the object. */
  mayWrite(columns: readonly string[], change: VisibleChange): boolean;
}

/** An object before a write (absent: an insert) and after it (absent: a removal). */
export interface VisibleChange {
  readonly before?: Seen;
  readonly after?: Seen;
}

/** A record as its owner stores and returns it, with the id that it has as an object. */
interface OwnedRecord {
  readonly id: string;
}

/** The records that a principal may see. It sees the same ones by MQL. */
export interface VisibleRecords {
  /** True if the record exists for the principal. `row`: the form of the record in MQL, if it differs. */
  sees(record: OwnedRecord, row?: Row): boolean;
  /** The record without members that are columns hidden from the principal. */
  shown<R extends OwnedRecord>(record: R): R;
}
