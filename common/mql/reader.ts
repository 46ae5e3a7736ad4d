import { AppError, isAppError } from "../errors.ts";
import {
  MQL_CONDITIONS_MAX,
  MQL_NESTING_MAX,
  MQL_STATEMENTS_MAX,
  MQL_STEP_TOKENS_MAX,
  MQL_SUB_SELECTS_MAX,
  MQL_TEXT_CONDITIONS_MAX,
} from "../limits.ts";
import { beginningOf } from "../text/cut.ts";
import { nearestName, withNearest } from "../text/nearest.ts";
import type { Select, Span } from "./ast.ts";
import { RESERVED } from "./keywords.ts";
import { Lexer, type Token } from "./lex.ts";
import { errorAt, syntaxError } from "./position.ts";

/** Signs after which a preceding reserved word can only be a name. */
const SIGNS_AFTER_NAMES: ReadonlySet<string> = new Set(["=", "!=", "<", ">", "<=", ">=", ",", ")", "."]);
const FOUND_MAX_CHARACTERS = 40;

/** Error of the first pass, which is never reported. */
const AGAIN = new AppError("syntax", "[Parser] The text is read once more, to tell what was expected.");

/**
 * A computation in steps; between two steps the caller may let others work. Yields the approximate number of bytes that
 * the result gains in the step.
 */
export type Steps<T> = Generator<number, T, undefined>;

/** Approximate memory of a syntax tree per token. */
const TREE_TOKEN_BYTES = 128;

/** Position of a parser in its tokens. */
export class TokenReader {
  readonly #text: string;
  readonly #lexer: Lexer;
  /** Tokens after the next one that were already read. */
  readonly #ahead: Token[] = [];
  /** Tokens expected at the current position but not found. Kept only in the second pass, which creates the message. */
  readonly #missed: Set<string> | undefined;
  /** End of the token before the current one. */
  #end: number | undefined;
  #tokens = 0;
  #conditions = 0;
  #textConditions = 0;
  #subSelects = 0;
  #statements = 0;
  #depth = 0;
  #placeholders = 0;
  /** The next token. */
  token: Token;
  /** Parses the SELECT of `IN (SELECT …)`; `undefined` where none is allowed. */
  subSelect: ((reader: TokenReader) => Select) | undefined = undefined;

  constructor(text: string, explain: boolean) {
    this.#text = text;
    this.#lexer = new Lexer(text);
    this.#missed = explain ? new Set() : undefined;
    this.token = this.#lexer.next();
  }

  peek(ahead: number): Token {
    if (ahead === 0) return this.token;
    while (this.#ahead.length < ahead) this.#ahead.push(this.#lexer.next());
    return this.#ahead[ahead - 1] ?? this.token;
  }

  /** Throws `AppError("too_large")` if one step of the parser would take too long. */
  advance(): Token {
    const token = this.token;
    this.#tokens += 1;
    if (this.#tokens > MQL_STEP_TOKENS_MAX) {
      throw this.tooLarge(
        `a statement, or a row of INSERT, has at most ${MQL_STEP_TOKENS_MAX} words and signs`,
        "MQL_STEP_TOKENS_MAX",
      );
    }
    this.#end = token.end;
    this.token = this.#ahead.shift() ?? this.#lexer.next();
    this.#missed?.clear();
    return token;
  }

  /** Call between two parts of a text that each take little time. */
  *step(): Steps<void> {
    const tokens = this.#tokens;
    this.#tokens = 0;
    this.#conditions = 0;
    this.#textConditions = 0;
    this.#subSelects = 0;
    yield tokens * TREE_TOKEN_BYTES;
  }

  countStatement(): void {
    this.#statements += 1;
    if (this.#statements > MQL_STATEMENTS_MAX)
      throw this.tooLarge(`a text has at most ${MQL_STATEMENTS_MAX} statements`, "MQL_STATEMENTS_MAX");
  }

  /** Call for each comparison. */
  countCondition(): void {
    this.#conditions += 1;
    if (this.#conditions > MQL_CONDITIONS_MAX)
      throw this.tooLarge(`a statement has at most ${MQL_CONDITIONS_MAX} comparisons`, "MQL_CONDITIONS_MAX");
  }

  /** Call for each comparison that searches for words. */
  countTextCondition(): void {
    this.#textConditions += 1;
    if (this.#textConditions <= MQL_TEXT_CONDITIONS_MAX) return;
    throw this.tooLarge(
      `a statement looks for words at most ${MQL_TEXT_CONDITIONS_MAX} times`,
      "MQL_TEXT_CONDITIONS_MAX",
    );
  }

  /** Call for each nested SELECT. */
  countSubSelect(): void {
    this.#subSelects += 1;
    if (this.#subSelects <= MQL_SUB_SELECTS_MAX) return;
    throw this.tooLarge(`a statement has at most ${MQL_SUB_SELECTS_MAX} SELECTs inside others`, "MQL_SUB_SELECTS_MAX");
  }

  /** The span from `start` to the end of the last token read. */
  spanFrom(start: number): Span {
    return { start, end: this.#end ?? start };
  }

  isKeyword(keyword: string): boolean {
    return this.token.keyword === keyword;
  }

  accept(keyword: string): boolean {
    if (this.token.keyword === keyword) {
      this.advance();
      return true;
    }
    this.#missed?.add(keyword);
    return false;
  }

  expect(keyword: string): void {
    if (!this.accept(keyword)) throw this.fail();
  }

  isSign(sign: string): boolean {
    return this.token.kind === "sign" && this.token.text === sign;
  }

  acceptSign(sign: string): boolean {
    if (this.isSign(sign)) {
      this.advance();
      return true;
    }
    this.#missed?.add(`"${sign}"`);
    return false;
  }

  expectSign(sign: string): void {
    if (!this.acceptSign(sign)) throw this.fail();
  }

  /** Reads the slash at the start of a path as a division sign; the rest of the path is tokenized again. */
  divide(): void {
    const { start } = this.token;
    this.#lexer.turnTo(start + 1);
    this.#ahead.length = 0;
    this.advance();
    this.#end = start + 1;
  }

  acceptText(): string | undefined {
    if (this.token.kind === "text") return this.advance().text;
    this.#missed?.add("a quoted text");
    return undefined;
  }

  expectText(): string {
    const text = this.acceptText();
    if (text === undefined) throw this.fail();
    return text;
  }

  /** Returns true if a name can begin here. A reserved word is a name if the next sign allows nothing else. */
  isName(): boolean {
    const { kind, keyword } = this.token;
    if (kind === "name") return true;
    if (kind !== "word") return false;
    return keyword === "" || !RESERVED.has(keyword) || this.#nameSignFollows();
  }

  #nameSignFollows(): boolean {
    const next = this.peek(1);
    return next.kind === "sign" && SIGNS_AFTER_NAMES.has(next.text);
  }

  expectName(what: string): string {
    if (!this.isName()) throw this.fail(what);
    return this.advance().text;
  }

  get placeholders(): number {
    return this.#placeholders;
  }

  nextPlaceholder(): number {
    this.#placeholders += 1;
    return this.#placeholders - 1;
  }

  /** Enters one level of a construct that can contain itself; `leave` returns. */
  enter(): void {
    this.#depth += 1;
    if (this.#depth <= MQL_NESTING_MAX) return;
    throw this.tooLarge(`nested deeper than ${MQL_NESTING_MAX} levels`, "MQL_NESTING_MAX");
  }

  leave(levels = 1): void {
    this.#depth -= levels;
  }

  /** The error that none of the expected tokens is here. */
  fail(...expected: readonly string[]): Error {
    return this.#missed ? this.failAt(this.token, [...this.#missed, ...expected]) : AGAIN;
  }

  /** As `fail`, for a token that was already read. */
  failAt(token: Token, expected: readonly string[]): Error {
    if (!this.#missed) return AGAIN;
    const error = syntaxError(
      this.#text,
      token.start,
      expected.length === 0 ? "something else" : list(expected),
      describe(token),
    );
    return token.kind === "word" && token.keyword === "" ? withKeyword(error, token.text, expected) : error;
  }

  tooLarge(complaint: string, limit: string): Error {
    return errorAt(this.#text, this.token.start, { code: "too_large", complaint, details: { limit } });
  }

  complain(offset: number, complaint: string): Error {
    return errorAt(this.#text, offset, { code: "syntax", complaint });
  }
}

/** Words that can begin a statement. */
const STATEMENT_WORDS = [
  "SELECT",
  "INSERT",
  "UPDATE",
  "DELETE",
  "CREATE",
  "DROP",
  "ALTER",
  "MATCH",
  "BEGIN",
  "EXPLAIN",
];

/** The error with a question about the nearest of the expected keywords; the error itself if none is near. */
function withKeyword(error: AppError, word: string, expected: readonly string[]): AppError {
  const keywords = expected.flatMap((one) =>
    one === "a statement" ? STATEMENT_WORDS : /^[A-Z]{3,}$/.test(one) ? [one] : [],
  );
  if (nearestName(word, keywords) === undefined) return error;
  const details = { ...error.details, unknown: word };
  return withNearest(new AppError(error.code, error.message, { details }), keywords);
}

/**
 * Parses a text to its end. A text that does not parse is read twice: the second pass records the expected tokens,
 * which would be too slow in the first.
 */
export function* readAll<T>(text: string, parse: (reader: TokenReader) => Steps<T>): Steps<T> {
  try {
    return yield* parse(new TokenReader(text, false));
  } catch (error) {
    if (!isAppError(error, "syntax")) throw error;
    yield 0;
    return yield* parse(new TokenReader(text, true));
  }
}

/** As `readAll`, for a text that is parsed in one step. */
export function readWhole<T>(text: string, parse: (reader: TokenReader) => T): T {
  try {
    return parse(new TokenReader(text, false));
  } catch (error) {
    if (!isAppError(error, "syntax")) throw error;
    return parse(new TokenReader(text, true));
  }
}

/** Runs all steps at once. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Parses one or more items separated by commas, at most `bound.most`. */
export function listOf<T>(reader: TokenReader, parse: (reader: TokenReader) => T, bound: ListBound): readonly T[] {
  const items = [parse(reader)];
  while (reader.acceptSign(",")) {
    if (items.length >= bound.most) throw reader.tooLarge(`at most ${bound.most} ${bound.of}`, bound.limit);
    items.push(parse(reader));
  }
  return items;
}

export interface ListBound {
  readonly most: number;
  /** Name of the items, for the message. */
  readonly of: string;
  /** Name of the limit in `common/limits`. */
  readonly limit: string;
}

function list(items: readonly string[]): string {
  const unique = [...new Set(items)];
  return unique.length === 1 ? String(unique[0]) : `${unique.slice(0, -1).join(", ")} or ${unique.at(-1)}`;
}

function describe(token: Token): string {
  if (token.kind === "end") return "the end";
  const text =
    token.text.length > FOUND_MAX_CHARACTERS ? `${beginningOf(token.text, FOUND_MAX_CHARACTERS)}…` : token.text;
  return token.kind === "text" ? `'${text}'` : token.kind === "name" ? `\`${text}\`` : text;
}
