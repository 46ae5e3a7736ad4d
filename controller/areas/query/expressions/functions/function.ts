import type { Value } from "../../../../../common/value.ts";
import type { Kind } from "../kind.ts";

/**
 * Kind of value that a function takes at one place; `several`: a text, a list or a map. Numbers come as doubles, those
 * of `exact` as they are (whole numbers that no double holds as decimal text), times as milliseconds.
 */
export type Accepted = "any" | "number" | "exact" | "text" | "time" | "list" | "map" | "several";

/** The kind that the value at a place had before it was converted. */
export type KindAt = (at: number) => Kind | undefined;

/** A function of one row. It is given values that are set and of the kinds it takes, and never throws. */
export interface FunctionSpec {
  /** Kinds of its values, place by place. */
  readonly accepts: readonly Accepted[];
  /** How many values it needs; all when absent. */
  readonly least?: number;
  /** The last place may be repeated. */
  readonly repeats?: boolean;
  /** The kind of its result. */
  readonly result: Kind | ((given: readonly { readonly kinds: readonly Kind[] }[]) => Kind);
  /** One line for the reference, and a call whose result is shown next to it. */
  readonly about: string;
  readonly example: string;
  /**
   * Makes the function for each row. `constants` are the values that are the same for all rows; throws
   * `AppError("invalid")` for one that cannot be used. `zone` is that of the statement, for functions of the calendar.
   */
  make(constants: readonly (Value | undefined)[], zone?: string): (values: readonly Value[], kindAt: KindAt) => Value;
}
