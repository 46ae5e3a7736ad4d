import { MQL_WRITTEN_COLUMNS_MAX } from "../limits.ts";
import type {
  AlterClass,
  ClassAlteration,
  ClassOption,
  ColumnDefinition,
  CreateClass,
  CreateEdgeType,
  DropClass,
  DropEdgeType,
  ValueNode,
} from "./ast.ts";
import { parseClassRef } from "./parse-select.ts";
import { parseMap, parseValue } from "./parse-value.ts";
import { type ListBound, listOf, type TokenReader } from "./reader.ts";

/** More than a class may have, because the check that counts columns gives a better message. */
const COLUMNS: ListBound = {
  most: MQL_WRITTEN_COLUMNS_MAX,
  of: "columns or options in one list",
  limit: "MQL_WRITTEN_COLUMNS_MAX",
};

export function parseCreate(reader: TokenReader): CreateClass | CreateEdgeType {
  const start = reader.token.start;
  reader.expect("CREATE");
  if (acceptEdgeType(reader)) return createEdgeType(reader, start);
  reader.expect("CLASS");
  return createClass(reader, start);
}

export function parseDrop(reader: TokenReader): DropClass | DropEdgeType {
  const start = reader.token.start;
  reader.expect("DROP");
  const isEdgeType = acceptEdgeType(reader);
  if (!isEdgeType) reader.expect("CLASS");
  const ifExists = reader.accept("IF");
  if (ifExists) reader.expect("EXISTS");
  if (isEdgeType) return { kind: "dropEdgeType", ifExists, name: edgeTypeName(reader), span: reader.spanFrom(start) };
  return { kind: "dropClass", ifExists, class: parseClassRef(reader), span: reader.spanFrom(start) };
}

export function parseAlter(reader: TokenReader): AlterClass {
  const start = reader.token.start;
  reader.expect("ALTER");
  reader.expect("CLASS");
  const target = parseClassRef(reader);
  const alteration = parseAlteration(reader);
  return { kind: "alterClass", class: target, alteration, span: reader.spanFrom(start) };
}

function acceptEdgeType(reader: TokenReader): boolean {
  if (reader.accept("EDGETYPE")) return true;
  if (!reader.accept("EDGE")) return false;
  reader.expect("TYPE");
  return true;
}

function createEdgeType(reader: TokenReader, start: number): CreateEdgeType {
  const ifNotExists = acceptIfNotExists(reader);
  const name = edgeTypeName(reader);
  const remedy = reader.acceptText();
  return { kind: "createEdgeType", ifNotExists, name, remedy, span: reader.spanFrom(start) };
}

/** `contain` or `net.link`; also quoted. */
function edgeTypeName(reader: TokenReader): string {
  const quoted = reader.acceptText();
  if (quoted !== undefined) return quoted;
  let name = reader.expectName("a name");
  while (reader.acceptSign(".")) name += `.${reader.expectName("a name")}`;
  return name;
}

function acceptIfNotExists(reader: TokenReader): boolean {
  if (!reader.accept("IF")) return false;
  reader.expect("NOT");
  reader.expect("EXISTS");
  return true;
}

function createClass(reader: TokenReader, start: number): CreateClass {
  const ifNotExists = acceptIfNotExists(reader);
  const target = parseClassRef(reader);
  const body = { columns: [] as ColumnDefinition[], keys: [] as string[], indexes: [] as string[] };
  if (reader.acceptSign("(")) {
    while (!reader.isSign(")")) {
      if (body.columns.length >= COLUMNS.most)
        throw reader.tooLarge(`at most ${COLUMNS.most} ${COLUMNS.of}`, COLUMNS.limit);
      member(reader, body);
      if (!reader.acceptSign(",")) break;
    }
    reader.expectSign(")");
  }
  const options = reader.accept("WITH") ? parseOptions(reader) : [];
  return { kind: "createClass", ifNotExists, class: target, ...body, options, span: reader.spanFrom(start) };
}

function member(reader: TokenReader, body: { columns: ColumnDefinition[]; keys: string[]; indexes: string[] }): void {
  const { keyword } = reader.token;
  const isClause = reader.peek(1).text === "(" && reader.peek(1).kind === "sign";
  if (isClause && (keyword === "KEYS" || keyword === "KEY")) body.keys.push(...names(reader));
  else if (isClause && (keyword === "INDEX" || keyword === "INDEXES")) body.indexes.push(...names(reader));
  else body.columns.push(columnDefinition(reader));
}

function names(reader: TokenReader): readonly string[] {
  reader.advance();
  reader.expectSign("(");
  const list = listOf(reader, columnName, COLUMNS);
  reader.expectSign(")");
  return list;
}

function columnName(reader: TokenReader): string {
  return reader.acceptText() ?? reader.expectName("a column");
}

function columnDefinition(reader: TokenReader): ColumnDefinition {
  const start = reader.token.start;
  const name = columnName(reader);
  const type = typeName(reader);
  const elements = reader.acceptSign("<") ? elementTypes(reader) : [];
  const details = reader.isSign("{") ? parseMap(reader) : undefined;
  const title = reader.acceptText();
  return { kind: "column", name, type, elements, details, title, span: reader.spanFrom(start) };
}

function elementTypes(reader: TokenReader): readonly string[] {
  const types = listOf(reader, typeName, COLUMNS);
  reader.expectSign(">");
  return types;
}

function typeName(reader: TokenReader): string {
  if (reader.token.kind === "word") return reader.advance().text.toLowerCase();
  throw reader.fail("a column type");
}

function parseOptions(reader: TokenReader): readonly ClassOption[] {
  return listOf(reader, option, COLUMNS);
}

function option(reader: TokenReader): ClassOption {
  const start = reader.token.start;
  const name = reader.expectName("an option").toLowerCase();
  reader.expectSign("=");
  const value = optionValue(reader);
  const hasUnit = value.kind === "number" && reader.token.kind === "word";
  const unit = hasUnit ? reader.advance().text.toLowerCase() : undefined;
  return { kind: "option", name, value, unit, span: reader.spanFrom(start) };
}

/** Option values may be bare words, as in `key=manu`. */
function optionValue(reader: TokenReader): ValueNode {
  const { kind, keyword, start, text } = reader.token;
  if (kind !== "word" || keyword === "TRUE" || keyword === "FALSE" || keyword === "NULL") return parseValue(reader);
  reader.advance();
  return { kind: "text", value: text, span: reader.spanFrom(start) };
}

function parseAlteration(reader: TokenReader): ClassAlteration {
  const start = reader.token.start;
  if (reader.accept("SET")) return { kind: "setOptions", options: parseOptions(reader), span: reader.spanFrom(start) };
  const isAdd = reader.accept("ADD");
  if (!isAdd) reader.expect("DROP");
  if (reader.accept("COLUMN")) return column(reader, isAdd, start);
  if (reader.accept("KEY"))
    return { kind: isAdd ? "addKey" : "dropKey", name: columnName(reader), span: reader.spanFrom(start) };
  reader.expect("INDEX");
  const name = columnName(reader);
  const type = reader.token.kind === "word" ? typeName(reader) : undefined;
  return { kind: isAdd ? "addIndex" : "dropIndex", name, type, span: reader.spanFrom(start) };
}

function column(reader: TokenReader, isAdd: boolean, start: number): ClassAlteration {
  if (isAdd) return { kind: "addColumn", column: columnDefinition(reader), span: reader.spanFrom(start) };
  return { kind: "dropColumn", name: columnName(reader), span: reader.spanFrom(start) };
}
