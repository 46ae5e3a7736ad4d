import type { Statement } from "../../../common/mql/index.ts";

const READING: ReadonlySet<Statement["kind"]> = new Set(["select", "union", "selectEdgeTypes", "match"]);

/** True for statements that change nothing. `AppError("invalid")` for a text that is no MQL. */
export async function readsOnly(mql: string): Promise<boolean> {
  // Loaded when needed: other commands start faster without the parser.
  const { parseScript } = await import("../../../common/mql/index.ts");
  return parseScript(mql).statements.every(isReading);
}

function isReading(statement: Statement): boolean {
  if (statement.kind === "explain") return !statement.analyzes || isReading(statement.statement);
  return statement.kind === "batch" ? statement.statements.every(isReading) : READING.has(statement.kind);
}
