import { QUERY_ESTIMATED_FINDS_MAX } from "../../../../common/limits.ts";
import type { ObjectStore } from "../../../store/objects.ts";
import type { ReadPlan, Timeline } from "./readplan.ts";
import { timelineRequest } from "./timelines.ts";

type Estimating = Pick<ObjectStore, "estimate" | "countRecords">;

/**
 * About how many objects a read looks at: of each find as many as bear the rarest of the terms that it goes by, or lie in
 * the range that it goes by. Of a span of records it is their number, or the least that there are where one part of their
 * count does not tell it.
 * `undefined` where the store does not know, or where it would have to be asked too often.
 */
export async function estimatedReads(
  { byId, provided, timelines, branches }: ReadPlan,
  store: Estimating,
): Promise<number | undefined> {
  if (provided.length > 0) return undefined;
  if (byId !== undefined) return byId.length;
  const finds = branches.flatMap((branch) => branch.finds);
  if (finds.length + timelines.length > QUERY_ESTIMATED_FINDS_MAX) return undefined;
  let sum = 0;
  for (const timeline of timelines) {
    const count = await recordsOf(timeline, store);
    if (count === undefined) return undefined;
    sum += count;
  }
  for (const { request } of finds) {
    const { terms, range } = await store.estimate(request);
    const counts = terms.flatMap(({ count, isRead }) => (isRead && count !== undefined ? [count] : []));
    if (range !== undefined) counts.push(range);
    if (counts.length === 0) return undefined;
    sum += Math.min(...counts);
  }
  return sum;
}

/** Number of the records of a span. Undefined with terms: only reading the records could count those. */
async function recordsOf(timeline: Timeline, store: Estimating): Promise<number | undefined> {
  const request = timelineRequest(timeline);
  if (request === undefined) return 0;
  const { terms, ...span } = request;
  return terms.length > 0 ? undefined : (await store.countRecords(span)).count;
}
