import { encodeTime } from "ulid";
import { beforeEach } from "vitest";
import type { ObjectStore, RecordSpan, StoredRecord, TimelineRequest } from "../../objects.ts";
import { again, all, type ContractSubject, counted } from "../harness.ts";

export const TTL_MS = 2_000;
export const DAY_MS = 24 * 3_600_000;
const TIME_DIGITS = 10;

/** The records of the store under test. Every call is repeated after an outage. */
export interface RecordsSubject {
  readonly subject: () => ContractSubject;
  readonly objects: () => ObjectStore;
  readonly append: (...records: StoredRecord[]) => Promise<void>;
  /** The ids of a timeline, read in pages of at most `limit`. */
  readonly timeline: (request: TimelineRequest, limit?: number) => Promise<readonly string[]>;
  readonly get: (cid: number, id: string) => Promise<StoredRecord | undefined>;
  readonly countOf: (span: RecordSpan) => Promise<number>;
  /** The whole second in which a test began, so that engines that keep records by time read few times. */
  readonly startMs: () => number;
}

/** Call it in the block of the tests, before them. */
export function recordsSubject(subject: () => ContractSubject): RecordsSubject {
  const objects = (): ObjectStore => subject().store.objects;
  let begunMs = 0;
  beforeEach(() => {
    begunMs = Math.floor(subject().clock.nowMs() / 1_000) * 1_000;
  });
  return {
    subject,
    objects,
    append: (...records) => again(() => objects().append(records)),
    timeline: async (request, limit = 100) =>
      (await all(limit, (page) => objects().timeline(request, page))).map((record) => record.id),
    get: async (cid, id) => (await again(() => objects().getRecords([{ cid, id }])))[0],
    countOf: (span) => counted((cursor) => objects().countRecords(span, cursor)),
    startMs: () => begunMs,
  };
}

/** An id of this time. Ids of one time are in the order of their numbers. */
export function ulid(timeMs: number, number: number): string {
  return encodeTime(timeMs, TIME_DIGITS) + number.toString().padStart(16, "0");
}
