import type { Batch, Statement } from "../../../../common/mql/index.ts";
import type { Prepared } from "../statement.ts";
import type { BatchChange } from "./run.ts";

/** Batches in a batch are part of it. */
export function flat(statements: readonly Statement[]): readonly Statement[] {
  return statements.flatMap((statement) => (statement.kind === "batch" ? flat(statement.statements) : [statement]));
}

/** The batch that begins at this place of the text, also inside of others. */
export function batchAt(statements: readonly Statement[], at: number): Batch | undefined {
  for (const statement of statements) {
    if (statement.kind !== "batch") continue;
    const found = statement.span.start === at ? statement : batchAt(statement.statements, at);
    if (found) return found;
  }
  return undefined;
}

export interface PreparedStatement {
  readonly statement: Statement;
  readonly prepared: Prepared;
}

/** `undefined` when some of them cannot be repeated. */
export function batchChanges(statements: readonly PreparedStatement[]): readonly BatchChange[] | undefined {
  const changes: BatchChange[] = [];
  for (const { statement: { span }, prepared: { isRead, repeatable } } of statements) {
    if (!isRead && !repeatable) return undefined;
    if (repeatable) changes.push({ span, repeatable });
  }
  return changes;
}
