import {
  COUNTED_ROWS_PER_READ,
  OBJECT_PAGE_MAX,
  RECORD_HOURS_AT_ONCE,
  RECORD_SHARDS_COUNTED_AT_ONCE,
} from "../../../../common/limits.ts";
import type { ClassCount, RecordSpan } from "../../objects.ts";
import { readCursor, requestText, writeCursor } from "../cursor.ts";
import type { Deadline } from "../deadline.ts";
import type { Tables } from "../tables.ts";
import type { HourReader } from "./hour-reader.ts";
import { isOnceEach, placesIn, type RecordHour, type RecordPlace } from "./hours.ts";
import { hourStartMs, idPrefix, PARTITION, recordTables } from "./places.ts";
import { isThere, TIMES } from "./rows.ts";

interface CountedPart {
  readonly count: number;
  readonly next: CountPlace | HourPlace | undefined;
}

/** A count continues with hours that have ids below this one, `atOnce` of them in parallel. */
interface CountPlace {
  readonly below: string;
  readonly atOnce: number;
}

/** A count continues within an hour. */
interface HourPlace {
  readonly hour: RecordHour;
  /** Ids below this one are still to be counted, if records may be in several partitions. */
  readonly below: string;
  /** Index of the first of the hour's partitions that are being counted. */
  readonly first: number;
  /** The driver's state of each of them, null at its end; empty at their beginning. */
  readonly states: readonly (string | null)[];
}

interface CountedPage {
  readonly hour: RecordHour;
  readonly place: RecordPlace;
  /** The driver's state from the previous page; null at the end. */
  readonly state: string | null | undefined;
}

/** Counts the records of a span, in parts that a cursor continues. */
export class RecordCounter {
  readonly #tables: Tables;
  readonly #reader: HourReader;
  /** Table names, by life. */
  readonly #names: readonly string[];

  constructor(tables: Tables, reader: HourReader) {
    this.#tables = tables;
    this.#reader = reader;
    this.#names = recordTables(tables.keyspace);
  }

  /** Counts hour by hour, reading only times: some partitions, or several sparse hours, at once. */
  async count(span: RecordSpan, cursor?: string): Promise<ClassCount> {
    const text = requestText(this.#tables.keyspace, "countRecords", span);
    const deadline = this.#tables.cassandra.deadline();
    const given = readCursor(text, { limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    const place =
      given === undefined ? { below: idPrefix(span.toMs), atOnce: 1 } : (JSON.parse(given) as CountPlace | HourPlace);
    const { count, next } = await ("hour" in place
      ? this.#countedHour(span, place, deadline)
      : this.#countedHours(span, place, deadline));
    return { count, ...(next === undefined ? {} : { cursor: writeCursor(text, JSON.stringify(next)) }) };
  }

  /** Counts up to the first hour with more records than are counted at once. */
  async #countedHours(span: RecordSpan, { below, atOnce }: CountPlace, deadline: Deadline): Promise<CountedPart> {
    const hours = await this.#reader.hoursBelow(span, below, atOnce, deadline);
    const parts = await Promise.all(
      hours.map((hour) => this.#countedHour(span, { hour, below, first: 0, states: [] }, deadline)),
    );
    let count = 0;
    for (const part of parts) {
      count += part.count;
      if (part.next !== undefined && "hour" in part.next) return { count, next: part.next };
    }
    const last = hours.at(-1);
    if (last === undefined) return { count, next: undefined };
    const next = { below: idPrefix(hourStartMs(last.hour)), atOnce: Math.min(2 * atOnce, RECORD_HOURS_AT_ONCE) };
    return { count, next };
  }

  /** At the end of the hour, the next position is that of the earlier hours. */
  #countedHour(span: RecordSpan, place: HourPlace, deadline: Deadline): Promise<CountedPart> {
    return isOnceEach(place.hour)
      ? this.#countedPlaces(span, place, deadline)
      : this.#countedIds(span, place, deadline);
  }

  async #countedPlaces(span: RecordSpan, counted: HourPlace, deadline: Deadline): Promise<CountedPart> {
    const { hour, first } = counted;
    const places = placesIn(hour);
    const next = first + RECORD_SHARDS_COUNTED_AT_ONCE;
    const pages = await Promise.all(
      places
        .slice(first, next)
        .map((place, at) => this.#countedPage(span, { hour, place, state: counted.states[at] }, deadline)),
    );
    const count = pages.reduce((sum, page) => sum + page.count, 0);
    const states = pages.map(({ state }) => state);
    if (states.some((state) => state !== null)) return { count, next: { ...counted, states } };
    if (next < places.length) return { count, next: { ...counted, first: next, states: [] } };
    return { count, next: { below: idPrefix(hourStartMs(hour.hour)), atOnce: 1 } };
  }

  async #countedPage(
    { cid, fromMs, toMs }: RecordSpan,
    { hour: { hour }, place, state }: CountedPage,
    deadline: Deadline,
  ): Promise<{ readonly count: number; readonly state: string | null }> {
    if (state === null) return { count: 0, state };
    const query = `SELECT ${TIMES} FROM ${this.#names[place.life]!} WHERE ${PARTITION} AND id < ? AND id >= ?`;
    const params = [cid, hour, place.shard, idPrefix(toMs), idPrefix(fromMs)];
    const page = { size: COUNTED_ROWS_PER_READ, ...(state === undefined ? {} : { state }) };
    const { rows, state: next } = await this.#tables.cassandra.page({ query, params }, page, deadline);
    const nowMs = this.#tables.cassandra.runtime.clock.nowMs();
    return { count: rows.filter((row) => isThere(row, nowMs)).length, state: next ?? null };
  }

  /** A record in two partitions counts once. */
  async #countedIds(span: RecordSpan, place: HourPlace, deadline: Deadline): Promise<CountedPart> {
    const { hour, below } = place;
    const { records, rest } = await this.#reader.part({ request: span, hour, below, limit: OBJECT_PAGE_MAX }, deadline);
    const next = rest.isOfEarlierHours ? { below: rest.below, atOnce: 1 } : { ...place, below: rest.below };
    return { count: records.length, next };
  }
}
