import { SORT_RUN_ITEMS } from "../../common/limits.ts";
import type { ThreadSlices } from "./slices.ts";

/**
 * The items in the order of their keys, sorted in slices: runs of them at once, which are then merged. Items of equal
 * keys keep their order.
 */
export async function sortedInSlices<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
  slices: Pick<ThreadSlices, "isOverNow" | "pause">,
): Promise<readonly T[]> {
  let runs: (readonly T[])[] = [];
  for (let at = 0; at < items.length; at += SORT_RUN_ITEMS) {
    runs.push(items.slice(at, at + SORT_RUN_ITEMS).sort((one, other) => compare(keyOf(one), keyOf(other))));
    if (slices.isOverNow()) await slices.pause();
  }
  while (runs.length > 1) {
    const longer: (readonly T[])[] = [];
    for (let at = 0; at < runs.length; at += 2)
      longer.push(await merged(runs[at] ?? [], runs[at + 1] ?? [], { keyOf, slices }));
    runs = longer;
  }
  return runs[0] ?? [];
}

interface Merging<T> {
  readonly keyOf: (item: T) => string;
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause">;
}

async function merged<T>(left: readonly T[], right: readonly T[], { keyOf, slices }: Merging<T>): Promise<T[]> {
  const all: T[] = [];
  let [fromLeft, fromRight] = [0, 0];
  while (fromLeft < left.length && fromRight < right.length) {
    const [one, other] = [left[fromLeft] as T, right[fromRight] as T];
    const isLeft = compare(keyOf(one), keyOf(other)) <= 0;
    all.push(isLeft ? one : other);
    if (isLeft) fromLeft += 1;
    else fromRight += 1;
    if (all.length % SORT_RUN_ITEMS === 0 && slices.isOverNow()) await slices.pause();
  }
  return all.concat(left.slice(fromLeft), right.slice(fromRight));
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
