import { mapLimited } from "../../../../common/concurrency.ts";
import { FILE_BLOB_CALLS_IN_FLIGHT } from "../../../../common/limits.ts";
import type { Retiring } from "../work-journal.ts";
import { batches } from "./batches.ts";
import type { KeptTreeRun } from "./run.ts";
import { NO_ENTRIES, pairs } from "./sorting.ts";

/**
 * Removes the marks of the list that the work retires, except those that another list has at the same path, and then
 * the list. Does nothing if the work retires no list. May be repeated after any step.
 */
export async function retire(run: KeptTreeRun): Promise<void> {
  const { retiring } = run.progress();
  if (!retiring) return;
  if (!retiring.isUnmarked) {
    await unmark(run, retiring);
    // A list that is removed in part cannot be read: from here on it is not read any more.
    await run.step({ ...run.progress(), retiring: { ...retiring, isUnmarked: true } });
  }
  await run.lists.remove(retiring.list);
}

async function unmark({ lists, blobs, signal }: KeptTreeRun, { list, except }: Retiring): Promise<void> {
  const stays = except === undefined ? NO_ENTRIES : lists.read(except, signal);
  for await (const some of batches(pairs(lists.read(list, signal), stays))) {
    const contents = some.flatMap(({ before, after }) =>
      before?.content && before.content.mark !== after?.content?.mark ? [before.content] : [],
    );
    await mapLimited(contents, FILE_BLOB_CALLS_IN_FLIGHT, ({ digest, mark }) => blobs.unmark(digest, mark));
  }
}
