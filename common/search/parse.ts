import { SEARCH_PARTS_MAX, SEARCH_TEXT_MAX_CHARACTERS } from "../limits.ts";
import type { Alternative, Match, Search, SearchClass, Segment, Test, TestOperator, Word } from "./ast.ts";
import { parseCommand, tooLarge } from "./parse-command.ts";
import { Scanner } from "./scanner.ts";

const TEST = /[\p{L}\p{M}_][\p{L}\p{N}\p{M}_.]*\s*(?:!=|[<>]=?|=)/uy;
const DEBUG = /debug\s*>/iuy;
const OPERATOR = /!=|[<>]=?|=/y;
const BARE_VALUE = /[^|;；]*/uy;
/** Another condition inside an unquoted value, probably meant as a separate condition. */
const NEXT_TEST = /\s[\p{L}_][\p{L}\p{N}_.]*\s*(?:!=|>=|<=|=)/u;

/** Throws `AppError("syntax")` with line, column and the expected tokens. Time is linear in the text. */
export function parseSearch(text: string): Search {
  if (text.length > SEARCH_TEXT_MAX_CHARACTERS)
    throw tooLarge("SEARCH_TEXT_MAX_CHARACTERS", `${SEARCH_TEXT_MAX_CHARACTERS} characters`);
  const scanner = new Scanner(text);
  const debug = scanner.match(DEBUG) !== undefined;
  scanner.skipBlanks();
  const current = scanner.accept("#");
  return { debug, current, class: classPart(scanner), segments: new SegmentReader(scanner).all() };
}

/** A class ends with a colon, a blank or the `|` before the first segment. */
function classPart(scanner: Scanner): SearchClass | undefined {
  const path = scanner.classPath();
  if (path && !scanner.isAtEnd && !scanner.looksAt(/[\s|:]/uy))
    throw scanner.fail('":", "|" or a blank after the class');
  scanner.skipBlanks();
  if (path) scanner.accept(":");
  return path;
}

class SegmentReader {
  readonly #scanner: Scanner;
  readonly #seen = new Set<string>();
  #parts = 0;

  constructor(scanner: Scanner) {
    this.#scanner = scanner;
  }

  all(): readonly Segment[] {
    const scanner = this.#scanner;
    const segments: Segment[] = [];
    for (;;) {
      while (scanner.accept("|")) continue;
      if (scanner.isAtEnd) return segments;
      segments.push(this.#segment());
      if (!scanner.isAtEnd && !scanner.looksAt(/\|/y)) throw scanner.fail('"|" or the end');
    }
  }

  #segment(): Segment {
    const scanner = this.#scanner;
    const start = scanner.at;
    const command = scanner.looksAt(TEST) ? undefined : parseCommand(scanner);
    if (!command) return this.#match();
    for (const name of slots(command)) {
      if (this.#seen.has(name)) {
        scanner.at = start;
        throw scanner.fail(`only one ${name} segment`);
      }
      this.#seen.add(name);
    }
    return command;
  }

  #match(): Match {
    const scanner = this.#scanner;
    const start = scanner.at;
    if (scanner.isAtSeparator) throw scanner.fail("a word or a condition");
    const alternatives = [this.#alternative()];
    while (scanner.accept(";", "；")) if (!scanner.isAtSeparator) alternatives.push(this.#alternative());
    return { kind: "match", alternatives, span: scanner.spanFrom(start) };
  }

  #alternative(): Alternative {
    const scanner = this.#scanner;
    const words: Word[] = [];
    while (!scanner.isAtSeparator) {
      if (++this.#parts > SEARCH_PARTS_MAX)
        throw tooLarge("SEARCH_PARTS_MAX", `${SEARCH_PARTS_MAX} words and conditions`);
      if (scanner.looksAt(TEST)) return { words, test: test(scanner) };
      words.push(scanner.word());
    }
    return { words, test: undefined };
  }
}

/** The slots that a command fills; a search has at most one of each. */
function slots(segment: Segment): readonly string[] {
  if (segment.kind !== "time") return [segment.kind];
  const { when, field } = segment;
  const isAround = when.kind === "within" || (when.kind === "at" && when.within !== undefined);
  const alone =
    when.kind === "within" ? ["within"] : isAround ? ["at", "within"] : when.kind === "at" ? ["at"] : ["at", "within"];
  return field ? [...alone, "for"] : alone;
}

function test(scanner: Scanner): Test {
  const start = scanner.at;
  const field = scanner.field();
  const operator = scanner.match(OPERATOR)?.[0] as TestOperator;
  scanner.skipBlanks();
  const value = scanner.isAtQuote ? scanner.quoted() : bareValue(scanner);
  if (!scanner.isAtSeparator) throw scanner.fail('";", "|" or the end after the value');
  return { field, operator, value, span: scanner.spanFrom(start) };
}

/** Reads up to the next separator, including inner blanks: times and file names may contain them. */
function bareValue(scanner: Scanner): Word {
  const start = scanner.at;
  const text = (scanner.match(BARE_VALUE)?.[0] ?? "").trimEnd();
  const next = NEXT_TEST.exec(text);
  if (next === null && text !== "") return { text, quoted: false, span: { start, end: start + text.length } };
  scanner.at = start + (next ? next.index + 1 : 0);
  throw scanner.fail(
    next ? '"|" between two conditions, or quotes around a value that contains one' : 'a value ("" for the empty text)',
  );
}
