import { AppError } from "../../../common/errors.ts";
import { type Call, type Field, printCall } from "../../../common/mql/index.ts";
import type { ObjectRow, ReadRequest } from "../objects/index.ts";
import type { Fields } from "./fields.ts";
import type { Arguments } from "./literal.ts";
import type { TablePlan } from "./plan.ts";
import { compilePredicate, type Predicate, type Source } from "./predicate.ts";
import { visibility } from "./scope.ts";
import type { SliceContext, Slices } from "./slice.ts";

export interface RunContext extends SliceContext {
  readonly read: (request: ReadRequest) => AsyncIterable<readonly ObjectRow[]>;
  /** Where sorts may put what memory should not hold. */
  readonly sortFolder?: string | undefined;
}

/** The rows that exist for the principal and fulfil the condition, whatever the store answered. */
export async function* matching(
  work: { readonly reads: readonly ReadRequest[]; readonly filter: Predicate<ObjectRow>; readonly slices: Slices },
  context: RunContext,
): AsyncIterable<readonly ObjectRow[]> {
  const { reads, filter, slices } = work;
  for (const read of reads) {
    slices.check();
    for await (const page of context.read({ ...read, ...(context.signal ? { signal: context.signal } : {}) })) {
      if (slices.isOverNow()) await slices.pause();
      const kept: ObjectRow[] = [];
      for (const row of page) {
        if (filter(row) === true) kept.push(row);
        if (slices.isOver()) await slices.pause();
      }
      if (kept.length > 0) yield kept;
    }
  }
}

/** Bound now, so that a wrong name or value is an error before anything is read. */
export function filterOf(plan: Pick<TablePlan, "scope" | "where" | "values">): Predicate<ObjectRow> {
  const { scope, where, values } = plan;
  const visible = visibility(scope);
  if (!where) return visible;
  const wanted = compilePredicate(where, { values, resolve: (operand) => sourceInWhere(operand, scope, values) });
  return (row) => visible(row) === true && wanted(row);
}

/** What an operand of WHERE means. */
export function sourceInWhere<R>(operand: Field | Call, fields: Fields<R>, values: Arguments): Source<R> {
  if (operand.kind === "field") return fields.source(fields.bind(operand, values));
  throw new AppError("invalid", `[Valid] ${printCall(operand)} cannot stand in WHERE: use HAVING.`);
}
