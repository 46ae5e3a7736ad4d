import type { Row } from "../../../../common/value.ts";
import type { ObjectRow, Tally } from "../../objects/index.ts";
import { type AggregateSpec, Grouping } from "../expressions/aggregates/aggregate.ts";
import { ANY } from "../expressions/kind.ts";
import { freeing, PROCESS_MEMORY } from "../expressions/aggregates/memory.ts";
import type { Source } from "../expressions/source.ts";
import type { CountPlan } from "../plan/counting.ts";
import type { SelectPlan } from "../plan/plan.ts";
import { answerOf, groupsOf } from "./groups.ts";
import { windowed } from "./pages.ts";
import { collected, groupRows } from "./pipeline.ts";
import type { RunContext } from "./run.ts";
import { Slices } from "./slice.ts";

/** The answer from counts of objects, without rows. If indexes cannot count them, the answer is made from rows. */
export async function* countedOr(
  plan: SelectPlan,
  counting: CountPlan,
  context: RunContext,
  fromRows: () => AsyncIterable<readonly Row[]>,
): AsyncIterable<readonly Row[]> {
  const counts = await countsOf(counting, context);
  yield* counts === undefined ? fromRows() : countedGroups(plan, counting, { counts, slices: new Slices(context) });
}

async function countsOf(
  { requests }: CountPlan,
  { count, signal }: RunContext,
): Promise<readonly AsyncIterable<readonly Tally[]>[] | undefined> {
  const counts: AsyncIterable<readonly Tally[]>[] = [];
  for (const request of requests) {
    const told = await count?.({ ...request, ...(signal ? { signal } : {}) });
    if (told === undefined) return undefined;
    counts.push(told);
  }
  return counts;
}

interface Counted {
  readonly counts: readonly AsyncIterable<readonly Tally[]>[];
  readonly slices: Slices;
}

function countedGroups(
  plan: SelectPlan,
  { grouping }: CountPlan,
  { counts, slices }: Counted,
): AsyncIterable<readonly Row[]> {
  const memory = PROCESS_MEMORY.share(slices.tenant);
  const { keys, specs, groups } = groupsOf(plan, grouping);
  const holding = { source: chainedPages(counts, slices), slices, memory, rowWork: 1 };
  const whole = new Grouping(keys.map(tallySource), specs.map(weightedCount), memory);
  const rows = collected(holding, whole, (grouped) =>
    groupRows(grouped.rows(), groups, answerOf(plan, groups, memory)),
  );
  return freeing(memory, windowed(rows, plan));
}

async function* chainedPages(
  counts: readonly AsyncIterable<readonly Tally[]>[],
  slices: Slices,
): AsyncIterable<readonly Tally[]> {
  for (const pages of counts) {
    for await (const page of pages) {
      yield page;
      if (slices.isOverNow()) await slices.pause();
    }
  }
}

function weightedCount(): AggregateSpec<Tally> {
  const weight = ({ count }: Tally): number => count;
  return { name: "count", source: undefined, distinct: false, parameter: 0, writtenMs: () => 0, weight };
}

function tallySource({ label, kinds }: Source<ObjectRow>): Source<Tally> {
  const [kind = ANY] = kinds;
  return { label, kinds, read: ({ value }) => value, kind: () => kind };
}
