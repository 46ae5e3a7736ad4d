import type { Row, Value } from "../../../../common/value.ts";
import type { ClassView } from "./definitions.ts";

/**
 * One object as read. `values` has every set column, also those of `recordColumns`, but no pseudo columns. It also has
 * sealed columns, because owners need them; MQL never sees them.
 */
export interface ObjectRow {
  /** Whole, as in `linux:h1`. */
  readonly id: string;
  readonly class: ClassView;
  readonly values: Row;
  /** Time of the latest write; of a record its own time. */
  readonly vtimeMs: number;
  /** Time of the first insert. */
  readonly ctimeMs: number;
}

/** Names one object. `class` selects one of several classes with the same label. */
export interface ObjectRef {
  readonly id: string;
  readonly class?: string;
}

/**
 * A read. All conditions of `where` must hold. Indexes narrow the read where possible, so it may return more than
 * asked; the caller checks again.
 */
export interface ReadRequest {
  readonly class: string;
  readonly subtree: boolean;
  readonly ids?: readonly string[];
  readonly where?: readonly Pushdown[];
  /** Names of the columns that the caller uses; rows may lack the values of other columns. Absent: all columns. */
  readonly columns?: readonly string[];
  /** Records newest first over all classes of the tree. Entities: no promise of order. */
  readonly newestFirst?: boolean;
  /** Maximum number of rows that the caller will take; only a hint for page sizes. */
  readonly expected?: number;
  /**
   * Reads the state of the objects at that time. Only for classes with `options.version`, from the time when they got
   * it. Otherwise `AppError("invalid")` that names the class.
   */
  readonly asOfMs?: number;
  /** Only `inOrder` and `explain` use it. */
  readonly order?: ReadOrder;
  readonly signal?: AbortSignal;
}

/** Order by the index of a column, or of `vtime` or `mtime`. */
export interface ReadOrder {
  readonly column: string;
  readonly descending: boolean;
  /** First value, included; absent: the first of all. */
  readonly from?: number;
  /** Id of an object whose value is `from`. Objects up to it in the order may be left out. */
  readonly behind?: string;
}

export interface OrderedRequest extends ReadRequest {
  readonly order: ReadOrder;
  /** Number of rows that the caller takes if every row passes. */
  readonly expected: number;
}

export interface OrderedRead {
  /** The objects with a value in the column, in its order. Integers beyond 2^53 have no order among themselves. */
  readonly pages: AsyncIterable<readonly ObjectRow[]>;
  /** True if all pages had objects with equal values by id, in the same direction. See `NumberOrder`. */
  isById(): boolean;
  /** Call after the last page: true if all objects were read and the read was not given up. */
  isWhole(): boolean;
}

/** Objects of a class or tree, to be counted. */
export interface CountRequest extends Pick<ReadRequest, "class" | "subtree" | "where" | "signal"> {
  /** Counts for each value of this column; absent: all together. */
  readonly by?: string;
}

/** A part of a count. One value may have several parts. */
export interface Tally {
  /** The value that is counted. Absent for objects without a value, and if the count is not by value. */
  readonly value?: Value;
  readonly count: number;
}

export interface EdgeRequest {
  /** `out`: edges from the named objects; `in`: edges to them. */
  readonly direction: "out" | "in";
  /** All types when absent. */
  readonly type?: string;
  /**
   * Reads the edges at that time, by the rules of `ReadRequest.asOfMs`. Leaves out edges from or to objects of classes
   * without versions.
   */
  readonly asOfMs?: number;
  readonly signal?: AbortSignal;
}

export interface ObjectEdge {
  readonly type: string;
  /** Whole ids. */
  readonly source: string;
  readonly target: string;
  /** Class paths. They are needed because objects of several classes can have the same id. */
  readonly sourceClass: string;
  readonly targetClass: string;
  /** Time of the write that last made the edge. */
  readonly timeMs: number;
}

export type Pushdown =
  /** The value equals one of `values`. A set, list or map contains one of them as element or key. */
  | { readonly kind: "equals"; readonly column: string; readonly values: readonly Value[] }
  /** Numbers or times in a range that includes both ends; an absent end is open. `vtime`, `ctime` count as columns. */
  | { readonly kind: "range"; readonly column: string; readonly from?: number; readonly to?: number }
  /** Every word occurs in the full text of the object; a word that ends in `*` is a prefix. */
  | { readonly kind: "words"; readonly words: readonly string[] }
  /** A word of the full text matches `pattern`, such as `web*` or `*uie*`. */
  | WordPattern;

export interface WordPattern {
  readonly kind: "pattern";
  /** The pattern in the normal form of words; `*` stands for any text. */
  readonly pattern: string;
  /** All matching words of the index. Absent: they are unknown or too many. Callers do not set it. */
  readonly words?: readonly string[];
}

/** The explanation of a read, for `EXPLAIN`: one line per step, such as `index host = web-1`, `scan of class /x`. */
export interface ReadExplanation {
  readonly steps: readonly string[];
  /** The pushdowns that narrow the read. */
  readonly used: readonly Pushdown[];
}
