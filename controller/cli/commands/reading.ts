import type { Script, Statement } from "../../../common/mql/index.ts";

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

/**
 * A statement that answers the columns of the MQL, and no row. `undefined` if the MQL is not a single SELECT, or its
 * LIMIT is a value for `?`.
 */
export async function columnsOnly(mql: string): Promise<string | undefined> {
  const { NOWHERE, parseScript, printStatement } = await import("../../../common/mql/index.ts");
  const [only, ...others] = statementsIn(parseScript, mql);
  if (only?.kind !== "select" || others.length > 0) return undefined;
  const { limit, offset } = only;
  if ([limit, offset].some((one) => one?.kind === "placeholder")) return undefined;
  return printStatement({ ...only, limit: { kind: "number", text: "0", span: NOWHERE } });
}

/** Returns no statement for a text that is no MQL: the controller tells the reason. */
function statementsIn(parseScript: (text: string) => Script, mql: string): readonly Statement[] {
  try {
    return parseScript(mql).statements;
  } catch {
    return [];
  }
}
