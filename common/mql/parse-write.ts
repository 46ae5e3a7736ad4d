import { MQL_WRITTEN_COLUMNS_MAX } from "../limits.ts";
import { counted } from "../text/counted.ts";
import type { Assignment, Delete, Insert, InsertJson, Operand, PastInsert, Span, Update, ValueNode } from "./ast.ts";
import { parseExpression } from "./parse-condition.ts";
import { parseClassRef, parseWhere } from "./parse-select.ts";
import { parseCount, parseValue } from "./parse-value.ts";
import { type ListBound, listOf, type Steps, type TokenReader } from "./reader.ts";
import { isValueNode } from "./walk.ts";

const COLUMNS: ListBound = {
  most: MQL_WRITTEN_COLUMNS_MAX,
  of: "columns in one statement",
  limit: "MQL_WRITTEN_COLUMNS_MAX",
};

export function* parseInsert(reader: TokenReader): Steps<Insert | InsertJson> {
  const start = reader.token.start;
  reader.expect("INSERT");
  if (reader.accept("JSON")) return insertJson(reader, start);
  const kind = reader.accept("VERSION") ? "version" : reader.accept("REMOVAL") ? "removal" : undefined;
  reader.expect("INTO");
  const target = parseClassRef(reader);
  const written = kind === undefined && reader.isSign("(") ? yield* valuesForm(reader) : setForm(reader);
  const at = kind === undefined && reader.accept("AT") ? parseValue(reader) : undefined;
  const past = kind && { past: pastInsert(reader, kind) };
  return { kind: "insert", class: target, ...written, at, ...past, span: reader.spanFrom(start) };
}

function pastInsert(reader: TokenReader, kind: PastInsert["kind"]): PastInsert {
  if (kind === "removal") return { kind };
  const clause = (word: string): ValueNode | undefined => (reader.accept(word) ? parseValue(reader) : undefined);
  return { kind, until: clause("UNTIL"), added: clause("ADDED"), dropped: clause("DROPPED"), lost: clause("LOST") };
}

export function parseUpdate(reader: TokenReader): Update {
  const start = reader.token.start;
  reader.expect("UPDATE");
  const target = parseClassRef(reader);
  acceptSet(reader);
  const assignments = listOf(reader, assignment, COLUMNS);
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

type Written = Pick<Insert, "form" | "columns" | "columnPlaces" | "rows">;

function insertJson(reader: TokenReader, start: number): InsertJson {
  const at = reader.token.start;
  const json = parseValue(reader);
  if (json.kind !== "text" && json.kind !== "placeholder")
    throw reader.complain(at, "expected a JSON object in quotes");
  return { kind: "insertJson", json, span: reader.spanFrom(start) };
}

function* valuesForm(reader: TokenReader): Steps<Written> {
  reader.expectSign("(");
  const named = listOf(reader, placedName, COLUMNS);
  const columns = named.map(({ column }) => column);
  reader.expectSign(")");
  reader.expect("VALUES");
  const rows = [valueRow(reader, columns.length)];
  while (reader.acceptSign(",")) {
    yield* reader.step();
    rows.push(valueRow(reader, columns.length));
  }
  return { form: "values", columns, columnPlaces: named.map(({ span }) => span), rows };
}

function valueRow(reader: TokenReader, length: number): readonly ValueNode[] {
  const start = reader.token.start;
  reader.expectSign("(");
  const values = [parseValue(reader)];
  while (reader.acceptSign(",")) values.push(parseValue(reader));
  reader.expectSign(")");
  if (values.length !== length)
    throw reader.complain(start, `expected ${counted(length, "value")} but found ${values.length}`);
  return values;
}

function setForm(reader: TokenReader): Written {
  acceptSet(reader);
  const set = listOf(reader, columnValue, COLUMNS);
  const columns = set.map(({ column }) => column);
  return { form: "set", columns, columnPlaces: set.map(({ span }) => span), rows: [set.map(({ value }) => value)] };
}

interface PlacedName {
  readonly column: string;
  readonly span: Span;
}

function columnValue(reader: TokenReader): PlacedName & { readonly value: ValueNode } {
  const named = placedName(reader);
  reader.expectSign("=");
  return { ...named, value: parseValue(reader) };
}

function placedName(reader: TokenReader): PlacedName {
  const start = reader.token.start;
  return { column: columnName(reader), span: reader.spanFrom(start) };
}

function acceptSet(reader: TokenReader): void {
  if (reader.isKeyword("SET") && reader.isName()) return;
  reader.accept("SET");
}

function columnName(reader: TokenReader): string {
  return reader.expectName("a column");
}

/** `f = value`, `f = f + value`, `f = f - value`, and `f = …` with an expression over the object. */
function assignment(reader: TokenReader): Assignment {
  const start = reader.token.start;
  const column = columnName(reader);
  reader.expectSign("=");
  const operand = parseExpression(reader);
  const written = changedBy(operand, column) ?? { operation: "set", value: operand };
  return { kind: "assignment", column, ...written, span: reader.spanFrom(start) };
}

/** The value added to the column or removed from it; `undefined` if the expression does anything else. */
function changedBy(operand: Operand, column: string): Pick<Assignment, "operation" | "value" | "repeated"> | undefined {
  if (operand.kind !== "computed" || (operand.name !== "+" && operand.name !== "-")) return undefined;
  const [left, value] = operand.operands;
  const [repeated = "", ...members] = left?.kind === "field" && !left.window ? left.parts : [];
  if (members.length > 0 || repeated.toLowerCase() !== column.toLowerCase()) return undefined;
  if (value === undefined || !isValueNode(value)) return undefined;
  const operation = operand.name === "+" ? "add" : "take";
  return { operation, value, ...(repeated === column ? {} : { repeated }) };
}
