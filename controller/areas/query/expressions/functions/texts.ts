import { AppError } from "../../../../../common/errors.ts";
import { QUERY_FUNCTION_TEXT_MAX_CHARACTERS, QUERY_PATTERNS_KEPT_MAX } from "../../../../../common/limits.ts";
import { compilePattern, type Pattern } from "../../../../../common/regex/pattern.ts";
import type { Value } from "../../../../../common/value.ts";
import type { FunctionSpec } from "./function.ts";
import { BOOLEAN, LIST_OF_TEXT, NUMBER, TEXT } from "../kind.ts";

export const TEXT_FUNCTIONS: Readonly<Record<string, FunctionSpec>> = {
  lower: plain("lower('Web-1')", "The text in small letters.", (text) => text.toLowerCase()),
  upper: plain("upper('web-1')", "The text in capital letters.", (text) => text.toUpperCase()),
  trim: plain("trim('  web ')", "The text without blanks at its ends.", (text) => text.trim()),
  length: {
    accepts: ["text"],
    result: NUMBER,
    example: "length('盘 full')",
    about: "How many characters the text has.",
    make:
      () =>
      ([text]) =>
        charactersOf(String(text)),
  },
  substring: {
    accepts: ["text", "number", "number"],
    least: 2,
    result: TEXT,
    example: "substring('web-12', 5, 1)",
    about: "The characters from that place on, counted from 1; at most so many.",
    make:
      () =>
      ([text, from, count = Infinity]) =>
        substring(String(text), Number(from), Number(count)),
  },
  concat: {
    accepts: ["text"],
    repeats: true,
    result: TEXT,
    example: "concat('web-', 12)",
    about: "The texts one behind the other, as `||`.",
    make: () => (values) => boundedText(values.map(String)),
  },
  replace: {
    accepts: ["text", "text", "text"],
    result: TEXT,
    example: "replace('a.b.c', '.', '/')",
    about: "The text with every occurrence of the second replaced by the third.",
    make:
      () =>
      ([text, old, next]) =>
        replaced(String(text), String(old), String(next)),
  },
  split: {
    accepts: ["text", "text"],
    result: LIST_OF_TEXT,
    example: "split('a,b', ',')",
    about: "The parts of the text between the separators, as a list.",
    make:
      () =>
      ([text, separator]) =>
        separator === "" ? [String(text)] : String(text).split(String(separator)),
  },
  regexp_match: {
    accepts: ["text", "text"],
    result: BOOLEAN,
    example: "regexp_match('GET /x 500', ' 5\\d\\d$')",
    about: "Whether the regular expression (RE2) is found in the text.",
    make(constants) {
      const patternFor = patternsOf(constants[1]);
      return ([text, pattern]) => {
        const found = patternFor(String(pattern));
        return found?.fits(String(text)) ? found.test(String(text)) : null;
      };
    },
  },
  regexp_extract: {
    accepts: ["text", "text", "number"],
    least: 2,
    result: TEXT,
    example: "regexp_extract('took=12ms', 'took=(\\d+)')",
    about: "What the regular expression finds first: its first group, or the group of that number; 0 is the whole.",
    make(constants) {
      const patternFor = patternsOf(constants[1]);
      return ([text, pattern, group]) => {
        const found = patternFor(String(pattern));
        if (!found?.fits(String(text))) return null;
        const at = group === undefined ? Math.min(1, found.groupCount) : Number(group);
        return found.captures(String(text))?.[at] ?? null;
      };
    },
  },
};

function plain(example: string, about: string, make: (text: string) => string): FunctionSpec {
  return {
    accepts: ["text"],
    result: TEXT,
    about,
    example,
    make:
      () =>
      ([text]) =>
        make(String(text)),
  };
}

/** Number of characters. A pair of surrogates counts as one. */
export function charactersOf(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length - 1; at += 1) {
    if ((text.codePointAt(at) ?? 0) <= 0xffff) continue;
    count -= 1;
    at += 1;
  }
  return count;
}

/** The characters from place `from`, counted from 1. Places below 1 count, but have no character. */
function substring(text: string, from: number, count: number): string {
  const begin = Math.trunc(from) - 1;
  const end = Math.max(0, begin + Math.trunc(count));
  const isPlain = charactersOf(text) === text.length;
  return isPlain ? text.slice(Math.max(0, begin), end) : [...text].slice(Math.max(0, begin), end).join("");
}

/** Null if the result would be longer than texts may be. */
function replaced(text: string, old: string, next: string): Value {
  if (old === "") return text;
  const parts = text.split(old);
  const length = text.length + (parts.length - 1) * (next.length - old.length);
  return length > QUERY_FUNCTION_TEXT_MAX_CHARACTERS ? null : parts.join(next);
}

/** Joins texts; null if the result would be longer than texts may be. */
export function boundedText(texts: readonly string[]): string | null {
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  return length > QUERY_FUNCTION_TEXT_MAX_CHARACTERS ? null : texts.join("");
}

/** Compiles a constant expression now, and refuses an invalid one. An invalid expression from a row finds nothing. */
function patternsOf(constant: Value | undefined): (source: string) => Pattern | undefined {
  if (typeof constant === "string") {
    const pattern = compilePattern(constant);
    return () => pattern;
  }
  const kept = new Map<string, Pattern | undefined>();
  return (source) => {
    if (kept.has(source)) return kept.get(source);
    if (kept.size >= QUERY_PATTERNS_KEPT_MAX) kept.clear();
    const pattern = patternOf(source);
    kept.set(source, pattern);
    return pattern;
  };
}

function patternOf(source: string): Pattern | undefined {
  try {
    return compilePattern(source);
  } catch (error) {
    if (error instanceof AppError && error.code === "invalid") return undefined;
    throw error;
  }
}
