import { AppError } from "../../../../common/errors.ts";
import { NOWHERE, type Select, type SelectRef, type Union } from "../../../../common/mql/index.ts";
import type { ReadRequest } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { ANY } from "../expressions/kind.ts";
import { about } from "../expressions/placing.ts";
import { type Answer, type AnsweredColumn, answeredRow, answerOf, type Answers } from "../plan/answered.ts";
import { narrowedInside } from "../plan/inside.ts";
import { type PlanStep, type RowReading, type RunContext, within } from "./run.ts";

interface Inner {
  readonly reading: RowReading;
  readonly answer: Answer;
}

interface Planning {
  readonly principal: Principal;
  readonly inner: (select: Select | Union) => RowReading;
}

/** Plans of the SELECTs behind FROM and JOIN, and the reading of the outer SELECT from their answers. */
export interface AnswersInside {
  readonly answers: Answers;
  readonly around: <R extends RowReading>(reading: R) => R;
}

/**
 * Plans the SELECTs behind FROM and JOIN for the same principal, so they have no other rights. Undefined if there are
 * only classes.
 */
export function answersInside(select: Select, planning: Planning): AnswersInside | undefined {
  const sources = [select.from, ...select.joins.map((join) => join.class)].filter((one) => one.kind === "selected");
  if (sources.length === 0) return undefined;
  if (select.cursor)
    throw new AppError(
      "invalid",
      "[Valid] CURSOR and FROM (SELECT …) exclude each other: its rows have no place of their own.",
    );
  const inners = new Map(sources.map((source) => [source, innerOf(source, planning)]));
  return {
    answers: new Map([...inners].map(([source, { answer }]) => [source, answer])),
    around(reading) {
      const narrowed = [...inners].map(([source, inner]) => narrowedInner(select, source, { inner, planning }));
      const byPath = new Map(narrowed.map((inner) => [inner.answer.view.path, inner]));
      return {
        ...reading,
        rows: (context) => reading.rows(readingAnswers(byPath, context)),
        describe: (stepsOf) => reading.describe((reads) => describedReads(reads, byPath, stepsOf)),
      };
    },
  };
}

/** Call after the outer SELECT is planned, so that errors in its conditions are reported for the outer SELECT. */
function narrowedInner(
  select: Select,
  source: SelectRef,
  { inner, planning }: { readonly inner: Inner; readonly planning: Planning },
): Inner {
  const narrowed = source === select.from ? narrowedInside(select, source, inner.answer) : undefined;
  return narrowed ? { ...inner, reading: planning.inner(allRows(narrowed)) } : inner;
}

function innerOf(source: SelectRef, { principal, inner }: Planning): Inner {
  return about(source.span, () => {
    const reading = inner(allRows(source.select));
    return { reading, answer: answerOf(principal, source.alias, columnsOf(reading)) };
  });
}

/** The SELECT without the default limit. */
function allRows(select: Select | Union): Select | Union {
  return { ...select, limit: select.limit ?? { kind: "number", text: "-1", span: NOWHERE } };
}

function columnsOf({ meta, kindsOf }: RowReading): readonly AnsweredColumn[] {
  return (meta.columns[meta.rootclass] ?? []).map((column) => {
    const [kind = ANY, ...others] = new Set(kindsOf(column.name));
    return { ...column, kind: others.length === 0 ? kind : ANY };
  });
}

type ByPath = ReadonlyMap<string, Inner>;

function readingAnswers(byPath: ByPath, context: RunContext): RunContext {
  const read: RunContext["read"] = (request) => {
    const inner = byPath.get(request.class);
    return inner ? answeredRows(inner, context) : context.read(request);
  };
  // The store does not know an answer as a class, so it cannot read it in order or count it.
  return { ...context, read, inOrder: undefined, count: undefined };
}

async function* answeredRows({ reading, answer }: Inner, context: RunContext): ReturnType<RunContext["read"]> {
  for await (const page of reading.rows(context)) yield page.map((row) => answeredRow(answer, row));
}

async function describedReads(
  reads: readonly ReadRequest[],
  byPath: ByPath,
  stepsOf: (reads: readonly ReadRequest[]) => Promise<readonly PlanStep[]>,
): Promise<readonly PlanStep[]> {
  const lines: PlanStep[] = [];
  for (const read of reads) {
    const inner = byPath.get(read.class);
    const steps = inner ? await inner.reading.describe(stepsOf) : await stepsOf([read]);
    lines.push(...(inner ? steps.map((step) => within(`for ${read.class}`, step)) : steps));
  }
  return lines;
}
