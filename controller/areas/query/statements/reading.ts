import { AppError } from "../../../../common/errors.ts";
import type { Match, Select, Statement, Union } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import type { CountRequest, ReadRequest } from "../../objects/index.ts";
import { seesAll } from "../../permissions/index.ts";
import type { Arguments } from "../expressions/literal.ts";
import { settled } from "../expressions/settled.ts";
import { eachChecked, requireFew } from "./executions.ts";
import { planGraph } from "../graph/reading.ts";
import type { LeftOut } from "../plan/plan.ts";
import { plannedAtOnce, planInSteps, planReading } from "../run/reading.ts";
import type { PlanStep, Reading } from "../run/run.ts";
import { afterSteps, drained } from "../run/slice.ts";
import { readingWithSubSelects } from "../run/subselects.ts";
import { type PrepareContext, type Prepared, runContext, presentOf, readsSchema } from "./prepared.ts";

/**
 * Checks every execution now, and binds it again when its rows are taken, because a bound statement may take much
 * memory.
 */
export async function select(statement: Select | Union | Match, context: PrepareContext): Promise<Prepared> {
  const [first = [], ...others] = context.executions;
  if (others.length > 0 && "cursor" in statement && statement.cursor)
    throw new AppError("invalid", "[Valid] CURSOR goes with one list of values.");
  const leftOut: LeftOut = { more: false };
  const steps = afterSteps(
    readingInSteps(statement, context, { values: first, leftOut }),
    planningOf(statement),
    context.slices,
  );
  const reading = steps instanceof Promise ? await steps : steps;
  const rows = reading.rows(runContext(context));
  requireFew(statement, context.executions);
  if (others.length > 0)
    await eachChecked(context, (values) =>
      readingOf(statement, context, { values, leftOut }).rows(runContext(context)),
    );
  return {
    meta: reading.meta,
    isRead: true,
    run: () => (others.length === 0 ? rows : allExecutions(statement, context, leftOut)),
    explain: () =>
      reading.describe(async (reads, counts) => [
        ...(await readSteps(reads, context)),
        ...(counts && (await areCounted(counts, context)) ? ["counted without rows"] : []),
      ]),
  };
}

async function* allExecutions(
  statement: Select | Union | Match,
  context: PrepareContext,
  leftOut: LeftOut,
): AsyncIterable<readonly Row[]> {
  for (const values of context.executions) {
    if (context.slices.isOverNow()) await context.slices.pause();
    yield* readingOf(statement, context, { values, leftOut }).rows(runContext(context));
  }
}

function readingOf(written: Select | Union | Match, context: PrepareContext, execution: Execution): Reading {
  return drained(readingInSteps(written, context, execution));
}

/** Characters of a statement for which a planning step costs as much as an ordinary row. */
const CHARACTERS_PER_ROW = 64;

/** Cost of one planning step of the statement, in ordinary rows. */
function planningOf({ span }: Statement): number {
  return (span.end - span.start) / CHARACTERS_PER_ROW;
}

interface Execution {
  readonly values: Arguments;
  readonly leftOut: LeftOut;
}

/** Like `readingOf`, in steps. A step may take long if the conditions of the statement are long. */
function* readingInSteps(
  written: Select | Union | Match,
  context: PrepareContext,
  { values, leftOut }: Execution,
): Generator<undefined, Reading> {
  const { principal, catalog, objects } = context;
  const statement = settled(written, presentOf(context, values));
  // A statement in which nothing has to be settled is short, and contains no other SELECT.
  if (statement === written && statement.kind === "select")
    return plannedAtOnce(statement, principal, { catalog, values, leftOut, isRepeated: true });
  yield;
  if (statement.kind !== "match") return yield* planInSteps(statement, principal, { catalog, values, leftOut });
  const whole = (match: Match): Reading => planGraph(match, { principal, catalog, objects, values });
  const inner = (part: Select): Reading => planReading(part, principal, { catalog, values });
  return readingWithSubSelects(statement, { whole, inner }) ?? whole(statement);
}

export async function readSteps(reads: readonly ReadRequest[], context: PrepareContext): Promise<readonly PlanStep[]> {
  const steps: PlanStep[] = [];
  for (const read of reads) {
    if (readsSchema(read, context)) {
      steps.push("table of classes");
      continue;
    }
    const [first, ...others] = (await context.objects.unrestricted.explain(context.principal, read)).steps;
    const estimated = await estimatedOf(read, context);
    context.measures?.expect(read, estimated);
    if (first !== undefined) steps.push(estimated === undefined ? first : { work: first, estimated }, ...others);
  }
  return steps;
}

/** Estimates count all objects, so only a principal who sees every row and column of the tenant may see them. */
async function estimatedOf(
  read: ReadRequest,
  { principal, catalog, objects }: PrepareContext,
): Promise<number | undefined> {
  return seesAll(principal, catalog.tree("/")) ? objects.unrestricted.estimate(principal, read) : undefined;
}

async function areCounted(counts: readonly CountRequest[], context: PrepareContext): Promise<boolean> {
  const { objects, principal } = context;
  const counted = (request: CountRequest) => objects.unrestricted.count(principal, request);
  for (const request of counts) if (readsSchema(request, context) || !(await counted(request))) return false;
  return true;
}
