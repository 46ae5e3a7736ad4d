import { isAppError } from "../errors.ts";
import { MQL_NESTING_MAX } from "../limits.ts";
import type { Span } from "./ast.ts";
import { RESERVED } from "./keywords.ts";
import type { Token } from "./lex.ts";
import { tokenize } from "./lex.ts";
import { errorAt, syntaxError } from "./position.ts";

/** After these a reserved word in front of them can only have been a name. */
const SIGNS_AFTER_NAMES: ReadonlySet<string> = new Set(["=", "!=", "<", ">", "<=", ">=", ",", ")", "."]);
const FOUND_MAX_CHARACTERS = 40;

/** Where a parser stands in its tokens. */
export class TokenReader {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  /** What was looked for in vain at the current token; kept only in the second run, which makes the message. */
  readonly #missed: Set<string> | undefined;
  #at = 0;
  #depth = 0;
  #placeholders = 0;
  /** The token that is next. */
  token: Token;

  constructor(text: string, tokens: readonly Token[], explain: boolean) {
    this.#text = text;
    this.#tokens = tokens;
    this.#missed = explain ? new Set() : undefined;
    this.token = this.peek(0);
  }

  peek(ahead: number): Token {
    const token = this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)];
    if (!token) throw new RangeError("a list of tokens has an end");
    return token;
  }

  advance(): Token {
    const token = this.token;
    this.#at += 1;
    this.token = this.#tokens[this.#at] ?? this.peek(0);
    this.#missed?.clear();
    return token;
  }

  /** The span from a token's start to the end of what was read. */
  spanFrom(start: number): Span {
    return { start, end: this.#at === 0 ? start : (this.#tokens[this.#at - 1]?.end ?? start) };
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
    throw errorAt(this.#text, this.token.start, {
      code: "too_large",
      complaint: `nested deeper than ${MQL_NESTING_MAX} levels`,
    });
  }

  leave(): void {
    this.#depth -= 1;
  }

  /** The error that nothing of what was looked for stands here. */
  fail(...expected: readonly string[]): Error {
    const all = [...(this.#missed ?? []), ...expected];
    return syntaxError(
      this.#text,
      this.token.start,
      all.length === 0 ? "something else" : list(all),
      describe(this.token),
    );
  }

  complain(offset: number, complaint: string): Error {
    return errorAt(this.#text, offset, { code: "syntax", complaint });
  }
}

/**
 * Reads a text to its end. A text that does not parse is read twice: the second time the reader notes what would have fitted, which
 * the first time costs too much.
 */
export function readAll<T>(text: string, parse: (reader: TokenReader) => T): T {
  const tokens = tokenize(text);
  try {
    return parse(new TokenReader(text, tokens, false));
  } catch (error) {
    if (!isAppError(error, "syntax")) throw error;
    return parse(new TokenReader(text, tokens, true));
  }
}

function list(items: readonly string[]): string {
  const unique = [...new Set(items)];
  return unique.length === 1 ? String(unique[0]) : `${unique.slice(0, -1).join(", ")} or ${unique.at(-1)}`;
}

function describe(token: Token): string {
  if (token.kind === "end") return "the end";
  const text = token.text.length > FOUND_MAX_CHARACTERS ? `${token.text.slice(0, FOUND_MAX_CHARACTERS)}…` : token.text;
  return token.kind === "text" ? `'${text}'` : token.kind === "name" ? `\`${text}\`` : text;
}
