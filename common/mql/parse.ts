import type { Condition, Script, Statement } from "./ast.ts";
import { parseAlter, parseCreate, parseDrop } from "./parse-class.ts";
import { parseCondition as condition } from "./parse-condition.ts";
import { parseMatch } from "./parse-graph.ts";
import { parseSelect } from "./parse-select.ts";
import { parseDelete, parseInsert, parseUpdate } from "./parse-write.ts";
import { readAll, type TokenReader } from "./reader.ts";

const STATEMENTS: ReadonlyMap<string, (reader: TokenReader) => Statement> = new Map<
  string,
  (reader: TokenReader) => Statement
>([
  ["SELECT", parseSelect],
  ["INSERT", parseInsert],
  ["UPDATE", parseUpdate],
  ["DELETE", parseDelete],
  ["CREATE", parseCreate],
  ["DROP", parseDrop],
  ["ALTER", parseAlter],
  ["MATCH", parseMatch],
  ["BEGIN", parseBatch],
  ["EXPLAIN", parseExplain],
]);

/**
 * Statements separated by `;` or `；`, empty ones left out. Time and memory are linear in the text. A text that does not parse is
 * `AppError("syntax")` with `details: {line, column}`, one beyond a limit `AppError("too_large")`.
 */
export function parseScript(text: string): Script {
  return readAll(text, (reader) => {
    const statements = statementList(reader);
    if (reader.token.kind !== "end") throw reader.fail("a statement", "the end");
    return { kind: "script", statements, placeholders: reader.placeholders, span: { start: 0, end: text.length } };
  });
}

/** A condition alone, as after WHERE. */
export function parseConditionText(text: string): Condition {
  return readAll(text, (reader) => {
    const result = condition(reader);
    if (reader.token.kind !== "end") throw reader.fail("the end");
    return result;
  });
}

function statementList(reader: TokenReader): readonly Statement[] {
  const statements: Statement[] = [];
  for (;;) {
    while (reader.acceptSign(";"));
    const parse = STATEMENTS.get(reader.token.keyword);
    if (!parse) return statements;
    statements.push(parse(reader));
    if (!reader.acceptSign(";")) return statements;
  }
}

function parseBatch(reader: TokenReader): Statement {
  const start = reader.token.start;
  reader.enter();
  reader.expect("BEGIN");
  reader.accept("BATCH");
  const statements = statementList(reader);
  if (!reader.accept("END")) throw reader.fail("a statement");
  reader.leave();
  return { kind: "batch", statements, span: reader.spanFrom(start) };
}

function parseExplain(reader: TokenReader): Statement {
  const start = reader.token.start;
  reader.enter();
  reader.expect("EXPLAIN");
  const parse = STATEMENTS.get(reader.token.keyword);
  if (!parse) throw reader.fail("a statement");
  const statement = parse(reader);
  reader.leave();
  return { kind: "explain", statement, span: reader.spanFrom(start) };
}
