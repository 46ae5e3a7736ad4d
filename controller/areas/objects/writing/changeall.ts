import { CHANGE_BATCH_MAX } from "../../../../common/limits.ts";
import type { EntityChange, ObjectStore } from "../../../store/objects.ts";

/** Makes the changes in their order, in batches. */
export async function changeAll(store: ObjectStore, changes: readonly EntityChange[]): Promise<void> {
  for (let from = 0; from < changes.length; from += CHANGE_BATCH_MAX)
    await store.change(changes.slice(from, from + CHANGE_BATCH_MAX));
}
