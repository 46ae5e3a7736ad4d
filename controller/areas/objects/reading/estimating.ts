import { QUERY_ESTIMATED_FINDS_MAX } from "../../../../common/limits.ts";
import type { ObjectStore } from "../../../store/objects.ts";
import type { ReadPlan, Timeline } from "./readplan.ts";
import { timelineRequest } from "./timelines.ts";

type Estimating = Pick<ObjectStore, "estimate" | "countRecords">;

/**
 * Estimates how many objects a read looks at. A find looks at the objects of the rarest term that it reads by, or at
 * those in its range if they are fewer. For a span of records it is their number; if the store counts them in parts, it
 * is the first part, a lower bound. `undefined` if the store does not know, or if the read has more than
 * `QUERY_ESTIMATED_FINDS_MAX` finds.
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

/**
 * Number of the records in a span. Undefined if there are terms, because such records can be counted only by reading
 * them.
 */
async function recordsOf(timeline: Timeline, store: Estimating): Promise<number | undefined> {
  const request = timelineRequest(timeline);
  if (request === undefined) return 0;
  const { terms, ...span } = request;
  return terms.length > 0 ? undefined : (await store.countRecords(span)).count;
}
