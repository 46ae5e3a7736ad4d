import type { Batch, Statement } from "../../../../common/mql/index.ts";
import type { Repeatable } from "./repeatable.ts";
import type { BatchChange } from "./run.ts";

/** The statements, with those of inner batches in their place. */
export function flat(statements: readonly Statement[]): readonly Statement[] {
  return statements.flatMap((statement) => (statement.kind === "batch" ? flat(statement.statements) : [statement]));
}

/** The batch that begins at this place of the text. It may be inside another batch. */
export function batchAt(statements: readonly Statement[], at: number): Batch | undefined {
  for (const statement of statements) {
    if (statement.kind !== "batch") continue;
    const found = statement.span.start === at ? statement : batchAt(statement.statements, at);
    if (found) return found;
  }
  return undefined;
}

/** The part of a prepared statement that a batch needs. */
interface BatchStatement {
  readonly statement: Statement;
  readonly prepared: { readonly isRead: boolean; readonly repeatable?: Repeatable | undefined };
}

export interface BatchChanges {
  /** The changes that can be repeated. */
  readonly changes: readonly BatchChange[];
  /** True if `changes` has the changes of all statements. */
  readonly isWhole: boolean;
}

export function batchChanges(statements: readonly BatchStatement[]): BatchChanges {
  const changes = statements.flatMap(({ statement: { span }, prepared: { repeatable } }) =>
    repeatable ? [{ span, repeatable }] : [],
  );
  return { changes, isWhole: statements.every(({ prepared }) => prepared.isRead || prepared.repeatable !== undefined) };
}
