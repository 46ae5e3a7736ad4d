import { printAlternative, printSegment, type Search } from "../../../../common/search/index.ts";
import type { ReadExplanation, ReadRequest } from "../../objects/index.ts";
import { describeShape, describeTable } from "../plan/plan.ts";
import type { SearchPlan } from "./plan.ts";

/**
 * One line for each step. Pass a plan that was made with `veiled`, because the row condition of the principal must not
 * be shown.
 */
export async function describeSearch(
  search: Search,
  plan: SearchPlan,
  explain: (read: ReadRequest) => Promise<ReadExplanation>,
): Promise<readonly string[]> {
  const steps: string[] = [];
  for (const read of plan.reads) steps.push(...(await explain(read)).steps);
  for (const read of plan.versioned?.reads ?? [])
    steps.push(...(await explain(read)).steps.map((step) => `versions of objects by ${step}`));
  return [...describeTable(plan, steps), ...textSteps(search), ...uniqStep(plan), ...describeShape(plan)];
}

/** Steps for words. They are not conditions on columns, so the plan of the SELECT does not have them. */
function textSteps(search: Search): readonly string[] {
  return search.segments.flatMap((segment) => {
    if (segment.kind !== "match" || segment.alternatives.every(({ words }) => words.length === 0)) return [];
    const [only, ...others] = segment.alternatives;
    return [`filter by words: ${only && others.length === 0 ? printAlternative(only) : printSegment(segment)}`];
  });
}

function uniqStep({ uniq }: SearchPlan): readonly string[] {
  return uniq.length > 0 ? [`the first of each ${uniq.map(({ label }) => label).join(", ")}`] : [];
}
