import { AppError } from "../../../../common/errors.ts";
import { type Call, type Field, printCall } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import type {
  CountRequest,
  ObjectRow,
  OrderedRead,
  OrderedRequest,
  ReadRequest,
  Tally,
  Unrestricted,
} from "../../objects/index.ts";
import type { Fields } from "../expressions/fields.ts";
import type { Kind } from "../expressions/kind.ts";
import type { Arguments } from "../expressions/literal.ts";
import { compilePredicate, type Predicate, type Source } from "../expressions/predicate.ts";
import type { TablePlan } from "../plan/plan.ts";
import { visibility } from "../plan/names/scope.ts";
import type { QueryMeta } from "../types.ts";
import type { QuerySliceContext, Slices } from "./slice.ts";
import type { StepTimes } from "./steps.ts";

export interface RunContext extends QuerySliceContext {
  readonly read: (request: ReadRequest) => AsyncIterable<readonly ObjectRow[]>;
  /** Reads along an index. If it is absent, or `undefined` for a request, everything has to be read. */
  readonly inOrder?: ((request: OrderedRequest) => Promise<OrderedRead | undefined>) | undefined;
  /** Counts without rows. If it is absent, or `undefined` for a request, the rows have to be read. */
  readonly count?: ((request: CountRequest) => Promise<AsyncIterable<readonly Tally[]> | undefined>) | undefined;
  /** Reads the ends of selected relations. */
  readonly objects: Unrestricted<"edges" | "get">;
  /** Folder for sorts that exceed memory. Absent: they are refused beyond `QUERY_SORT_MAX_ROWS`. */
  readonly sortFolder?: string | undefined;
  /** For EXPLAIN ANALYZE. */
  readonly steps?: StepTimes | undefined;
}

/**
 * One line of a plan. For a read it may have the estimated number of objects that the read looks at, if that is known
 * and may be shown.
 */
export type PlanStep = string | { readonly work: string; readonly estimated: number };

/** The same step, shown as part of `name`. */
export function within(name: string, step: PlanStep): PlanStep {
  return typeof step === "string" ? `${name}: ${step}` : { ...step, work: `${name}: ${step.work}` };
}

/** A SELECT or UNION whose names, values and rights are checked. */
export interface Reading {
  readonly meta: QueryMeta;
  /** Rows page by page. Nothing is read before the first page is taken. */
  rows(context: RunContext): AsyncIterable<readonly Row[]>;
  /** One line for each step. `stepsOf` describes a read, or a count by indexes only. */
  describe(
    stepsOf: (reads: readonly ReadRequest[], counts?: readonly CountRequest[]) => Promise<readonly PlanStep[]>,
  ): Promise<readonly PlanStep[]>;
}

/** A read that answers rows of known columns. */
export interface RowReading extends Reading {
  /** The kinds of the values that the rows have under that name. */
  kindsOf(name: string): readonly Kind[];
}

/**
 * The rows that exist for the principal and fulfil the condition. They are checked here, because the store may return
 * more.
 */
export async function* matching(work: FoundWork, context: RunContext): AsyncIterable<readonly ObjectRow[]> {
  const { reads, filter, slices, rowWork = 1 } = work;
  for (const read of reads) {
    slices.check();
    for await (const page of context.read(requested(read, context))) {
      if (slices.isOverNow()) await slices.pause();
      const kept: ObjectRow[] = [];
      for (const row of page) {
        if (filter(row) === true) kept.push(row);
        if (slices.isOver(rowWork)) await slices.pause();
      }
      if (kept.length > 0) yield kept;
    }
  }
}

export interface FoundWork {
  readonly reads: readonly ReadRequest[];
  readonly filter: Predicate<ObjectRow>;
  readonly slices: Slices;
  /** Cost of the condition for one row, in ordinary rows. */
  readonly rowWork?: number;
}

/** The read with the signal of the call. */
export function requested(read: ReadRequest, { signal }: Pick<RunContext, "signal">): ReadRequest {
  return signal ? { ...read, signal } : read;
}

/** Binds the condition before anything is read, so that a wrong name or value is an error at once. */
export function filterOf(plan: Pick<TablePlan, "scope" | "where" | "values">): Predicate<ObjectRow> {
  const { scope, where, values } = plan;
  const visible = visibility(scope);
  if (!where) return visible;
  const wanted = compilePredicate(where, { values, resolve: (operand) => sourceInWhere(operand, scope, values) });
  return (row) => visible(row) === true && wanted(row);
}

/** The value of an operand in WHERE. */
export function sourceInWhere<R>(operand: Field | Call, fields: Fields<R>, values: Arguments): Source<R> {
  if (operand.kind === "field") return fields.source(fields.bind(operand, values));
  throw new AppError("invalid", `[Valid] ${printCall(operand)} cannot stand in WHERE: use HAVING.`);
}
