import type { ObjectStore, RecordsInCommit, StoredRecord } from "../objects.ts";
import type { Retry } from "./retry.ts";

/**
 * The same store; each call is repeated while it fails for a transient reason. `Retry` defines how often and how long.
 */
export function retrying(store: ObjectStore, retry: Retry): ObjectStore {
  return {
    ...(store.spansSeams === true && { spansSeams: true }),
    change: (changes, inCommit) => repeated(retry, inCommit, (records) => store.change(changes, records)),
    get: (keys, cells) => retry.run(() => store.get(keys, cells)),
    trace: (keys) => retry.run(() => store.trace(keys)),
    find: (request, page) => retry.run(() => store.find(request, page)),
    estimate: (request) => retry.run(() => store.estimate(request)),
    countClass: (term, cursor) => retry.run(() => store.countClass(term, cursor)),
    countRecords: (span, cursor) => retry.run(() => store.countRecords(span, cursor)),
    terms: (request, page) => retry.run(() => store.terms(request, page)),
    scan: (page) => retry.run(() => store.scan(page)),
    history: (key, range, page) => retry.run(() => store.history(key, range, page)),
    edges: (key, direction, page) => retry.run(() => store.edges(key, direction, page)),
    append: (records, inCommit) => repeated(retry, inCommit, (made) => store.append(records, made)),
    timeline: (request, page) => retry.run(() => store.timeline(request, page)),
    getRecords: (keys) => retry.run(() => store.getRecords(keys)),
    removeRecords: (keys) => retry.run(() => store.removeRecords(keys)),
  };
}

/** An attempt that failed may still run later: then it makes no records, because its outcome is no longer reported. */
function repeated(
  retry: Retry,
  inCommit: RecordsInCommit | undefined,
  write: (inCommit?: RecordsInCommit) => Promise<void>,
): Promise<void> {
  if (inCommit === undefined) return retry.run(() => write());
  return retry.run(async () => {
    let isOver = false;
    const records = (): readonly StoredRecord[] => (isOver ? [] : inCommit.records());
    try {
      await write({ records, failed: () => inCommit.failed(), also: inCommit.also });
    } catch (error) {
      inCommit.failed();
      inCommit.also?.failed();
      throw error;
    } finally {
      isOver = true;
    }
  });
}
