import type { Condition, Script, Statement } from "./ast.ts";
import { parseAlter, parseCreate, parseDrop } from "./parse-class.ts";
import { parseCondition as condition } from "./parse-condition.ts";
import { parseMatch } from "./parse-graph.ts";
import { parseSelect, parseSubSelect } from "./parse-select.ts";
import { parseDelete, parseInsert, parseUpdate } from "./parse-write.ts";
import { atOnce, readAll, readWhole, type Steps, type TokenReader } from "./reader.ts";

/** Statements that are parsed in one step. */
const STATEMENTS: ReadonlyMap<string, (reader: TokenReader) => Statement> = new Map<
  string,
  (reader: TokenReader) => Statement
>([
  ["SELECT", parseSelect],
  ["UPDATE", parseUpdate],
  ["DELETE", parseDelete],
  ["CREATE", parseCreate],
  ["DROP", parseDrop],
  ["ALTER", parseAlter],
  ["MATCH", parseMatch],
]);

/** Statements with a part that may be long. */
const LONG_STATEMENTS: ReadonlyMap<string, (reader: TokenReader) => Steps<Statement>> = new Map<
  string,
  (reader: TokenReader) => Steps<Statement>
>([
  ["INSERT", parseInsert],
  ["BEGIN", parseBatch],
  ["EXPLAIN", parseExplain],
]);

/**
 * Parses statements separated by `;` or `；`; empty ones are ignored. Time and memory are linear in the text. Throws
 * `AppError("syntax")` with `details: {line, column}` if the text does not parse, and `AppError("too_large")` if it
 * exceeds a limit.
 */
export function parseScript(text: string): Script {
  return atOnce(parseScriptInSteps(text));
}

/** As `parseScript`, statement by statement and row by row: a step takes a few milliseconds at most. */
export function parseScriptInSteps(text: string): Steps<Script> {
  return readAll(text, function* (reader) {
    reader.subSelect = parseSubSelect;
    const statements = yield* statementList(reader);
    if (reader.token.kind !== "end") throw reader.fail("a statement", "the end");
    return { kind: "script", statements, placeholders: reader.placeholders, span: { start: 0, end: text.length } };
  });
}

/** Parses a condition alone, as after WHERE. It cannot contain `IN (SELECT …)`, because its callers run no SELECT. */
export function parseConditionText(text: string): Condition {
  return readWhole(text, (reader) => {
    const result = condition(reader);
    if (reader.token.kind !== "end") throw reader.fail("the end");
    return result;
  });
}

function* statementList(reader: TokenReader): Steps<readonly Statement[]> {
  const statements: Statement[] = [];
  for (;;) {
    while (reader.acceptSign(";")) yield* reader.step();
    const parse = statementParser(reader.token.keyword);
    if (!parse) return statements;
    reader.countStatement();
    yield* reader.step();
    statements.push(yield* parse(reader));
    if (!reader.acceptSign(";")) return statements;
  }
}

function statementParser(keyword: string): ((reader: TokenReader) => Steps<Statement>) | undefined {
  const parse = STATEMENTS.get(keyword);
  return parse ? (reader) => inOneStep(reader, parse) : LONG_STATEMENTS.get(keyword);
}

function* inOneStep(reader: TokenReader, parse: (reader: TokenReader) => Statement): Steps<Statement> {
  const statement = parse(reader);
  yield* reader.step();
  return statement;
}

function* parseBatch(reader: TokenReader): Steps<Statement> {
  const start = reader.token.start;
  reader.enter();
  reader.expect("BEGIN");
  reader.accept("BATCH");
  const statements = yield* statementList(reader);
  if (!reader.accept("END")) throw reader.fail("a statement");
  reader.leave();
  return { kind: "batch", statements, span: reader.spanFrom(start) };
}

function* parseExplain(reader: TokenReader): Steps<Statement> {
  const start = reader.token.start;
  reader.enter();
  reader.expect("EXPLAIN");
  const analyzes = reader.accept("ANALYZE");
  const parse = statementParser(reader.token.keyword);
  if (!parse) throw reader.fail("a statement");
  const statement = yield* parse(reader);
  reader.leave();
  return { kind: "explain", analyzes, statement, span: reader.spanFrom(start) };
}
