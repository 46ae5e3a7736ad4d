import {
  MQL_GROUP_KEYS_MAX,
  MQL_JOINS_MAX,
  MQL_ORDER_KEYS_MAX,
  MQL_OUTPUTS_MAX,
  MQL_UNION_PARTS_MAX,
} from "../limits.ts";
import type {
  ClassRef,
  Condition,
  ConstantNode,
  Field,
  Fill,
  Item,
  Join,
  NumberNode,
  Operand,
  OrderItem,
  Select,
  SelectItem,
  SelectRef,
  Source,
  Statement,
  Tail,
  Union,
  ValueNode,
  WindowItem,
} from "./ast.ts";
import { RESERVED } from "./keywords.ts";
import { parseCondition, parseExpression } from "./parse-condition.ts";
import { parseField } from "./parse-field.ts";
import { beginsValue, parseCount, parseTextOrPlaceholder, parseValue } from "./parse-value.ts";
import { type ListBound, listOf, type TokenReader } from "./reader.ts";

const OUTPUTS: ListBound = { most: MQL_OUTPUTS_MAX, of: "fields in one SELECT", limit: "MQL_OUTPUTS_MAX" };
const GROUP_KEYS: ListBound = { most: MQL_GROUP_KEYS_MAX, of: "fields in GROUP BY", limit: "MQL_GROUP_KEYS_MAX" };
const ORDER_KEYS: ListBound = { most: MQL_ORDER_KEYS_MAX, of: "fields in ORDER BY", limit: "MQL_ORDER_KEYS_MAX" };

/** The tail of a SELECT that other clauses may follow. */
const OPEN: Tail = { orderBy: [], limit: undefined, offset: undefined, cursor: undefined };

export function parseSelect(reader: TokenReader): Statement {
  const start = reader.token.start;
  if (reader.isKeyword("SELECT") && reader.peek(1).keyword === "EDGE" && reader.peek(2).keyword === "TYPE") {
    for (let word = 0; word < 3; word += 1) reader.advance();
    return { kind: "selectEdgeTypes", span: reader.spanFrom(start) };
  }
  const first = select(reader);
  if (!reader.isKeyword("UNION")) return closed(reader, first);
  return union(reader, first);
}

/** `/a/b` or `/a/b/`. */
export function parseClassRef(reader: TokenReader): ClassRef {
  const { kind, start, text } = reader.token;
  if (kind !== "path") throw reader.fail("a class path such as /a/b");
  reader.advance();
  const subtree = text.endsWith("/");
  const path = subtree && text.length > 1 ? text.slice(0, -1) : text;
  return { kind: "class", path, subtree, alias: undefined, span: reader.spanFrom(start) };
}

export function parseWhere(reader: TokenReader): Condition | undefined {
  return reader.accept("WHERE") ? parseCondition(reader) : undefined;
}

/** `AS OF '<time>'`. */
export function parseAsOf(reader: TokenReader): ValueNode | undefined {
  const after = reader.peek(2);
  const isTime = after.kind === "text" || after.kind === "number" || after.text === "?";
  if (!(reader.isKeyword("AS") && reader.peek(1).keyword === "OF" && isTime)) return undefined;
  reader.advance();
  reader.advance();
  return parseValue(reader);
}

function select(reader: TokenReader): Select {
  const start = reader.token.start;
  reader.expect("SELECT");
  const distinct = reader.isKeyword("DISTINCT") && !reader.isName() && reader.accept("DISTINCT");
  const items = listOf(reader, item, OUTPUTS);
  reader.expect("FROM");
  const plain = beginsSelected(reader) ? selected(reader) : parseClassRef(reader);
  const early = parseAsOf(reader);
  const from: Source = { ...plain, alias: alias(reader) };
  const joins: Join[] = [];
  for (let outer = joinWords(reader); outer !== undefined; outer = joinWords(reader)) {
    if (joins.length >= MQL_JOINS_MAX)
      throw reader.tooLarge(`at most ${MQL_JOINS_MAX} JOINs in one SELECT`, "MQL_JOINS_MAX");
    joins.push(join(reader, outer));
  }
  const where = parseWhere(reader);
  const groupBy = by(reader, "GROUP") ? listOf(reader, parseExpression, GROUP_KEYS) : [];
  const fill = groupBy.length > 0 ? parseFill(reader) : undefined;
  const having = reader.accept("HAVING") ? parseCondition(reader) : undefined;
  return {
    kind: "select",
    distinct,
    items,
    from,
    joins,
    asOf: early,
    where,
    groupBy,
    ...(fill ? { fill } : {}),
    having,
    ...OPEN,
    span: reader.spanFrom(start),
  };
}

/** `FILL (0)`, `FILL (null)` or `FILL (previous)`. */
function parseFill(reader: TokenReader): Fill | undefined {
  const { start } = reader.token;
  if (!reader.accept("FILL")) return undefined;
  reader.expectSign("(");
  const value = reader.accept("PREVIOUS") ? "previous" : filling(reader);
  reader.expectSign(")");
  return { kind: "fill", value, span: reader.spanFrom(start) };
}

function filling(reader: TokenReader): NumberNode | ConstantNode {
  const { token } = reader;
  const value = beginsValue(reader) ? parseValue(reader) : undefined;
  if (value?.kind === "number" || (value?.kind === "constant" && value.value === null)) return value;
  throw reader.failAt(token, ["a number", "NULL", "PREVIOUS"]);
}

/** Returns true for `(SELECT …`. `(select:/class)` would be a class with an alias. */
function beginsSelected(reader: TokenReader): boolean {
  return reader.isSign("(") && reader.peek(1).keyword === "SELECT" && reader.peek(2).text !== ":";
}

function selected(reader: TokenReader): SelectRef {
  const start = reader.token.start;
  reader.countSubSelect();
  reader.enter();
  reader.expectSign("(");
  const first = select(reader);
  const whole = reader.isKeyword("UNION") ? union(reader, first) : closed(reader, first);
  if (whole.cursor) throw reader.complain(whole.cursor.span.start, "CURSOR is for the whole statement");
  reader.expectSign(")");
  reader.leave();
  return { kind: "selected", select: whole, alias: undefined, span: reader.spanFrom(start) };
}

/** Parses the SELECT of `IN (SELECT …)` up to its closing bracket. */
export function parseSubSelect(reader: TokenReader): Select {
  const first = select(reader);
  const { cursor, ...closing } = tail(reader);
  if (cursor) throw reader.complain(cursor.span.start, "CURSOR is for the whole statement");
  const asOf = first.asOf ?? parseAsOf(reader);
  return { ...first, ...closing, asOf, span: reader.spanFrom(first.span.start) };
}

/** A SELECT that is not part of a union: the clauses at the end are its own. */
function closed(reader: TokenReader, first: Select): Select {
  const closing = tail(reader);
  if (reader.isKeyword("UNION"))
    throw reader.complain(
      reader.token.start,
      "ORDER BY, LIMIT, OFFSET and CURSOR stand after the last SELECT of a UNION",
    );
  const asOf = first.asOf ?? parseAsOf(reader);
  return { ...first, ...closing, asOf, span: reader.spanFrom(first.span.start) };
}

function union(reader: TokenReader, first: Select): Union {
  const selects = [first];
  let all: boolean | undefined;
  while (reader.accept("UNION")) {
    const isAll = reader.accept("ALL");
    if (isAll !== (all ?? isAll)) throw reader.complain(first.span.start, "UNION and UNION ALL cannot be mixed");
    all = isAll;
    if (selects.length >= MQL_UNION_PARTS_MAX)
      throw reader.tooLarge(`at most ${MQL_UNION_PARTS_MAX} SELECTs in one UNION`, "MQL_UNION_PARTS_MAX");
    selects.push(select(reader));
  }
  const closing = tail(reader);
  const asOf = parseAsOf(reader);
  return { kind: "union", all: all ?? false, selects, ...closing, asOf, span: reader.spanFrom(first.span.start) };
}

function tail(reader: TokenReader): Tail {
  const orderBy = by(reader, "ORDER") ? listOf(reader, orderItem, ORDER_KEYS) : [];
  const limit = reader.accept("LIMIT") ? parseCount(reader) : undefined;
  const offset = reader.accept("OFFSET") ? parseCount(reader) : undefined;
  const cursor = reader.accept("CURSOR") ? parseTextOrPlaceholder(reader) : undefined;
  return { orderBy, limit, offset, cursor };
}

function by(reader: TokenReader, keyword: string): boolean {
  if (!reader.accept(keyword)) return false;
  reader.expect("BY");
  return true;
}

function item(reader: TokenReader): SelectItem {
  const start = reader.token.start;
  const star = parseStar(reader);
  if (star) return star;
  const value = parseExpression(reader);
  if (reader.isKeyword("OVER") && reader.peek(1).text === "(") return over(reader, value, start);
  const name = itemName(reader);
  const result: Item = { kind: "item", value, alias: name, span: reader.spanFrom(start) };
  return result;
}

function itemName(reader: TokenReader): string | undefined {
  return reader.accept("AS") ? (reader.acceptText() ?? reader.expectName("a name")) : undefined;
}

/** Parses `OVER (PARTITION BY … ORDER BY …)` after a function call. */
function over(reader: TokenReader, value: Operand, start: number): WindowItem {
  const called = windowCall(value);
  if (!called) throw reader.complain(start, "OVER stands behind a function such as lag(x) or count(*)");
  reader.advance();
  reader.expectSign("(");
  const partitionBy = by(reader, "PARTITION") ? listOf(reader, parseExpression, GROUP_KEYS) : [];
  const orderBy = by(reader, "ORDER") ? listOf(reader, orderItem, ORDER_KEYS) : [];
  reader.expectSign(")");
  return { kind: "window", ...called, partitionBy, orderBy, alias: itemName(reader), span: reader.spanFrom(start) };
}

function windowCall(value: Operand): Pick<WindowItem, "name" | "operands"> | undefined {
  if (value.kind === "computed") return { name: value.name, operands: value.operands };
  if (value.kind !== "call" || value.distinct || value.step) return undefined;
  return { name: value.name, operands: value.argument ? [value.argument] : [] };
}

/** `*`, or `a.*`. */
function parseStar(reader: TokenReader): SelectItem | undefined {
  const start = reader.token.start;
  const isAliased = reader.isName() && reader.peek(1).text === "." && reader.peek(2).text === "*";
  if (!isAliased)
    return reader.acceptSign("*") ? { kind: "star", alias: undefined, span: reader.spanFrom(start) } : undefined;
  const name = reader.advance().text;
  reader.advance();
  reader.advance();
  return { kind: "star", alias: name, span: reader.spanFrom(start) };
}

function orderItem(reader: TokenReader): OrderItem {
  const start = reader.token.start;
  const value = parseExpression(reader);
  const descending = reader.accept("DESC");
  if (!descending) reader.accept("ASC");
  return { kind: "order", value, descending, span: reader.spanFrom(start) };
}

function alias(reader: TokenReader): string | undefined {
  if (reader.isKeyword("AS") && reader.peek(1).keyword !== "OF") {
    reader.advance();
    return reader.expectName("an alias");
  }
  const { kind, keyword, text } = reader.token;
  const next = reader.peek(1);
  const isCursor = keyword === "CURSOR" && (next.kind === "text" || next.text === "?");
  const isAlias = kind === "name" || (kind === "word" && !RESERVED.has(keyword) && !isCursor && !beginsJoin(reader));
  if (!isAlias) return undefined;
  reader.advance();
  return text;
}

/** `[INNER] JOIN` or `LEFT [OUTER] JOIN`. Returns true for an outer join; `undefined` if no join begins here. */
function joinWords(reader: TokenReader): boolean | undefined {
  if (reader.accept("JOIN")) return false;
  if (!beginsJoin(reader)) return undefined;
  const kind = reader.token.text.toUpperCase();
  if (kind !== "LEFT" && kind !== "INNER") throw reader.fail("JOIN", "LEFT JOIN");
  reader.advance();
  if (kind === "LEFT") reader.accept("OUTER");
  reader.expect("JOIN");
  return kind === "LEFT";
}

/** SQL words before JOIN. Joins that MQL lacks are no aliases either: the statement would mean another join. */
const KINDS_OF_JOIN: ReadonlySet<string> = new Set(["LEFT", "INNER", "RIGHT", "FULL", "CROSS", "NATURAL"]);

function beginsJoin(reader: TokenReader): boolean {
  const { kind, text } = reader.token;
  const next = reader.peek(1);
  const isJoin = next.keyword === "JOIN" || (next.keyword === "OUTER" && reader.peek(2).keyword === "JOIN");
  return isJoin && kind === "word" && KINDS_OF_JOIN.has(text.toUpperCase());
}

/** Parses `(alias:/class) ON a.x = b.y` or `(SELECT …) alias ON …` after the word JOIN. */
function join(reader: TokenReader, outer: boolean): Join {
  const start = reader.token.start;
  const target = beginsSelected(reader) ? joinedSelect(reader) : joinedClass(reader);
  reader.expect("ON");
  const left: Field = parseField(reader);
  reader.expectSign("=");
  const right: Field = parseField(reader);
  return { kind: "join", outer, class: target, left, right, span: reader.spanFrom(start) };
}

function joinedClass(reader: TokenReader): ClassRef {
  reader.expectSign("(");
  const name = reader.expectName("an alias");
  reader.expectSign(":");
  const target = parseClassRef(reader);
  reader.expectSign(")");
  return { ...target, alias: name };
}

function joinedSelect(reader: TokenReader): SelectRef {
  const target = selected(reader);
  reader.accept("AS");
  return { ...target, alias: reader.expectName("an alias") };
}
