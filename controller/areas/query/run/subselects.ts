import { AppError } from "../../../../common/errors.ts";
import { QUERY_SUB_SELECT_VALUES_MAX } from "../../../../common/limits.ts";
import { type Match, NOWHERE, type Select, type Union, valueNode } from "../../../../common/mql/index.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { bytesOf, freeing, type MemoryShare, PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import { about } from "../expressions/placing.ts";
import { canonical } from "../expressions/questions.ts";
import { type Asking, subSelectsOf, withAnswers } from "../plan/subselects.ts";
import { type PlanStep, type Reading, type RunContext, within } from "./run.ts";

/** The different values that each SELECT in the conditions of a statement answered, without nulls. */
export type SubAnswers = readonly (readonly Value[])[];

type StepsOf = Parameters<Reading["describe"]>[0];

/** A statement with `IN (SELECT …)` in its conditions, and the plans of these SELECTs. */
export interface SubSelects<S extends Asking> {
  /**
   * The statement with a placeholder value for the answer of each SELECT, so that errors are found before the answers
   * are there.
   */
  readonly unanswered: S;
  /** Reads each SELECT once, one after the other. `memory` takes the bytes of the answers. */
  found(context: RunContext, memory: Pick<MemoryShare, "take">): Promise<SubAnswers>;
  /** The statement with these answers as if they were written in it, so that they narrow a read. */
  answered(answers: SubAnswers): S;
  describe(stepsOf: StepsOf): Promise<readonly PlanStep[]>;
}

/**
 * Undefined for a statement without such SELECTs. `inner` plans them for the principal of the statement, so they have
 * no other rights.
 */
export function subSelects<S extends Asking>(
  statement: S,
  inner: (select: Select) => Reading,
): SubSelects<S> | undefined {
  const nodes = subSelectsOf(statement);
  if (nodes.length === 0) return undefined;
  const readings = nodes.map(({ span, select }) => about(span, () => inner(oneColumn(select))));
  const answered = (answers: SubAnswers): S =>
    withAnswers(statement, new Map(nodes.map(({ select }, at) => [select, (answers[at] ?? []).map(valueNode)])));
  return {
    unanswered: answered(nodes.map(() => SOME_VALUE)),
    answered,
    async found(context, memory) {
      const answers: (readonly Value[])[] = [];
      for (const reading of readings) answers.push(await valuesOf(reading.rows(context), memory));
      return answers;
    },
    async describe(stepsOf) {
      const lines: PlanStep[] = [];
      for (const reading of readings)
        lines.push(...(await reading.describe(stepsOf)).map((step) => within("for IN", step)));
      return lines;
    },
  };
}

/** Used in place of values that are not there yet. */
const SOME_VALUE: readonly Value[] = ["…"];

interface Plan<S, R> {
  readonly whole: (statement: S) => R;
  readonly inner: (select: Select) => Reading;
}

/** Reads these SELECTs before the rest of the statement. Undefined for a statement without any. */
export function readingWithSubSelects<S extends Select | Union | Match, R extends Reading>(
  statement: S,
  plan: Plan<S, R>,
): R | undefined {
  const asked = subSelects(statement, plan.inner);
  if (!asked) return undefined;
  if ("cursor" in statement && statement.cursor)
    throw new AppError(
      "invalid",
      "[Valid] CURSOR and IN (SELECT …) exclude each other: its values may be others on each page.",
    );
  const checked = plan.whole(asked.unanswered);
  return {
    ...checked,
    rows(context) {
      const memory = PROCESS_MEMORY.share(context.tenant);
      return freeing(memory, rowsBy(asked, { plan, memory }, context));
    },
    describe: async (stepsOf) => [...(await asked.describe(stepsOf)), ...(await checked.describe(stepsOf))],
  };
}

async function* rowsBy<S extends Asking>(
  asked: SubSelects<S>,
  { plan, memory }: { readonly plan: Plan<S, Reading>; readonly memory: MemoryShare },
  context: RunContext,
): AsyncIterable<readonly Row[]> {
  yield* plan.whole(asked.answered(await asked.found(context, memory))).rows(context);
}

/** The different values of the only column, without nulls. */
async function valuesOf(
  pages: AsyncIterable<readonly Row[]>,
  memory: Pick<MemoryShare, "take">,
): Promise<readonly Value[]> {
  const values = new Map<string, Value>();
  for await (const page of pages) {
    for (const row of page) {
      const [value = null] = Object.values(row);
      const name = canonical(value);
      if (value === null || values.has(name)) continue;
      if (values.size >= QUERY_SUB_SELECT_VALUES_MAX) throw tooMany();
      memory.take(bytesOf(name) + bytesOf(value));
      values.set(name, value);
    }
  }
  return [...values.values()];
}

/** The SELECT without the default limit. `AppError("invalid")` if it has not exactly one column. */
function oneColumn(select: Select): Select {
  const [item] = select.items;
  if (select.items.length !== 1 || item?.kind !== "item")
    throw new AppError("invalid", "[Valid] The SELECT in IN (SELECT …) answers one column.");
  return { ...select, limit: select.limit ?? { kind: "number", text: "-1", span: NOWHERE } };
}

function tooMany(): AppError {
  return new AppError(
    "too_large",
    `[Exec] The SELECT in IN (SELECT …) answers more than ${QUERY_SUB_SELECT_VALUES_MAX} different values: narrow it by WHERE.`,
    { details: { limit: "QUERY_SUB_SELECT_VALUES_MAX" } },
  );
}
