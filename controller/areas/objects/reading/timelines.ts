import { ULID_TIME_MAX_MS } from "../../../../common/ids.ts";
import { OBJECT_PAGE_MAX, TIMELINE_PAGE_ROWS } from "../../../../common/limits.ts";
import type { ObjectStore, StoredRecord, TimelineRequest } from "../../../store/objects.ts";
import type { ObjectRow } from "../types.ts";
import { recordObject, type WantedColumns, wantedColumns } from "../values/records.ts";
import type { Timeline } from "./readplan.ts";

const PAGE_MIN_ROWS = 16;

export interface TimelineSource {
  readonly store: ObjectStore;
  readonly expected: number | undefined;
  /** Names of the columns that are read; absent: all. */
  readonly columns: ReadonlySet<string> | undefined;
  readonly check: () => void;
}

/** Records of all timelines together, newest first, each once. */
export async function* mergedTimelines(
  timelines: readonly Timeline[],
  source: TimelineSource,
): AsyncGenerator<readonly ObjectRow[]> {
  const wanted = Math.min(OBJECT_PAGE_MAX, Math.max(PAGE_MIN_ROWS, source.expected ?? TIMELINE_PAGE_ROWS));
  const limit = Math.max(PAGE_MIN_ROWS, Math.ceil(wanted / Math.max(1, timelines.length)));
  const streams = timelines.map((timeline) => new Stream(timeline, limit, source));
  const [only] = streams;
  if (streams.length === 1 && only) {
    yield* only.pages();
    return;
  }
  let rows: ObjectRow[] = [];
  let last: StoredRecord | undefined;
  for (;;) {
    for (const stream of streams) if (stream.head === undefined && !stream.ended) await stream.fill();
    const next = newest(streams);
    if (next === undefined) break;
    const record = next.take();
    if (record.id === last?.id && record.cid === last.cid) continue;
    last = record;
    rows.push(next.objectOf(record));
    if (rows.length < wanted) continue;
    yield rows;
    rows = [];
  }
  if (rows.length > 0) yield rows;
}

/**
 * The stream with the newest record. Ids begin with the time. Among equal ids the class decides, so the same record of
 * two timelines comes twice in a row.
 */
function newest(streams: readonly Stream[]): Stream | undefined {
  let best: Stream | undefined;
  for (const stream of streams) {
    if (stream.head !== undefined && (best?.head === undefined || isNewer(stream.head, best.head))) best = stream;
  }
  return best;
}

function isNewer(one: StoredRecord, other: StoredRecord): boolean {
  return one.id === other.id ? one.cid > other.cid : one.id > other.id;
}

/** `undefined` if the range of times is empty. */
export function timelineRequest({
  view,
  terms,
  ...span
}: Timeline): (TimelineRequest & Pick<Timeline, "terms">) | undefined {
  const fromMs = Math.max(0, Math.ceil(span.fromMs));
  const toMs = Math.min(ULID_TIME_MAX_MS, Math.floor(span.toMs) + 1);
  return fromMs >= toMs ? undefined : { cid: view.cid, fromMs, toMs, terms };
}

class Stream {
  readonly #timeline: Timeline;
  readonly #wanted: WantedColumns | undefined;
  readonly #limit: number;
  readonly #source: TimelineSource;
  #items: readonly StoredRecord[] = [];
  #at = 0;
  #cursor: string | undefined;
  ended = false;

  constructor(timeline: Timeline, limit: number, source: TimelineSource) {
    this.#timeline = timeline;
    this.#wanted = source.columns && wantedColumns(timeline.view, source.columns);
    this.#limit = limit;
    this.#source = source;
  }

  get head(): StoredRecord | undefined {
    return this.#items[this.#at];
  }

  take(): StoredRecord {
    const record = this.#items[this.#at];
    if (record === undefined) throw new RangeError("The stream has no head.");
    this.#at++;
    return record;
  }

  objectOf(record: StoredRecord): ObjectRow {
    return recordObject(this.#timeline.view, record, this.#wanted);
  }

  /** Pages of the remaining records, in the order of the store. */
  async *pages(): AsyncGenerator<readonly ObjectRow[]> {
    for (;;) {
      await this.fill();
      if (this.head === undefined) return;
      const records = this.#items.slice(this.#at);
      this.#at = this.#items.length;
      yield records.map((record) => this.objectOf(record));
    }
  }

  /** Reads pages until there is a record or the end. */
  async fill(): Promise<void> {
    const request = timelineRequest(this.#timeline);
    if (request === undefined) this.ended = true;
    while (request !== undefined && this.head === undefined && !this.ended) {
      this.#source.check();
      const page = { limit: this.#limit, ...(this.#cursor === undefined ? {} : { cursor: this.#cursor }) };
      const answer = await this.#source.store.timeline({ ...request, valuesOnly: true }, page);
      this.#items = answer.items;
      this.#at = 0;
      this.#cursor = answer.cursor;
      this.ended = answer.cursor === undefined;
    }
  }
}
