import { ulidTimeMs } from "../../../../common/ids.ts";
import type { ObjectStore, StoredRecord } from "../../../store/objects.ts";
import { inPages, keyText } from "../reading/locate.ts";
import type { WriteClock } from "./writeclock.ts";

interface Source {
  readonly store: ObjectStore;
  readonly clock: WriteClock;
}

/** A record that is to stand as given, whatever was written or removed under its id. */
export interface AskedRecord {
  readonly record: StoredRecord;
  /** A time that was given to the write before; absent: one above all that is read. */
  readonly writeUs: number | undefined;
}

/** A record as it is to be written, and the one that is there until then. */
export interface Rewritten {
  readonly record: StoredRecord;
  readonly before: StoredRecord | undefined;
}

/**
 * In the order of what is asked: of records of one id the last one stands. One that stands so already keeps its time, so
 * that a repetition changes nothing. A removal leaves nothing to be read: that of a record whose time is still to come
 * may be above a time that is given before it, or by another controller, and then the record stays removed until then.
 */
export async function rewritten(asked: readonly AskedRecord[], { store, clock }: Source): Promise<Rewritten[]> {
  const found = await inPages(
    asked.map(({ record }) => record),
    (page) => store.getRecords(page),
  );
  const standing = new Map<string, StoredRecord>();
  const counts = new Map<string, number>();
  for (const record of found) if (record !== undefined) standing.set(record.id, record);
  // Above every time that a removal of the same millisecond may have covered.
  const commonUs = clock.presetUs();
  return asked.map(({ record, writeUs }) => {
    const there = standing.get(record.id);
    const earlier = counts.get(record.id) ?? 0;
    counts.set(record.id, earlier + 1);
    const rewrittenUs =
      there !== undefined && Buffer.compare(there.value, record.value) === 0
        ? there.rewrittenUs
        : Math.max(leastRewrittenUs(record.id), writeUs ?? aboveUs({ record, there, commonUs, clock })) + earlier;
    const made = rewrittenUs === undefined ? record : { ...record, rewrittenUs };
    standing.set(record.id, made);
    return { record: made, before: there };
  });
}

function aboveUs(of: {
  readonly record: StoredRecord;
  readonly there: StoredRecord | undefined;
  readonly commonUs: number;
  readonly clock: WriteClock;
}): number {
  const lastUs = Math.max(of.there?.rewrittenUs ?? 0, leastRewrittenUs(of.record.id));
  return of.clock.ofObject([keyText(of.record)], lastUs, of.commonUs);
}

/** Later than the millisecond in the id by so much that it stays so where no double holds its microseconds exactly. */
export function leastRewrittenUs(id: string): number {
  return ((ulidTimeMs(id) ?? 0) + 2) * 1_000;
}
