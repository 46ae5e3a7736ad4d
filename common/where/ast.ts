import type { Span } from "../mql/index.ts";
import type { Pattern } from "../regex/pattern.ts";

export type Comparison = "=" | "!=" | ">" | "<" | ">=" | "<=" | "is" | "isnot" | "contains";
export type Sign = "+" | "-" | "*" | "/" | "%";

/** The syntax tree of a condition on one item. */
export type Where =
  | { readonly kind: "any" | "all"; readonly parts: readonly Where[] }
  | { readonly kind: "compare"; readonly operator: Comparison; readonly left: Where; readonly right: Where }
  | { readonly kind: "match"; readonly left: Where; readonly pattern: Pattern; readonly negated: boolean }
  /** Evaluated from left to right; all signs of a chain have the same precedence. */
  | { readonly kind: "chain"; readonly first: Where; readonly rest: readonly Link[] }
  | { readonly kind: "power"; readonly base: Where; readonly exponent: Where }
  | { readonly kind: "negative"; readonly operand: Where }
  | { readonly kind: "value"; readonly value: string | number | boolean | null }
  /** Names of nested members, the outermost first. */
  | { readonly kind: "field"; readonly path: readonly string[] };

export interface Link {
  readonly sign: Sign;
  readonly operand: Where;
}

export interface WhereToken extends Span {
  /** `name`: in back-ticks. */
  readonly kind: "word" | "name" | "text" | "number" | "sign" | "end";
  /** Without quotes and escapes. */
  readonly text: string;
}
