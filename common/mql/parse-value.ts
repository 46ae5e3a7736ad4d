import type { Count, ListNode, MapEntry, MapNode, Placeholder, TextNode, ValueNode } from "./ast.ts";
import type { TokenReader } from "./reader.ts";

const A_VALUE = "a value";

/** Parses a quoted text, number, true, false, null, `?`, `[…]` or `{…}`. A bare word is not a value. */
export function parseValue(reader: TokenReader): ValueNode {
  const { start, kind, text, keyword } = reader.token;
  switch (kind) {
    case "text":
      reader.advance();
      return { kind: "text", value: text, span: reader.spanFrom(start) };
    case "number":
      reader.advance();
      return { kind: "number", text, span: reader.spanFrom(start) };
    case "word":
      return constant(reader, keyword);
    case "sign":
      return signValue(reader, text);
    case "name":
    case "path":
    case "end":
      throw reader.fail(A_VALUE);
  }
}

export function beginsValue(reader: TokenReader): boolean {
  const { kind, keyword } = reader.token;
  return (
    kind === "text" ||
    kind === "number" ||
    keyword === "TRUE" ||
    keyword === "FALSE" ||
    keyword === "NULL" ||
    reader.isSign("?") ||
    reader.isSign("-")
  );
}

/** Parses a number, which may be negative, or `?`. */
export function parseCount(reader: TokenReader): Count {
  const start = reader.token.start;
  const value = parseValue(reader);
  if (value.kind === "number" && /^-?\d+$/.test(value.text)) return value;
  if (value.kind === "placeholder") return value;
  throw reader.complain(start, "expected a whole number");
}

export function parseTextOrPlaceholder(reader: TokenReader): TextNode | Placeholder {
  const start = reader.token.start;
  const value = parseValue(reader);
  if (value.kind === "text" || value.kind === "placeholder") return value;
  throw reader.complain(start, "expected a quoted text or ?");
}

export function parseMap(reader: TokenReader): MapNode {
  const start = reader.token.start;
  reader.enter();
  reader.expectSign("{");
  const entries: MapEntry[] = [];
  if (!reader.isSign("}")) {
    do entries.push(entry(reader));
    while (reader.acceptSign(","));
  }
  reader.expectSign("}");
  reader.leave();
  return { kind: "map", entries, span: reader.spanFrom(start) };
}

function constant(reader: TokenReader, keyword: string): ValueNode {
  const start = reader.token.start;
  if (keyword !== "TRUE" && keyword !== "FALSE" && keyword !== "NULL") throw reader.fail(A_VALUE);
  reader.advance();
  return { kind: "constant", value: keyword === "NULL" ? null : keyword === "TRUE", span: reader.spanFrom(start) };
}

function signValue(reader: TokenReader, sign: string): ValueNode {
  switch (sign) {
    case "?":
      return placeholder(reader);
    case "-":
      return negative(reader);
    case "[":
      return list(reader);
    case "{":
      return parseMap(reader);
    default:
      throw reader.fail(A_VALUE);
  }
}

function placeholder(reader: TokenReader): Placeholder {
  const start = reader.advance().start;
  return { kind: "placeholder", index: reader.nextPlaceholder(), span: reader.spanFrom(start) };
}

function negative(reader: TokenReader): ValueNode {
  const start = reader.advance().start;
  if (reader.token.kind !== "number") throw reader.fail("a number after -");
  const text = `-${reader.advance().text}`;
  return { kind: "number", text, span: reader.spanFrom(start) };
}

function list(reader: TokenReader): ListNode {
  const start = reader.token.start;
  reader.enter();
  reader.expectSign("[");
  const items: ValueNode[] = [];
  if (!reader.isSign("]")) {
    do items.push(parseValue(reader));
    while (reader.acceptSign(","));
  }
  reader.expectSign("]");
  reader.leave();
  return { kind: "list", items, span: reader.spanFrom(start) };
}

function entry(reader: TokenReader): MapEntry {
  const start = reader.token.start;
  const key = reader.expectText();
  reader.expectSign(":");
  const value = parseValue(reader);
  return { kind: "entry", key, value, span: reader.spanFrom(start) };
}
