import { FILE_WORK_BATCH_MAX } from "../../../../common/limits.ts";

/** The items in groups of at most `FILE_WORK_BATCH_MAX`. */
export async function* batches<T>(items: AsyncIterable<T>): AsyncGenerator<readonly T[]> {
  let batch: T[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < FILE_WORK_BATCH_MAX) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
