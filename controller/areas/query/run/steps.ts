/** Steps that rows take after they are read, as EXPLAIN ANALYZE names them. */
export type StepName =
  | "filter"
  | "relations"
  | "join"
  | "windows"
  | "group"
  | "sort"
  | "distinct"
  | "select list"
  | "union";

/** Receives the rows that each step yields and the time that the step worked for them. */
export interface StepTimes {
  step<T>(name: StepName, pages: AsyncIterable<readonly T[]>): AsyncIterable<readonly T[]>;
}

/** Returns the same pages. Without `steps` no time is measured. */
export function timed<T>(
  steps: StepTimes | undefined,
  name: StepName,
  pages: AsyncIterable<readonly T[]>,
): AsyncIterable<readonly T[]> {
  return steps ? steps.step(name, pages) : pages;
}
