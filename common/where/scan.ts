import { number, quoted, wordEnd } from "../mql/lex.ts";
import { syntaxError } from "../mql/position.ts";
import type { WhereToken } from "./ast.ts";

/** A sign comes before the signs that are its beginnings. */
const SIGNS = ["!~=", "||", "&&", "==", "!=", ">=", "<=", "~=", ..."=><+-*/%^()."] as const;
const BLANKS = /\s*/uy;
const DIGIT = /[0-9]/;
const QUOTE = /["'`]/;

/** Reads the token at or after `from`; `end` after the last one. There are no comments: `--1` negates 1 twice. */
export function nextToken(text: string, from: number): WhereToken {
  const start = afterBlanks(text, from);
  if (start >= text.length) return { kind: "end", start, end: start, text: "" };
  const first = text.charAt(start);
  if (QUOTE.test(first)) return quotedToken(text, start);
  if (DIGIT.test(first)) return { ...number(text, start), kind: "number" };
  const end = wordEnd(text, start);
  if (end > start) return { kind: "word", start, end, text: text.slice(start, end) };
  const sign = SIGNS.find((candidate) => text.startsWith(candidate, start));
  if (sign !== undefined) return { kind: "sign", start, end: start + sign.length, text: sign };
  const found = JSON.stringify(String.fromCodePoint(text.codePointAt(start) ?? 0));
  throw syntaxError(text, start, "a field, a value or an operator", `the character ${found}`);
}

function quotedToken(text: string, from: number): WhereToken {
  const { kind, start, end, text: inner } = quoted(text, from, text.charCodeAt(from));
  return { kind: kind === "name" ? "name" : "text", start, end, text: inner };
}

function afterBlanks(text: string, from: number): number {
  BLANKS.lastIndex = from;
  BLANKS.exec(text);
  return BLANKS.lastIndex;
}
