import type { Value } from "../../../../common/value.ts";
import type { Kind } from "./kind.ts";

/**
 * Undefined means unknown, as for a column that is not set, or that the row's class lacks. Only true lets a row pass.
 */
export type Truth = boolean | undefined;
export type Predicate<R> = (row: R) => Truth;

/** Source of a value for each row: a column, or a computation with several. */
export interface Source<R> {
  /** Name in messages. */
  readonly label: string;
  /** Every kind that the value can have in any row. */
  readonly kinds: readonly Kind[];
  /** The value, if it is the same for every row and known before rows are read; absent: it depends on the row. */
  readonly constant?: Value;
  /** Null: not set. Undefined: the row's class has no such column. */
  read(row: R): Value | undefined;
  /** One of `kinds`. Call it only for a value that is set. */
  kind(row: R): Kind;
}
