import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { ObjectRow } from "../../objects/index.ts";
import type { SelectPlan } from "../plan/plan.ts";
import { projection } from "./pipeline.ts";
import { type FoundWork, requested, type RunContext } from "./run.ts";
import { rowWorkOf } from "./work.ts";

interface Told {
  readonly onRow: ((answered: Row, row: ObjectRow) => void) | undefined;
  /** Called when the default limit left rows out, before the first row of the answer. */
  readonly onMore: () => void;
}

/** True if each row of the answer is made from one row that is read, in the order of reading. */
export function isOnePass({ paging, grouping, distinct, windows, follows, sort }: SelectPlan): boolean {
  return (
    !paging && !grouping && !distinct && windows.length === 0 && !follows && (sort === "none" || sort === "stored")
  );
}

/**
 * The answer of most queries in one pass over the rows that are read: condition, OFFSET, LIMIT and select list. Each
 * step by itself would cost a short query as much as the read.
 */
export async function* onePass(
  plan: SelectPlan,
  { reads, filter, slices, rowWork: testWork = 1 }: FoundWork,
  { context, told }: { readonly context: RunContext; readonly told: Told },
): AsyncGenerator<readonly Row[], void> {
  const rowWork = rowWorkOf(plan);
  const project = projection(plan.outputs, plan.fields);
  // With the default limit, all rows are held until it is known if there are more.
  const heldMax = plan.isCut ? Infinity : OBJECT_PAGE_MAX / rowWork;
  let skip = plan.offset;
  let left = (plan.limit ?? Infinity) + (plan.isCut ? 1 : 0);
  let page: Row[] = [];
  for (const read of reads) {
    if (left <= 0) break;
    slices.check();
    for await (const found of context.read(requested(read, context))) {
      if (slices.isOverNow()) await slices.pause();
      for (const row of found) {
        const isWanted = filter(row) === true && skip-- <= 0;
        if (isWanted) {
          const answered = project(row);
          told.onRow?.(answered, row);
          page.push(answered);
          left -= 1;
        }
        if (slices.isOver(isWanted ? testWork + rowWork : testWork)) await slices.pause();
        if (left <= 0) break;
        if (page.length < heldMax) continue;
        yield page;
        page = [];
      }
      if (left <= 0) break;
      if (plan.isCut || page.length === 0) continue;
      yield page;
      page = [];
    }
  }
  if (plan.isCut && left <= 0) {
    told.onMore();
    page.pop();
  }
  if (page.length > 0) yield page;
}
