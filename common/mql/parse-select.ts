import type { ClassRef, Condition, Count, Field, Item, Join, OrderItem, Select, SelectItem, Statement, ValueNode } from "./ast.ts";
import { RESERVED } from "./keywords.ts";
import { parseCondition, parseField, parseFieldOrCall } from "./parse-condition.ts";
import { parseCount, parseValue } from "./parse-value.ts";
import type { TokenReader } from "./reader.ts";

export function parseSelect(reader: TokenReader): Statement {
  const start = reader.token.start;
  if (reader.isKeyword("SELECT") && reader.peek(1).keyword === "EDGE" && reader.peek(2).keyword === "TYPE") {
    for (let word = 0; word < 3; word += 1) reader.advance();
    return { kind: "selectEdgeTypes", span: reader.spanFrom(start) };
  }
  const first = select(reader);
  if (!reader.accept("UNION")) return first;
  const all = reader.accept("ALL");
  const selects = [first, select(reader)];
  while (reader.accept("UNION")) {
    if (reader.accept("ALL") !== all) throw reader.complain(start, "UNION and UNION ALL cannot be mixed");
    selects.push(select(reader));
  }
  return { kind: "union", all, selects, span: reader.spanFrom(start) };
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
  const items = listOf(reader, item);
  reader.expect("FROM");
  const plainClass = parseClassRef(reader);
  const early = parseAsOf(reader);
  const from: ClassRef = { ...plainClass, alias: alias(reader) };
  const joins: Join[] = [];
  while (reader.accept("JOIN")) joins.push(join(reader));
  const where = parseWhere(reader);
  const groupBy = by(reader, "GROUP") ? listOf(reader, parseField) : [];
  const having = reader.accept("HAVING") ? parseCondition(reader) : undefined;
  const orderBy = by(reader, "ORDER") ? listOf(reader, orderItem) : [];
  const { limit, offset } = window(reader);
  const asOf = early ?? parseAsOf(reader);
  return { kind: "select", distinct, items, from, joins, asOf, where, groupBy, having, orderBy, limit, offset, span: reader.spanFrom(start) };
}

function listOf<T>(reader: TokenReader, parse: (reader: TokenReader) => T): readonly T[] {
  const items = [parse(reader)];
  while (reader.acceptSign(",")) items.push(parse(reader));
  return items;
}

function by(reader: TokenReader, keyword: string): boolean {
  if (!reader.accept(keyword)) return false;
  reader.expect("BY");
  return true;
}

function window(reader: TokenReader): { readonly limit: Count | undefined; readonly offset: Count | undefined } {
  const limit = reader.accept("LIMIT") ? parseCount(reader) : undefined;
  const offset = reader.accept("OFFSET") ? parseCount(reader) : undefined;
  return { limit, offset };
}

function item(reader: TokenReader): SelectItem {
  const start = reader.token.start;
  if (reader.acceptSign("*")) return { kind: "star", span: reader.spanFrom(start) };
  const value = parseFieldOrCall(reader);
  const name = reader.accept("AS") ? (reader.acceptText() ?? reader.expectName("a name")) : undefined;
  const result: Item = { kind: "item", value, alias: name, span: reader.spanFrom(start) };
  return result;
}

function orderItem(reader: TokenReader): OrderItem {
  const start = reader.token.start;
  const value = parseFieldOrCall(reader);
  const descending = reader.accept("DESC");
  if (!descending) reader.accept("ASC");
  return { kind: "order", value, descending, span: reader.spanFrom(start) };
}

function alias(reader: TokenReader): string | undefined {
  const { kind, keyword, text } = reader.token;
  const isAlias = kind === "name" || (kind === "word" && !RESERVED.has(keyword));
  if (!isAlias) return undefined;
  reader.advance();
  return text;
}

/** `(alias:/class) ON a.x = b.y` after the word JOIN. */
function join(reader: TokenReader): Join {
  const start = reader.token.start;
  reader.expectSign("(");
  const name = reader.expectName("an alias");
  reader.expectSign(":");
  const target = parseClassRef(reader);
  reader.expectSign(")");
  reader.expect("ON");
  const left: Field = parseField(reader);
  reader.expectSign("=");
  const right: Field = parseField(reader);
  return { kind: "join", class: { ...target, alias: name }, left, right, span: reader.spanFrom(start) };
}
