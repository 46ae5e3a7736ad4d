import { INDEX_UNION_MAX, SEARCH_WORDS_MAX, TERM_MAX_BYTES } from "../../../../common/limits.ts";
import { searchTokens } from "../../../../common/text/tokens.ts";
import type { Value } from "../../../../common/value.ts";
import type { NumberRange } from "../../../store/objects.ts";
import { PSEUDO_COLUMNS } from "../definitions/definition.ts";
import type { LoadedClass, LoadedColumn } from "../definitions/views.ts";
import type { Pushdown, WordPattern } from "../types.ts";
import { MORE_WORDS_TERM, valueTerm, wordTerm } from "../values/terms.ts";
import { canonicalText, canonicalValue, elementColumn } from "../values/values.ts";

/** Narrowing of a condition by the indexes of one class. All members must hold. */
export interface Narrowing {
  /** Terms of indexed values; an object must have all of them. */
  readonly terms: readonly string[];
  /** Terms of which an object must have at least one. */
  readonly union: TermUnion | undefined;
  readonly words: readonly string[];
  readonly ranges: readonly NumberRange[];
  /** Columns whose terms are among them. */
  readonly columns: readonly LoadedColumn[];
  /** Time range of records, both ends included. */
  readonly time: { readonly fromMs: number; readonly toMs: number };
  readonly used: readonly Pushdown[];
}

export interface TermUnion {
  /**
   * Column of the values. Absent: the terms are words, and the last one marks an object with more words than the index
   * keeps.
   */
  readonly column: LoadedColumn | undefined;
  readonly terms: readonly string[];
}

/** `undefined` when no object of the class can fulfil the condition, because the class lacks one of its columns. */
export function narrow(view: LoadedClass, where: readonly Pushdown[]): Narrowing | undefined {
  const parts = new Parts(view);
  for (const pushdown of where) if (!parts.add(pushdown)) return undefined;
  return parts.done();
}

class Parts {
  readonly #view: LoadedClass;
  readonly #terms: string[] = [];
  readonly #words: string[] = [];
  readonly #ranges: NumberRange[] = [];
  readonly #columns: LoadedColumn[] = [];
  readonly #used: Pushdown[] = [];
  #union: (TermUnion & { readonly pushdown: Pushdown }) | undefined;
  #fromMs = -Infinity;
  #toMs = Infinity;

  constructor(view: LoadedClass) {
    this.#view = view;
  }

  /** False when nothing can match. */
  add(pushdown: Pushdown): boolean {
    if (pushdown.kind === "words") return this.#addWords(pushdown);
    if (pushdown.kind === "pattern") return this.#addPattern(pushdown);
    if (pushdown.kind === "range" && PSEUDO_COLUMNS.has(pushdown.column)) return this.#addTime(pushdown);
    if (PSEUDO_COLUMNS.has(pushdown.column)) return true;
    const column = this.#view.column(pushdown.column) ?? this.#view.recordColumn(pushdown.column);
    if (column === undefined) return false;
    if (pushdown.kind === "range") return this.#addRange(column, pushdown);
    return pushdown.values.length > 0 && this.#addEquals(column, pushdown);
  }

  done(): Narrowing {
    const union = this.#union;
    return {
      terms: this.#terms,
      union: union === undefined ? undefined : { column: union.column, terms: union.terms },
      words: this.#words,
      ranges: this.#ranges,
      columns: union?.column === undefined ? this.#columns : [...this.#columns, union.column],
      time: { fromMs: this.#fromMs, toMs: this.#toMs },
      used: union === undefined ? this.#used : [...this.#used, union.pushdown],
    };
  }

  #addEquals(column: LoadedColumn, pushdown: Pushdown & { readonly kind: "equals" }): boolean {
    const terms = column.indexReady ? equalsTerms(column, pushdown.values) : undefined;
    const [first] = terms ?? [];
    if (terms === undefined || first === undefined || terms.length > INDEX_UNION_MAX) return true;
    if (terms.length === 1) {
      this.#terms.push(first);
      this.#columns.push(column);
      this.#used.push(pushdown);
    } else this.#addUnion({ column, terms, pushdown });
    return true;
  }

  /** Keeps one union only: the caller checks the other conditions. */
  #addUnion(union: TermUnion & { readonly pushdown: Pushdown }): void {
    if (this.#union === undefined || this.#union.terms.length > union.terms.length) this.#union = union;
  }

  #addRange(column: LoadedColumn, pushdown: Pushdown & { readonly kind: "range" }): boolean {
    if (column.slot === undefined || this.#view.kind === "record") return true;
    this.#ranges.push(rangeOf(column.slot, pushdown));
    this.#used.push(pushdown);
    return true;
  }

  #addTime(pushdown: Pushdown & { readonly kind: "range" }): boolean {
    if (this.#view.kind === "record" && (pushdown.column === "vtime" || pushdown.column === "ctime")) {
      this.#fromMs = Math.max(this.#fromMs, pushdown.from ?? -Infinity);
      this.#toMs = Math.min(this.#toMs, pushdown.to ?? Infinity);
      this.#used.push(pushdown);
    } else if (pushdown.column === "vtime") {
      this.#ranges.push(rangeOf(0, pushdown));
      this.#used.push(pushdown);
    }
    return true;
  }

  #addWords(pushdown: Pushdown & { readonly kind: "words" }): boolean {
    const tokens = this.#view.wordsReady ? pushdown.words.flatMap((word) => searchTokens(word) ?? []) : [];
    if (tokens.length === 0) return true;
    const fresh = new Set(tokens.map(wordTerm));
    this.#words.push(...[...fresh].slice(0, SEARCH_WORDS_MAX - this.#words.length));
    this.#used.push(pushdown);
    return true;
  }

  #addPattern(pushdown: WordPattern): boolean {
    if (!this.#view.wordsReady || pushdown.words === undefined) return true;
    this.#addUnion({ column: undefined, terms: [...pushdown.words.map(wordTerm), MORE_WORDS_TERM], pushdown });
    return true;
  }
}

function rangeOf(slot: number, { from, to }: { readonly from?: number; readonly to?: number }): NumberRange {
  const ends = { ...(Number.isFinite(from) ? { from } : {}), ...(Number.isFinite(to) ? { to } : {}) };
  return { slot, ...ends };
}

/**
 * `undefined` if a value is not of the column's type. In that case only the caller can decide which objects equal it.
 */
function equalsTerms(column: LoadedColumn, values: readonly Value[]): readonly string[] | undefined {
  const element = elementColumn(column);
  const terms = new Set<string>();
  for (const value of values) {
    const text = termText(element, value);
    if (text === undefined) return undefined;
    terms.add(valueTerm(column.number, text));
  }
  return [...terms];
}

function termText(element: Parameters<typeof canonicalValue>[0], value: Value): string | undefined {
  try {
    const canonical = canonicalValue(element, value);
    return canonical === undefined ? undefined : canonicalText(canonical);
  } catch {
    return undefined;
  }
}

/** A readable form of a term's condition, for plans. */
export function shortText(values: readonly Value[]): string {
  const text = values.map(canonicalText).join(" or ");
  return text.length <= TERM_MAX_BYTES ? text : `${text.slice(0, TERM_MAX_BYTES)}…`;
}
