import { AppError, isAppError } from "../errors.ts";
import { WHERE_NESTING_MAX, WHERE_PARTS_MAX, WHERE_PATTERNS_MAX, WHERE_TEXT_MAX_CHARACTERS } from "../limits.ts";
import { errorAt, syntaxError } from "../mql/position.ts";
import { compilePattern, type Pattern } from "../regex/pattern.ts";
import type { Comparison, Link, Sign, Where, WhereToken } from "./ast.ts";
import { nextToken } from "./scan.ts";

const COMPARISONS: Readonly<Record<string, Comparison>> = {
  "=": "=",
  "==": "=",
  "!=": "!=",
  ">": ">",
  "<": "<",
  ">=": ">=",
  "<=": "<=",
};
const WORD_COMPARISONS: Readonly<Record<string, Comparison>> = { is: "is", isnot: "isnot", contains: "contains" };
const MATCHES: ReadonlySet<string> = new Set(["~=", "!~="]);
const WORD_VALUES: ReadonlyMap<string, boolean | null> = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
]);
const SUM: ReadonlySet<string> = new Set(["+", "-"]);
const PRODUCT: ReadonlySet<string> = new Set(["*", "/", "%"]);
const OPERAND = "a field or a value";
const FOUND_MAX_CHARACTERS = 40;

/**
 * Parses a condition. Operators from weak to strong: `||`, `&&`, comparisons (one, not a chain), `+ -`, `* / %`, a
 * leading `-`, `^` (right-associative). `AppError("syntax")` with line and column, `AppError("too_large")` beyond a
 * limit.
 */
export function parseWhere(text: string): Where {
  if (text.length > WHERE_TEXT_MAX_CHARACTERS) {
    throw new AppError("too_large", `[Parser] A condition has at most ${WHERE_TEXT_MAX_CHARACTERS} characters.`, {
      details: { limit: "WHERE_TEXT_MAX_CHARACTERS" },
    });
  }
  return new Parser(text).whole();
}

class Parser {
  readonly #text: string;
  #token: WhereToken;
  #parts = 0;
  #patterns = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
    this.#token = nextToken(text, 0);
  }

  whole(): Where {
    const where = this.#any();
    if (this.#token.kind !== "end") throw this.#fail("an operator or the end");
    return where;
  }

  #any(): Where {
    return this.#inside(() => this.#joined("any", "||", () => this.#joined("all", "&&", () => this.#comparison())));
  }

  #joined(kind: "any" | "all", sign: string, part: () => Where): Where {
    const first = part();
    const parts = [first];
    while (this.#accept(sign)) parts.push(part());
    return parts.length === 1 ? first : { kind, parts };
  }

  #comparison(): Where {
    const left = this.#sum();
    const negated = this.#token.text === "!~=";
    if (this.#isMatch()) {
      this.#advance();
      return this.#only({ kind: "match", left, pattern: this.#pattern(), negated });
    }
    const operator = this.#operator();
    if (operator === undefined) return left;
    this.#advance();
    return this.#only({ kind: "compare", operator, left, right: this.#sum() });
  }

  #only(comparison: Where): Where {
    if (this.#isMatch() || this.#operator() !== undefined) throw this.#fail("&&, || or brackets around the comparison");
    return comparison;
  }

  #isMatch(): boolean {
    return this.#token.kind === "sign" && MATCHES.has(this.#token.text);
  }

  #operator(): Comparison | undefined {
    const { kind, text } = this.#token;
    if (kind === "word") return own(WORD_COMPARISONS, text.toLowerCase());
    return kind === "sign" ? own(COMPARISONS, text) : undefined;
  }

  /** Compiled here, so that an invalid expression is reported before the first item is read. */
  #pattern(): Pattern {
    const { kind, start, text } = this.#token;
    if (kind !== "text") throw this.#fail("a regular expression in quotes");
    this.#patterns += 1;
    if (this.#patterns > WHERE_PATTERNS_MAX)
      throw this.#tooLarge(`a condition has at most ${WHERE_PATTERNS_MAX} regular expressions`, "WHERE_PATTERNS_MAX");
    this.#advance();
    try {
      return compilePattern(text);
    } catch (error) {
      if (!isAppError(error)) throw error;
      throw errorAt(this.#text, start, { code: error.code, complaint: error.message.replace(/\.$/, "") });
    }
  }

  #sum(): Where {
    return this.#chain(SUM, () => this.#chain(PRODUCT, () => this.#signed()));
  }

  #chain(signs: ReadonlySet<string>, operand: () => Where): Where {
    const first = operand();
    const rest: Link[] = [];
    while (this.#token.kind === "sign" && signs.has(this.#token.text)) {
      const sign = this.#advance().text as Sign;
      rest.push({ sign, operand: operand() });
    }
    return rest.length === 0 ? first : { kind: "chain", first, rest };
  }

  #signed(): Where {
    if (!this.#accept("-")) return this.#power();
    return { kind: "negative", operand: this.#inside(() => this.#signed()) };
  }

  #power(): Where {
    const base = this.#operand();
    if (!this.#accept("^")) return base;
    return { kind: "power", base, exponent: this.#inside(() => this.#signed()) };
  }

  #operand(): Where {
    const { kind, text } = this.#token;
    if (this.#accept("(")) {
      const inner = this.#any();
      if (!this.#accept(")")) throw this.#fail("an operator or )");
      return inner;
    }
    this.#count();
    if (kind === "text") return { kind: "value", value: this.#advance().text };
    if (kind === "number") return { kind: "value", value: this.#number() };
    const word = kind === "word" ? WORD_VALUES.get(text.toLowerCase()) : undefined;
    if (word !== undefined) {
      this.#advance();
      return { kind: "value", value: word };
    }
    return { kind: "field", path: this.#path() };
  }

  #number(): number {
    const value = Number(this.#token.text);
    if (!Number.isFinite(value)) throw this.#fail("a number that is not so large");
    this.#advance();
    return value;
  }

  #path(): readonly string[] {
    const path = [this.#name(OPERAND)];
    while (this.#accept(".")) {
      if (path.length >= WHERE_NESTING_MAX)
        throw this.#tooLarge(`a field has at most ${WHERE_NESTING_MAX} members inside each other`, "WHERE_NESTING_MAX");
      path.push(this.#name("the name of a member"));
    }
    return path;
  }

  #name(expected: string): string {
    const { kind, text } = this.#token;
    const isIndex = kind === "number" && expected !== OPERAND && /^\d+$/.test(text);
    if (kind !== "name" && kind !== "word" && !isIndex) throw this.#fail(expected);
    return this.#advance().text;
  }

  #accept(sign: string): boolean {
    if (this.#token.kind !== "sign" || this.#token.text !== sign) return false;
    this.#advance();
    return true;
  }

  #advance(): WhereToken {
    const token = this.#token;
    this.#token = nextToken(this.#text, token.end);
    return token;
  }

  #count(): void {
    this.#parts += 1;
    if (this.#parts > WHERE_PARTS_MAX)
      throw this.#tooLarge(`a condition has at most ${WHERE_PARTS_MAX} fields and values`, "WHERE_PARTS_MAX");
  }

  #inside<T>(parse: () => T): T {
    this.#depth += 1;
    if (this.#depth > WHERE_NESTING_MAX)
      throw this.#tooLarge(`at most ${WHERE_NESTING_MAX} brackets stand inside each other`, "WHERE_NESTING_MAX");
    const parsed = parse();
    this.#depth -= 1;
    return parsed;
  }

  #tooLarge(complaint: string, limit: string): AppError {
    return errorAt(this.#text, this.#token.start, { code: "too_large", complaint, details: { limit } });
  }

  #fail(expected: string): AppError {
    const { kind, start, end } = this.#token;
    const found = JSON.stringify(this.#text.slice(start, Math.min(end, start + FOUND_MAX_CHARACTERS)));
    return syntaxError(this.#text, start, expected, kind === "end" ? "the end" : found);
  }
}

function own<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
