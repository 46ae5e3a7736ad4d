import { ulidTimeMs } from "../../../../../common/ids.ts";
import type { ObjectStore, StoredRecord } from "../../../../store/objects.ts";
import { inPages, keyText } from "../../reading/locate.ts";
import type { WriteClock } from "./writeclock.ts";

interface Source {
  readonly store: ObjectStore;
  readonly clock: WriteClock;
}

/** A record to write above every earlier write and removal of its id. */
export interface AskedRecord {
  readonly record: StoredRecord;
  /**
   * Time of the write, if the caller has chosen it already. Otherwise the write gets a time above all that are read.
   */
  readonly writeUs: number | undefined;
}

/** The record to write, and the stored one that it replaces. */
export interface Rewritten {
  readonly record: StoredRecord;
  readonly before: StoredRecord | undefined;
}

/**
 * Gives each record its time of writing. Of several records with one id, the last one wins. If a record with the same
 * bytes is stored, it keeps its time, so a repetition changes nothing. The time of a removal cannot be read. So a
 * record whose own time is in the future may stay removed: if its time of writing was chosen before the removal, or by
 * a controller that did not remove it.
 */
export async function rewritten(asked: readonly AskedRecord[], { store, clock }: Source): Promise<Rewritten[]> {
  const found = await inPages(
    asked.map(({ record }) => record),
    (page) => store.getRecords(page),
  );
  const standing = new Map<string, StoredRecord>();
  const counts = new Map<string, number>();
  for (const record of found) if (record !== undefined) standing.set(record.id, record);
  // A removal in the same millisecond may cover every common time given so far.
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

/** The smallest allowed time. It is above the millisecond in the id, even after a double rounds its microseconds. */
export function leastRewrittenUs(id: string): number {
  return ((ulidTimeMs(id) ?? 0) + 2) * 1_000;
}
