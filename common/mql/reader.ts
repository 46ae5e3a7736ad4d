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
import type { Select, Span } from "./ast.ts";
import { RESERVED } from "./keywords.ts";
import { Lexer, type Token } from "./lex.ts";
import { errorAt, syntaxError } from "./position.ts";

/** After these a reserved word in front of them can only have been a name. */
const SIGNS_AFTER_NAMES: ReadonlySet<string> = new Set(["=", "!=", "<", ">", "<=", ">=", ",", ")", "."]);
const FOUND_MAX_CHARACTERS = 40;

/** The error of the first run, which is never reported. */
const AGAIN = new AppError("syntax", "[Parser] The text is read once more, to tell what was expected.");

/**
 * Works step by step: between two steps the caller may let others work. Yields how many bytes of what was made the
 * result is going to hold, about.
 */
export type Steps<T> = Generator<number, T, undefined>;

/** What the tree of a text takes for each word or sign of it, about. */
const TREE_TOKEN_BYTES = 128;

/** Where a parser stands in its tokens. */
export class TokenReader {
  readonly #text: string;
  readonly #lexer: Lexer;
  /** Those behind the token that is next which were looked at already. */
  readonly #ahead: Token[] = [];
  /** What was looked for in vain at the current token; kept only in the second run, which makes the message. */
  readonly #missed: Set<string> | undefined;
  /** Where the token before the current one ends. */
  #end: number | undefined;
  #tokens = 0;
  #conditions = 0;
  #textConditions = 0;
  #subSelects = 0;
  #statements = 0;
  #depth = 0;
  #placeholders = 0;
  /** The token that is next. */
  token: Token;
  /** Reads the SELECT of `IN (SELECT …)`; undefined where none may stand. */
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

  /** `AppError("too_large")` where one step of the parser would take too long. */
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

  /** Between two parts of a text that each take little time. */
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

  /** To be called for each comparison. */
  countCondition(): void {
    this.#conditions += 1;
    if (this.#conditions > MQL_CONDITIONS_MAX)
      throw this.tooLarge(`a statement has at most ${MQL_CONDITIONS_MAX} comparisons`, "MQL_CONDITIONS_MAX");
  }

  /** To be called for each of these that looks for words. */
  countTextCondition(): void {
    this.#textConditions += 1;
    if (this.#textConditions <= MQL_TEXT_CONDITIONS_MAX) return;
    throw this.tooLarge(
      `a statement looks for words at most ${MQL_TEXT_CONDITIONS_MAX} times`,
      "MQL_TEXT_CONDITIONS_MAX",
    );
  }

  /** To be called for each SELECT in another one. */
  countSubSelect(): void {
    this.#subSelects += 1;
    if (this.#subSelects <= MQL_SUB_SELECTS_MAX) return;
    throw this.tooLarge(`a statement has at most ${MQL_SUB_SELECTS_MAX} SELECTs inside others`, "MQL_SUB_SELECTS_MAX");
  }

  /** The span from a token's start to the end of what was read. */
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

  /** Takes the slash that a path begins with for the sign of a division: what is behind it is read anew. */
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

  /** Whether a name can begin here; reserved words count when the sign after them leaves no other reading. */
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

  /** Goes one level deeper into something that can contain itself; `leave` comes back. */
  enter(): void {
    this.#depth += 1;
    if (this.#depth <= MQL_NESTING_MAX) return;
    throw this.tooLarge(`nested deeper than ${MQL_NESTING_MAX} levels`, "MQL_NESTING_MAX");
  }

  leave(levels = 1): void {
    this.#depth -= levels;
  }

  /** The error that nothing of what was looked for stands here. */
  fail(...expected: readonly string[]): Error {
    return this.#missed ? this.failAt(this.token, [...this.#missed, ...expected]) : AGAIN;
  }

  /** The same for a token that was read already. */
  failAt(token: Token, expected: readonly string[]): Error {
    if (!this.#missed) return AGAIN;
    return syntaxError(
      this.#text,
      token.start,
      expected.length === 0 ? "something else" : list(expected),
      describe(token),
    );
  }

  tooLarge(complaint: string, limit: string): Error {
    return errorAt(this.#text, this.token.start, { code: "too_large", complaint, details: { limit } });
  }

  complain(offset: number, complaint: string): Error {
    return errorAt(this.#text, offset, { code: "syntax", complaint });
  }
}

/**
 * Reads a text to its end. A text that does not parse is read twice: the second time the reader notes what would have
 * fitted, which the first time costs too much.
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

/** The same for what is read in one step. */
export function readWhole<T>(text: string, parse: (reader: TokenReader) => T): T {
  try {
    return parse(new TokenReader(text, false));
  } catch (error) {
    if (!isAppError(error, "syntax")) throw error;
    return parse(new TokenReader(text, true));
  }
}

/** All steps at once. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** What `parse` reads, once or several times with commas between, at most so often. */
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
  /** What there are too many of. */
  readonly of: string;
  /** Its name in `common/limits`. */
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
