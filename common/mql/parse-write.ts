import type { Assignment, Delete, Insert, InsertJson, Update, ValueNode } from "./ast.ts";
import { parseClassRef, parseWhere } from "./parse-select.ts";
import { parseCount, parseValue } from "./parse-value.ts";
import type { TokenReader } from "./reader.ts";

export function parseInsert(reader: TokenReader): Insert | InsertJson {
  const start = reader.token.start;
  reader.expect("INSERT");
  if (reader.accept("JSON")) return insertJson(reader, start);
  reader.expect("INTO");
  const target = parseClassRef(reader);
  const written = reader.isSign("(") ? valuesForm(reader) : setForm(reader);
  const at = reader.accept("AT") ? parseValue(reader) : undefined;
  return { kind: "insert", class: target, ...written, at, span: reader.spanFrom(start) };
}

export function parseUpdate(reader: TokenReader): Update {
  const start = reader.token.start;
  reader.expect("UPDATE");
  const target = parseClassRef(reader);
  acceptSet(reader);
  const assignments = [assignment(reader)];
  while (reader.acceptSign(",")) assignments.push(assignment(reader));
  const where = parseWhere(reader);
  const refresh = reader.accept("REFRESH");
  return { kind: "update", class: target, assignments, where, refresh, span: reader.spanFrom(start) };
}

export function parseDelete(reader: TokenReader): Delete {
  const start = reader.token.start;
  reader.expect("DELETE");
  const column = reader.acceptSign("*") || reader.isKeyword("FROM") ? undefined : reader.expectName("a column, *");
  reader.expect("FROM");
  const target = parseClassRef(reader);
  const where = parseWhere(reader);
  const limit = reader.accept("LIMIT") ? parseCount(reader) : undefined;
  const withVersion = reader.accept("WITH");
  if (withVersion) reader.expect("VERSION");
  return { kind: "delete", column, class: target, where, limit, withVersion, span: reader.spanFrom(start) };
}

type Written = Pick<Insert, "form" | "columns" | "rows">;

function insertJson(reader: TokenReader, start: number): InsertJson {
  const at = reader.token.start;
  const json = parseValue(reader);
  if (json.kind !== "text" && json.kind !== "placeholder")
    throw reader.complain(at, "expected a JSON object in quotes");
  return { kind: "insertJson", json, span: reader.spanFrom(start) };
}

function valuesForm(reader: TokenReader): Written {
  reader.expectSign("(");
  const columns = [columnName(reader)];
  while (reader.acceptSign(",")) columns.push(columnName(reader));
  reader.expectSign(")");
  reader.expect("VALUES");
  const rows = [valueRow(reader, columns.length)];
  while (reader.acceptSign(",")) rows.push(valueRow(reader, columns.length));
  return { form: "values", columns, rows };
}

function valueRow(reader: TokenReader, length: number): readonly ValueNode[] {
  const start = reader.token.start;
  reader.expectSign("(");
  const values = [parseValue(reader)];
  while (reader.acceptSign(",")) values.push(parseValue(reader));
  reader.expectSign(")");
  if (values.length !== length) throw reader.complain(start, `expected ${length} values but found ${values.length}`);
  return values;
}

function setForm(reader: TokenReader): Written {
  acceptSet(reader);
  const columns: string[] = [];
  const values: ValueNode[] = [];
  do {
    columns.push(columnName(reader));
    reader.expectSign("=");
    values.push(parseValue(reader));
  } while (reader.acceptSign(","));
  return { form: "set", columns, rows: [values] };
}

function acceptSet(reader: TokenReader): void {
  if (reader.isKeyword("SET") && reader.isName()) return;
  reader.accept("SET");
}

function columnName(reader: TokenReader): string {
  return reader.expectName("a column");
}

/** `f = value`, `f = f + value`, `f = f - value`. */
function assignment(reader: TokenReader): Assignment {
  const start = reader.token.start;
  const column = columnName(reader);
  reader.expectSign("=");
  const operation = repeatsColumn(reader, column) ? addOrTake(reader) : "set";
  const value = parseValue(reader);
  return { kind: "assignment", column, operation, value, span: reader.spanFrom(start) };
}

function repeatsColumn(reader: TokenReader, column: string): boolean {
  const { kind, text } = reader.token;
  return (kind === "word" || kind === "name") && text === column && ["+", "-"].includes(reader.peek(1).text);
}

function addOrTake(reader: TokenReader): "add" | "take" {
  reader.advance();
  return reader.advance().text === "+" ? "add" : "take";
}
