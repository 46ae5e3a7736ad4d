import { AppError } from "../../../../common/errors.ts";
import { QUERY_EXECUTED_MAX_CHARACTERS, QUERY_VALUE_ROWS_MAX } from "../../../../common/limits.ts";
import type { Script, Statement } from "../../../../common/mql/index.ts";
import { counted } from "../../../../common/text/counted.ts";
import type { Value } from "../../../../common/value.ts";
import type { Arguments } from "../expressions/literal.ts";
import type { Slices } from "../run/slice.ts";

/** The values of each execution of the script; none: one execution without values. */
export function executionsOf(script: Script, values: readonly (readonly Value[])[] | undefined): readonly Arguments[] {
  const executions = values && values.length > 0 ? values : [[]];
  if (executions.length > QUERY_VALUE_ROWS_MAX) {
    throw new AppError("too_large", `[Valid] At most ${QUERY_VALUE_ROWS_MAX} lists of values.`, {
      details: { limit: "QUERY_VALUE_ROWS_MAX" },
    });
  }
  if (executions.length > 1 && (script.statements.length > 1 || script.statements[0]?.kind === "batch")) {
    throw new AppError("invalid", "[Valid] Several lists of values go with one statement only.");
  }
  for (const execution of executions) {
    if (execution.length === script.placeholders) continue;
    throw new AppError(
      "invalid",
      `[Valid] The text has ${counted(script.placeholders, "placeholder")}, but ${counted(execution.length, "value was", "values were")} given.`,
    );
  }
  return executions;
}

/** Refuses a long statement with many lists of values. */
export function requireFew({ span }: Statement, { length }: readonly Arguments[]): void {
  if (length * (span.end - span.start) <= QUERY_EXECUTED_MAX_CHARACTERS) return;
  const message = `[Valid] The statement is too long for ${length} lists of values: its characters times the lists are at most ${QUERY_EXECUTED_MAX_CHARACTERS}.`;
  throw new AppError("too_large", message, { details: { limit: "QUERY_EXECUTED_MAX_CHARACTERS" } });
}

/** Binds the statement for each list of values after the first, in slices. */
export async function eachChecked(
  {
    executions,
    slices,
  }: { readonly executions: readonly Arguments[]; readonly slices: Pick<Slices, "isOverNow" | "pause"> },
  bind: (values: Arguments) => unknown,
): Promise<void> {
  for (const values of executions.slice(1)) {
    if (slices.isOverNow()) await slices.pause();
    bind(values);
  }
}
