/** The syntax tree: plain readonly nodes. `span`: position of a node in the text in UTF-16 units, end excluded. */

import type { Span } from "../mql/index.ts";

interface At {
  readonly span: Span;
}

export interface Search {
  /** True if written with a leading `debug>`: also returns how the search runs. */
  readonly debug: boolean;
  /** True if written with a leading `#`: searches only current objects, no earlier versions. */
  readonly current: boolean;
  /** Absent: every class with automatic search. */
  readonly class: SearchClass | undefined;
  /** All must hold. Each kind except `match` occurs at most once; `time` also once as `at …` and once as `within …`. */
  readonly segments: readonly Segment[];
}

export interface SearchClass extends At {
  /** Without a trailing slash. */
  readonly path: string;
  /** True if written with a trailing slash: the class and all its subclasses. */
  readonly subtree: boolean;
}

export type Segment = Match | Top | Sort | Print | Uniq | Group | Time | Delete | Call | Lua;

/** At least one of the alternatives must hold. */
export interface Match extends At {
  readonly kind: "match";
  readonly alternatives: readonly Alternative[];
}

/** All words and the test must hold. There is at least one of them. */
export interface Alternative {
  readonly words: readonly Word[];
  readonly test: Test | undefined;
}

export interface Word extends At {
  readonly text: string;
  /** True: a `*` in the word stands for itself. */
  readonly quoted: boolean;
}

export type TestOperator = "=" | "!=" | ">" | "<" | ">=" | "<=";

export interface Test extends At {
  readonly field: SearchField;
  readonly operator: TestOperator;
  readonly value: Word;
}

export interface SearchField extends At {
  /** A column, then members of a map. */
  readonly parts: readonly string[];
}

export interface Top extends At {
  readonly kind: "top";
  /** -1: all. */
  readonly count: number;
}

export interface Sort extends At {
  readonly kind: "sort";
  readonly items: readonly { readonly field: SearchField; readonly descending: boolean }[];
}

export interface Print extends At {
  readonly kind: "print";
  readonly items: readonly { readonly field: SearchField; readonly alias: string | undefined }[];
}

/** Returns the first row for every combination of values. */
export interface Uniq extends At {
  readonly kind: "uniq";
  readonly fields: readonly SearchField[];
}

/** Returns a row with a `count` for every combination of values. */
export interface Group extends At {
  readonly kind: "group";
  readonly fields: readonly SearchField[];
}

export interface Time extends At {
  readonly kind: "time";
  readonly when: When;
  /** Absent: the time of the latest write. */
  readonly field: SearchField | undefined;
}

export type When =
  | { readonly kind: "period"; readonly name: Period }
  | { readonly kind: "nearest"; readonly duration: Duration }
  | { readonly kind: "within"; readonly duration: Duration }
  | { readonly kind: "window"; readonly from: Moment; readonly to: Moment }
  | { readonly kind: "at"; readonly moment: Moment; readonly within: Duration | undefined };

export type Period =
  | "today"
  | "yesterday"
  | "week"
  | "month"
  | "year"
  | "last day"
  | "last week"
  | "last month"
  | "last year";

export interface Duration {
  readonly amount: number;
  readonly unit: DurationUnit;
}

export type DurationUnit = "second" | "minute" | "hour" | "day" | "week" | "month" | "year";

export interface Moment {
  readonly timeMs: number;
  /** True if given without a time of day. */
  readonly isDay: boolean;
}

export interface Delete extends At {
  readonly kind: "delete";
}

export interface Call extends At {
  readonly kind: "call";
  /** In lower case. The caller that runs the search defines the valid names. */
  readonly name: string;
  /** The JSON object after the name; empty if there is none. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** A computed field. */
export interface Lua extends At {
  readonly kind: "lua";
  readonly field: string;
  readonly source: string;
}
