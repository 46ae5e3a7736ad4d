import type { EntityKey, RecordSpan, StoredRecord, TimelineRequest } from "../../objects.ts";
import { indexedTerms } from "../../terms.ts";
import type { Statement } from "../cassandra/cassandra.ts";
import type { Deadline } from "../deadline.ts";
import type { Tables } from "../tables.ts";
import { isOnceEach, placesIn, placesOf, type RecordHour, type RecordHours, type RecordPlace } from "./hours.ts";
import { hourOf, hourStartMs, idPrefix, lastMsBelow, PARTITION, recordTables } from "./places.ts";
import { type FoundRecord, foundIn, ROW, standing } from "./rows.ts";

/** Asks for the newest `limit` records of an hour below an id. */
interface HourPart {
  readonly request: TimelineRequest;
  readonly hour: RecordHour;
  readonly below: string;
  readonly limit: number;
}

interface ReadPart {
  readonly records: readonly StoredRecord[];
  /** Ids below `below` are still to be read: of this hour, or only of earlier ones. */
  readonly rest: { readonly below: string; readonly isOfEarlierHours: boolean };
}

/** Reads records of one hour from all of its partitions. */
export class HourReader {
  readonly #tables: Tables;
  readonly #hours: RecordHours;
  /** Table names, by life. */
  readonly #names: readonly string[];

  constructor(tables: Tables, hours: RecordHours) {
    this.#tables = tables;
    this.#hours = hours;
    this.#names = recordTables(tables.keyspace);
  }

  /** The hour with its places; `undefined` if it has no records. */
  async hour(cid: number, hour: number, deadline: Deadline): Promise<RecordHour | undefined> {
    const [found] = await this.#hours.newest({ cid, from: hour, to: hour }, 1, deadline);
    return found;
  }

  /** The newest hours of the span with ids below this one, newest first. */
  async hoursBelow(
    { cid, fromMs }: RecordSpan,
    below: string,
    atMost: number,
    deadline: Deadline,
  ): Promise<readonly RecordHour[]> {
    if (below <= idPrefix(fromMs)) return [];
    const span = { cid, from: hourOf(Math.max(0, fromMs)), to: hourOf(lastMsBelow(below)) };
    return this.#hours.newest(span, atMost, deadline);
  }

  /** The valid row of the record, from all places in its hour. */
  async standing({ cid, id }: EntityKey, written: RecordHour, deadline: Deadline): Promise<FoundRecord | undefined> {
    const answers = await Promise.all(
      placesOf(id, written).map(({ life, shard }) => {
        const query = `SELECT ${ROW} FROM ${this.#names[life]!} WHERE ${PARTITION} AND id = ?`;
        return this.#tables.cassandra.read({ query, params: [cid, written.hour, shard, id] }, deadline);
      }),
    );
    const found = answers.flat().flatMap((row) => foundIn(row, this.#nowMs()) ?? []);
    return found.length === 0 ? undefined : found.reduce(standing);
  }

  /** The newest records of one hour below an id, as far as their order over its partitions is certain. */
  async part(part: HourPart, deadline: Deadline): Promise<ReadPart> {
    const { request, hour, limit } = part;
    const places = placesIn(hour);
    const perPlace = Math.min(limit, Math.ceil(limit / places.length) + 8);
    const lowest = later(idPrefix(request.fromMs), idPrefix(hourStartMs(hour.hour)));
    const read = await Promise.all(
      places.map(async (place) => {
        const statement = this.#placeStatement(part, { place, lowest, limit: perPlace });
        const rows = await this.#tables.cassandra.read(statement, deadline);
        return {
          found: rows.flatMap((row) => foundIn(row, this.#nowMs()) ?? []),
          lastId: rows.length < perPlace ? undefined : String(rows.at(-1)?.id),
        };
      }),
    );
    // A partition that filled its page may have more records just below its last id.
    const certain = read.reduce((id, { lastId }) => (lastId === undefined ? id : later(id, lastId)), lowest);
    const merged = mergedById(read.flatMap(({ found }) => found)).filter(({ record }) => record.id >= certain);
    const taken = merged.slice(0, limit);
    const below = taken.length < merged.length ? (taken.at(-1)?.record.id ?? certain) : certain;
    const records = await this.#rechecked(taken, part, deadline);
    return { records, rest: { below, isOfEarlierHours: below === lowest } };
  }

  /** Reads records found by terms again, because a found row may not be the valid row of its record. */
  async #rechecked(
    found: readonly FoundRecord[],
    { request, hour }: HourPart,
    deadline: Deadline,
  ): Promise<StoredRecord[]> {
    const isCertain = (request.terms ?? []).length === 0 || isOnceEach(hour);
    const standings = isCertain
      ? found
      : await Promise.all(found.map(({ record }) => this.standing(record, hour, deadline)));
    return standings.flatMap((one) => one?.record ?? []);
  }

  #placeStatement(
    { request, hour, below }: HourPart,
    { place, lowest, limit }: { readonly place: RecordPlace; readonly lowest: string; readonly limit: number },
  ): Statement {
    const terms = indexedTerms(request.terms ?? []);
    const conditions = [`${PARTITION} AND id < ? AND id >= ?`, ...terms.map(() => "terms CONTAINS ?")].join(" AND ");
    const filtering = terms.length > 0 ? " ALLOW FILTERING" : "";
    return {
      query: `SELECT ${ROW} FROM ${this.#names[place.life]!} WHERE ${conditions} LIMIT ?${filtering}`,
      params: [request.cid, hour.hour, place.shard, below, lowest, ...terms, limit],
    };
  }

  #nowMs(): number {
    return this.#tables.cassandra.runtime.clock.nowMs();
  }
}

/** Newest first, each record once. */
function mergedById(found: readonly FoundRecord[]): FoundRecord[] {
  const merged: FoundRecord[] = [];
  for (const one of [...found].sort((a, b) => (a.record.id < b.record.id ? 1 : -1))) {
    const last = merged.at(-1);
    if (last?.record.id === one.record.id) merged[merged.length - 1] = standing(last, one);
    else merged.push(one);
  }
  return merged;
}

function later(one: string, other: string): string {
  return one > other ? one : other;
}
