import type { Value } from "../../../../common/value.ts";
import type { Kind } from "./kind.ts";

/** Undefined: unknown, as about a column that is not set or that the row's class lacks. Only true lets a row pass. */
export type Truth = boolean | undefined;
export type Predicate<R> = (row: R) => Truth;

/** Where a value of a row comes from: a column, or what is computed of several. */
export interface Source<R> {
  /** For messages. */
  readonly label: string;
  /** Every kind the value can have over all rows. */
  readonly kinds: readonly Kind[];
  /** The same for every row, and known before one is there; absent: it depends on the row. */
  readonly constant?: Value;
  /** Null: not set. Undefined: the row's class has no such column. */
  read(row: R): Value | undefined;
  /** One of `kinds`; asked only when the value is set. */
  kind(row: R): Kind;
}
