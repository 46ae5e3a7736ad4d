import { MQL_EXPRESSION_OPERANDS_MAX } from "../limits.ts";
import type { Branch, Call, Case, Condition, Field, Operand } from "./ast.ts";
import { RESERVED } from "./keywords.ts";
import { parseField } from "./parse-field.ts";
import { beginsValue, parseValue } from "./parse-value.ts";
import type { TokenReader } from "./reader.ts";
import { isValueNode } from "./walk.ts";

/** Parsers of conditions that the parser of expressions calls, because each may contain the other. */
export interface Grammar {
  /** Parses an expression, or a condition as `Truth`. */
  readonly any: (reader: TokenReader) => Operand;
  readonly condition: (reader: TokenReader) => Condition;
}

/** Functions that aggregate rows. Every other name is a function of one row. */
const AGGREGATES: ReadonlySet<string> = new Set(
  "count min max sum avg first last rate stddev percentile top histogram".split(" "),
);
/** The only reserved word that is also a function. */
const CALLED: ReadonlySet<string> = new Set(["CONTAINS"]);
const A_VALUE = "a value, or a column in brackets,";

/** Parses sums, differences and concatenations of products, without comparisons. */
export function parseSum(reader: TokenReader, grammar: Grammar): Operand {
  return chain(reader, sumSign, (inner) => product(inner, grammar));
}

/** Parses the right side of a comparison. A bare word is refused: it may have been meant as a text. */
export function parseCompared(reader: TokenReader, grammar: Grammar): Operand {
  const { token } = reader;
  const operand = parseSum(reader, grammar);
  const isBare = operand.kind === "field" && !(token.kind === "sign" && token.text === "(");
  if (isBare || operand.kind === "call") throw reader.failAt(token, [A_VALUE]);
  return operand;
}

function sumSign(reader: TokenReader): string | undefined {
  if (reader.isSign("+") || reader.isSign("-")) return reader.advance().text;
  if (!(reader.isSign("|") && reader.peek(1).text === "|")) return undefined;
  reader.advance();
  reader.advance();
  return "||";
}

function product(reader: TokenReader, grammar: Grammar): Operand {
  return chain(reader, productSign, (inner) => factor(inner, grammar));
}

function productSign(reader: TokenReader): string | undefined {
  if (reader.isSign("*")) return reader.advance().text;
  if (reader.token.kind !== "path") return undefined;
  reader.divide();
  return "/";
}

/** Operators of equal rank are left-associative; each is one level of the tree. */
function chain(
  reader: TokenReader,
  sign: (reader: TokenReader) => string | undefined,
  operand: (reader: TokenReader) => Operand,
): Operand {
  const { start } = reader.token;
  let left = operand(reader);
  for (let levels = 0; ; levels += 1) {
    const name = sign(reader);
    if (name === undefined) {
      reader.leave(levels);
      return left;
    }
    reader.enter();
    left = { kind: "computed", name, operands: [left, operand(reader)], span: reader.spanFrom(start) };
  }
}

function factor(reader: TokenReader, grammar: Grammar): Operand {
  const { start, kind } = reader.token;
  if (reader.isSign("-") && reader.peek(1).kind !== "number") {
    reader.enter();
    reader.advance();
    const operand = factor(reader, grammar);
    reader.leave();
    return { kind: "computed", name: "-", operands: [operand], span: reader.spanFrom(start) };
  }
  if (beginsValue(reader) || reader.isSign("[") || reader.isSign("{")) return parseValue(reader);
  if (reader.isSign("(")) return group(reader, grammar);
  if (beginsCase(reader)) return parseCase(reader, grammar);
  const isCalled = kind === "word" && reader.peek(1).kind === "sign" && reader.peek(1).text === "(";
  return isCalled ? called(reader, grammar) : parseField(reader);
}

function group(reader: TokenReader, grammar: Grammar): Operand {
  reader.enter();
  reader.expectSign("(");
  const inner = grammar.any(reader);
  reader.expectSign(")");
  reader.leave();
  return inner;
}

function called(reader: TokenReader, grammar: Grammar): Operand {
  const { keyword, text, start } = reader.token;
  if (RESERVED.has(keyword) && !CALLED.has(keyword)) throw reader.fail("a field");
  const name = text.toLowerCase();
  reader.enter();
  reader.advance();
  reader.expectSign("(");
  const isAggregate = AGGREGATES.has(name) || (reader.isSign("*") && reader.peek(1).text === ")");
  const made = isAggregate
    ? aggregate(reader, name, grammar)
    : { kind: "computed" as const, name, operands: args(reader, name, grammar) };
  reader.expectSign(")");
  reader.leave();
  return { ...made, span: reader.spanFrom(start) };
}

function aggregate(reader: TokenReader, name: string, grammar: Grammar): Omit<Call, "span"> {
  const distinct = reader.isKeyword("DISTINCT") && !reader.isName() && reader.accept("DISTINCT");
  const argument = !distinct && reader.acceptSign("*") ? undefined : argumentOf(reader, grammar);
  const step = argument && reader.acceptSign(",") ? { step: parseValue(reader) } : {};
  return { kind: "call", name, distinct, argument, ...step };
}

function argumentOf(reader: TokenReader, grammar: Grammar): Exclude<Call["argument"], undefined> {
  const { token } = reader;
  const operand = grammar.any(reader);
  if (operand.kind === "call" || isValueNode(operand)) throw reader.failAt(token, ["a field"]);
  return operand;
}

function args(reader: TokenReader, name: string, grammar: Grammar): readonly Operand[] {
  if (reader.isSign(")")) return [];
  const operands = [grammar.any(reader)];
  if (name === "cast") {
    reader.expect("AS");
    const type = reader.token;
    const value = reader.expectName("a type").toLowerCase();
    return [...operands, { kind: "text", value, span: { start: type.start, end: type.end } }];
  }
  while (reader.acceptSign(",")) {
    if (operands.length >= MQL_EXPRESSION_OPERANDS_MAX)
      throw reader.tooLarge(
        `a function has at most ${MQL_EXPRESSION_OPERANDS_MAX} values`,
        "MQL_EXPRESSION_OPERANDS_MAX",
      );
    operands.push(grammar.any(reader));
  }
  return operands;
}

/** Returns true for `CASE WHEN …` or `CASE field WHEN …`; elsewhere CASE is a name. */
function beginsCase(reader: TokenReader): boolean {
  if (!reader.isKeyword("CASE")) return false;
  const next = reader.peek(1);
  const isField = next.kind === "word" || next.kind === "name";
  return next.keyword === "WHEN" || (isField && reader.peek(2).keyword === "WHEN");
}

function parseCase(reader: TokenReader, grammar: Grammar): Case {
  const start = reader.token.start;
  reader.enter();
  reader.advance();
  const compared = reader.isKeyword("WHEN") ? undefined : parseField(reader);
  const branches: Branch[] = [];
  while (reader.accept("WHEN")) {
    reader.countCondition();
    const when = compared ? equalTo(reader, compared) : grammar.condition(reader);
    reader.expect("THEN");
    branches.push({ when, then: grammar.any(reader) });
  }
  const otherwise = reader.accept("ELSE") ? grammar.any(reader) : undefined;
  reader.expect("END");
  reader.leave();
  return { kind: "case", branches, otherwise, span: reader.spanFrom(start) };
}

function equalTo(reader: TokenReader, left: Field): Condition {
  const right = parseValue(reader);
  return { kind: "compare", operator: "=", left, right, span: right.span };
}
