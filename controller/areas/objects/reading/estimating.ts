import { QUERY_ESTIMATED_FINDS_MAX } from "../../../../common/limits.ts";
import type { ObjectStore } from "../../../store/objects.ts";
import type { ReadPlan } from "./readplan.ts";

/**
 * About how many objects a read looks at: of each find as many as bear the rarest of the terms that it goes by, or lie in
 * the range that it goes by.
 * `undefined` where the store does not know, or where it would have to be asked too often.
 */
export async function estimatedReads(
  { byId, provided, timelines, branches }: ReadPlan,
  store: Pick<ObjectStore, "estimate">,
): Promise<number | undefined> {
  if (provided.length > 0 || timelines.length > 0) return undefined;
  if (byId !== undefined) return byId.length;
  const finds = branches.flatMap((branch) => branch.finds);
  if (finds.length > QUERY_ESTIMATED_FINDS_MAX) return undefined;
  let sum = 0;
  for (const { request } of finds) {
    const { terms, range } = await store.estimate(request);
    const counts = terms.flatMap(({ count, isRead }) => (isRead && count !== undefined ? [count] : []));
    if (range !== undefined) counts.push(range);
    if (counts.length === 0) return undefined;
    sum += Math.min(...counts);
  }
  return sum;
}
