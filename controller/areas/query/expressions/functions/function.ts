import type { Value } from "../../../../../common/value.ts";
import type { Kind } from "../kind.ts";

/**
 * Kind of value that a function takes at one place. `several`: a text, a list or a map. Numbers come as doubles and
 * times as milliseconds. `exact`: a number that stays exact; an integer that a double does not hold comes as decimal
 * text.
 */
export type Accepted = "any" | "number" | "exact" | "text" | "time" | "list" | "map" | "several";

/** Kind that the value at a place had before its conversion. */
export type KindAt = (at: number) => Kind | undefined;

/** A function of one row. It receives only values that are set and of the kinds that it takes. It never throws. */
export interface FunctionSpec {
  /** Kinds of its values, by place. */
  readonly accepts: readonly Accepted[];
  /** Minimum number of values; absent: all are required. */
  readonly least?: number;
  /** True if the last place may be repeated. */
  readonly repeats?: boolean;
  /** The kind of its result. */
  readonly result: Kind | ((given: readonly { readonly kinds: readonly Kind[] }[]) => Kind);
  /** One line for the reference, and a call whose result is shown next to it. */
  readonly about: string;
  readonly example: string;
  /**
   * Makes the function that is called for each row. `constants` are the values that are the same for all rows; throws
   * `AppError("invalid")` for an invalid one. `zone`: time zone of the statement, for functions of the calendar.
   */
  make(constants: readonly (Value | undefined)[], zone?: string): (values: readonly Value[], kindAt: KindAt) => Value;
}
