import { isAny } from "./any.ts";
import type { CompareOperator, Condition, Operand, TextOperator } from "./ast.ts";
import { type Grammar, parseCompared, parseSum } from "./parse-expression.ts";
import { parseValue } from "./parse-value.ts";
import type { TokenReader } from "./reader.ts";
import { isValueNode } from "./walk.ts";

/** Words that join conditions, the weakest first. Comparisons bind more strongly than all of them. */
const LEVELS = [
  { word: "OR", kind: "or" },
  { word: "AND", kind: "and" },
] as const;

const COMPARE_OPERATORS: ReadonlySet<string> = new Set<CompareOperator>(["=", "!=", ">", "<", ">=", "<="]);
const WORDS = ["IS", "ISNOT", "NOT", "IN", "LIKE", "CONTAINS", "BETWEEN"];
const TEXT_OPERATORS: ReadonlySet<string> = new Set<TextOperator>(["MATCH", "PHRASE", "PREFIX", "FUZZY"]);
const COMPARING: ReadonlySet<string> = new Set([...WORDS, ...TEXT_OPERATORS, "NOTMATCH"]);
const GRAMMAR: Grammar = { any: parseExpression, condition: parseCondition };

export function parseCondition(reader: TokenReader): Condition {
  return asCondition(reader, anyOf(reader, 0));
}

/** Parses a field, a value or an expression; a condition is returned as `Truth`. */
export function parseExpression(reader: TokenReader): Operand {
  return anyOf(reader, 0);
}

function anyOf(reader: TokenReader, level: number): Operand {
  const joined = LEVELS[level];
  if (!joined) return negation(reader);
  const start = reader.token.start;
  const first = anyOf(reader, level + 1);
  if (!reader.isKeyword(joined.word)) {
    if (first.kind === "truth") reader.accept(joined.word);
    return first;
  }
  const items = [asCondition(reader, first)];
  while (reader.accept(joined.word)) items.push(asCondition(reader, anyOf(reader, level + 1)));
  return truth({ kind: joined.kind, items, span: reader.spanFrom(start) });
}

/** A computed value alone is compared with true. A field alone is an error. */
function asCondition(reader: TokenReader, operand: Operand): Condition {
  if (operand.kind === "truth") return operand.condition;
  if (operand.kind !== "computed" && operand.kind !== "case") throw reader.fail(...WORDS, ...COMPARE_OPERATORS);
  const { span } = operand;
  return { kind: "compare", operator: "=", left: operand, right: { kind: "constant", value: true, span }, span };
}

function truth(condition: Condition): Operand {
  return { kind: "truth", condition, span: condition.span };
}

/** Parses `(value, …)`, whose values may be computed, or one `?` or `[…]` that represents the list. */
function parseList(reader: TokenReader): readonly Operand[] {
  if (reader.isSign("?") || reader.isSign("[")) return [parseValue(reader)];
  reader.expectSign("(");
  const values: Operand[] = [];
  if (!reader.isSign(")")) {
    // For a sub-select that is not allowed here, the error is that it is no value.
    do values.push(reader.isKeyword("SELECT") ? parseValue(reader) : parseCompared(reader, GRAMMAR));
    while (reader.acceptSign(","));
  }
  reader.expectSign(")");
  return values;
}

function negation(reader: TokenReader): Operand {
  const start = reader.token.start;
  if (!reader.isKeyword("NOT") || reader.isName()) return comparison(reader);
  reader.enter();
  reader.advance();
  const operand = asCondition(reader, negation(reader));
  reader.leave();
  return truth({ kind: "not", operand, span: reader.spanFrom(start) });
}

function comparison(reader: TokenReader): Operand {
  const start = reader.token.start;
  const operand = parseSum(reader, GRAMMAR);
  const sign = reader.token;
  if (sign.kind === "sign" && COMPARE_OPERATORS.has(sign.text)) {
    reader.countCondition();
    reader.advance();
    return truth(compared(reader, { operator: sign.text as CompareOperator, left: operand, start }));
  }
  if (!COMPARING.has(sign.keyword)) return operand;
  reader.countCondition();
  return truth(worded(reader, operand, start));
}

function compared(
  reader: TokenReader,
  { operator, left, start }: { readonly operator: CompareOperator; readonly left: Operand; readonly start: number },
): Condition {
  const right = parseCompared(reader, GRAMMAR);
  const span = reader.spanFrom(start);
  return isValueNode(right)
    ? { kind: "compare", operator, left, right, span }
    : { kind: "relate", operator, left, right, span };
}

function worded(reader: TokenReader, operand: Operand, start: number): Condition {
  if (reader.accept("IS")) return isNull(reader, operand, { start, negated: reader.accept("NOT") });
  if (reader.accept("ISNOT")) return isNull(reader, operand, { start, negated: true });
  const negated = reader.accept("NOT");
  if (reader.accept("IN")) return among(reader, operand, { start, negated });
  if (reader.accept("LIKE"))
    return { kind: "like", operand, pattern: parseValue(reader), negated, span: reader.spanFrom(start) };
  if (reader.accept("CONTAINS"))
    return { kind: "contains", operand, value: parseValue(reader), negated, span: reader.spanFrom(start) };
  if (reader.accept("BETWEEN")) return between(reader, operand, { start, negated });
  const text = textOperator(reader);
  if (text === undefined) throw reader.fail();
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

function among(
  reader: TokenReader,
  operand: Operand,
  { start, negated }: { readonly start: number; readonly negated: boolean },
): Condition {
  const { subSelect } = reader;
  const isSelect = subSelect && reader.isSign("(") && reader.peek(1).keyword === "SELECT";
  if (!isSelect) return amongListed(reader, operand, { start, negated });
  reader.countSubSelect();
  reader.enter();
  reader.expectSign("(");
  const select = subSelect(reader);
  reader.expectSign(")");
  reader.leave();
  return { kind: "inSelect", operand, select, negated, span: reader.spanFrom(start) };
}

/** Literal values form one IN condition; each computed value becomes a comparison of its own. */
function amongListed(
  reader: TokenReader,
  operand: Operand,
  { start, negated }: { readonly start: number; readonly negated: boolean },
): Condition {
  const list = parseList(reader);
  const span = reader.spanFrom(start);
  const values = list.filter(isValueNode);
  if (values.length === list.length) return { kind: "in", operand, values, negated, span };
  if (negated) requireNoAny(reader, operand, "NOT IN");
  const written: readonly Condition[] =
    values.length > 0 ? [{ kind: "in", operand, values, negated: false, span }] : [];
  const computed = list.filter((one) => !isValueNode(one)).map((one) => equality(reader, operand, one));
  const items = [...written, ...computed];
  const [first] = items;
  const either: Condition = first && items.length === 1 ? first : { kind: "or", items, span };
  return negated ? { kind: "not", operand: either, span } : either;
}

function equality(reader: TokenReader, left: Operand, right: Operand): Condition {
  reader.countCondition();
  return { kind: "relate", operator: "=", left, right, span: right.span };
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
  const low = parseCompared(reader, GRAMMAR);
  reader.expect("AND");
  const high = parseCompared(reader, GRAMMAR);
  const span = reader.spanFrom(at.start);
  if (isValueNode(low) && isValueNode(high)) return { kind: "between", operand, low, high, negated: at.negated, span };
  requireNoAny(reader, operand, "BETWEEN");
  const bounds = [bound(">=", operand, low), bound("<=", operand, high)];
  const both: Condition = { kind: "and", items: bounds, span };
  return at.negated ? { kind: "not", operand: both, span } : both;
}

/** Computed values become several comparisons, and each of them could be true for a different member. */
function requireNoAny(reader: TokenReader, operand: Operand, word: string): void {
  if (isAny(operand)) throw reader.complain(operand.span.start, `${word} asks any() about written values only`);
}

function bound(operator: CompareOperator, left: Operand, right: Operand): Condition {
  const { span } = right;
  return isValueNode(right)
    ? { kind: "compare", operator, left, right, span }
    : { kind: "relate", operator, left, right, span };
}
