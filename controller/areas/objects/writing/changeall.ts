import { CHANGE_BATCH_MAX } from "../../../../common/limits.ts";
import type { EntityChange, ObjectStore } from "../../../store/objects.ts";

const NOTHING: Promise<void> = Promise.resolve();

/** Makes the changes in their order, in batches. */
export function changeAll(store: ObjectStore, changes: readonly EntityChange[]): Promise<void> {
  if (changes.length === 0) return NOTHING;
  return changes.length <= CHANGE_BATCH_MAX ? store.change(changes) : inBatches(store, changes);
}

async function inBatches(store: ObjectStore, changes: readonly EntityChange[]): Promise<void> {
  for (let from = 0; from < changes.length; from += CHANGE_BATCH_MAX)
    await store.change(changes.slice(from, from + CHANGE_BATCH_MAX));
}
