import { MQL_NESTING_MAX } from "../limits.ts";
import type { Call, CompareOperator, Condition, Field, Operand, TextOperator, TimeWindow, ValueNode } from "./ast.ts";
import { beginsValue, parseTextOrPlaceholder, parseValue } from "./parse-value.ts";
import type { TokenReader } from "./reader.ts";

/** Words that join conditions, the weakest first. Comparisons bind stronger than all of them. */
const LEVELS = [
  { word: "OR", kind: "or" },
  { word: "AND", kind: "and" },
] as const;

const COMPARE_OPERATORS: ReadonlySet<string> = new Set<CompareOperator>(["=", "!=", ">", "<", ">=", "<="]);
const TEXT_OPERATORS: ReadonlySet<string> = new Set<TextOperator>(["MATCH", "PHRASE", "PREFIX", "FUZZY"]);

export function parseCondition(reader: TokenReader, level = 0): Condition {
  const joined = LEVELS[level];
  if (!joined) return negation(reader);
  const start = reader.token.start;
  const first = parseCondition(reader, level + 1);
  if (!reader.isKeyword(joined.word)) {
    reader.accept(joined.word);
    return first;
  }
  const items = [first];
  while (reader.accept(joined.word)) items.push(parseCondition(reader, level + 1));
  return { kind: joined.kind, items, span: reader.spanFrom(start) };
}

/** A column, perhaps with an alias in front and members of a map behind: `a.config.os`, `config['os']`. */
export function parseField(reader: TokenReader): Field {
  const start = reader.token.start;
  const parts = [reader.expectName("a field")];
  for (;;) {
    if (parts.length > MQL_NESTING_MAX)
      throw reader.tooLarge(`a field has at most ${MQL_NESTING_MAX} members inside each other`, "MQL_NESTING_MAX");
    if (reader.isSign(".")) {
      reader.advance();
      parts.push(reader.expectName("a field after the dot"));
    } else if (reader.isSign("[")) {
      const window = bracket(reader, parts);
      if (window) return { kind: "field", parts, window, span: reader.spanFrom(start) };
    } else return { kind: "field", parts, span: reader.spanFrom(start) };
  }
}

/** `['os']`, a member, or `['2026-01-01':'2026-01-02']`, a window of time, which ends the field. */
function bracket(reader: TokenReader, parts: string[]): TimeWindow | undefined {
  const start = reader.token.start;
  reader.expectSign("[");
  const isMember = reader.token.kind === "text" && reader.peek(1).text === "]";
  if (isMember) {
    parts.push(reader.expectText());
    reader.expectSign("]");
    return undefined;
  }
  const from = reader.isSign(":") ? undefined : parseValue(reader);
  reader.expectSign(":");
  const to = reader.isSign("]") ? undefined : parseValue(reader);
  reader.expectSign("]");
  return { kind: "window", from, to, span: reader.spanFrom(start) };
}

/** A field, or a function of one: `max(size)`, `count(*)`, `count(distinct host)`. */
export function parseFieldOrCall(reader: TokenReader): Field | Call {
  const next = reader.peek(1);
  if (!(reader.token.kind === "word" && next.kind === "sign" && next.text === "(")) return parseField(reader);
  const start = reader.token.start;
  const name = reader.advance().text.toLowerCase();
  reader.expectSign("(");
  const distinct = reader.isKeyword("DISTINCT") && !reader.isName() && reader.accept("DISTINCT");
  const argument = !distinct && reader.acceptSign("*") ? undefined : parseField(reader);
  const step = argument && reader.acceptSign(",") ? { step: parseTextOrPlaceholder(reader) } : {};
  reader.expectSign(")");
  return { kind: "call", name, distinct, argument, ...step, span: reader.spanFrom(start) };
}

/** `(value, …)`, or one `?` or `[…]` that stands for the list. */
export function parseValueList(reader: TokenReader): readonly ValueNode[] {
  if (reader.isSign("?") || reader.isSign("[")) return [parseValue(reader)];
  reader.expectSign("(");
  const values: ValueNode[] = [];
  if (!reader.isSign(")")) {
    do values.push(parseValue(reader));
    while (reader.acceptSign(","));
  }
  reader.expectSign(")");
  return values;
}

function negation(reader: TokenReader): Condition {
  const start = reader.token.start;
  if (reader.isKeyword("NOT") && !reader.isName()) {
    reader.enter();
    reader.advance();
    const operand = negation(reader);
    reader.leave();
    return { kind: "not", operand, span: reader.spanFrom(start) };
  }
  return reader.isSign("(") ? group(reader) : comparison(reader);
}

function group(reader: TokenReader): Condition {
  reader.enter();
  reader.expectSign("(");
  const inner = parseCondition(reader);
  reader.expectSign(")");
  reader.leave();
  return inner;
}

function comparison(reader: TokenReader): Condition {
  reader.countCondition();
  const start = reader.token.start;
  const operand = parseOperand(reader);
  const sign = reader.token;
  if (sign.kind === "sign" && COMPARE_OPERATORS.has(sign.text)) {
    reader.advance();
    const right = parseValue(reader);
    return {
      kind: "compare",
      operator: sign.text as CompareOperator,
      left: operand,
      right,
      span: reader.spanFrom(start),
    };
  }
  return worded(reader, operand, start);
}

function parseOperand(reader: TokenReader): Operand {
  return beginsValue(reader) ? parseValue(reader) : parseFieldOrCall(reader);
}

function worded(reader: TokenReader, operand: Operand, start: number): Condition {
  if (reader.accept("IS")) return isNull(reader, operand, { start, negated: reader.accept("NOT") });
  if (reader.accept("ISNOT")) return isNull(reader, operand, { start, negated: true });
  const negated = reader.accept("NOT");
  if (reader.accept("IN"))
    return { kind: "in", operand, values: parseValueList(reader), negated, span: reader.spanFrom(start) };
  if (reader.accept("LIKE"))
    return { kind: "like", operand, pattern: parseValue(reader), negated, span: reader.spanFrom(start) };
  if (reader.accept("CONTAINS"))
    return { kind: "contains", operand, value: parseValue(reader), negated, span: reader.spanFrom(start) };
  if (reader.accept("BETWEEN")) return between(reader, operand, { start, negated });
  const text = textOperator(reader);
  if (text === undefined) throw reader.fail(...(negated ? [] : COMPARE_OPERATORS));
  reader.countTextCondition();
  return {
    kind: "textMatch",
    ...text,
    negated: negated || text.negated,
    operand,
    value: parseValue(reader),
    span: reader.spanFrom(start),
  };
}

function textOperator(reader: TokenReader): { readonly operator: TextOperator; readonly negated: boolean } | undefined {
  const { keyword } = reader.token;
  if (keyword === "NOTMATCH") {
    reader.advance();
    return { operator: "MATCH", negated: true };
  }
  if (!TEXT_OPERATORS.has(keyword)) return undefined;
  reader.advance();
  return { operator: keyword as TextOperator, negated: false };
}

function isNull(
  reader: TokenReader,
  operand: Operand,
  at: { readonly start: number; readonly negated: boolean },
): Condition {
  reader.expect("NULL");
  return { kind: "isNull", operand, negated: at.negated, span: reader.spanFrom(at.start) };
}

function between(
  reader: TokenReader,
  operand: Operand,
  at: { readonly start: number; readonly negated: boolean },
): Condition {
  const low = parseValue(reader);
  reader.expect("AND");
  const high = parseValue(reader);
  return { kind: "between", operand, low, high, negated: at.negated, span: reader.spanFrom(at.start) };
}
