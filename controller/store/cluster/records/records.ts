import {
  COUNTED_ROWS_PER_READ,
  OBJECT_PAGE_MAX,
  RECORD_BATCH_MAX_BYTES,
  RECORD_BATCH_MAX_ROWS,
  RECORD_HOURS_AT_ONCE,
  RECORD_SHARDS_COUNTED_AT_ONCE,
  TIMELINE_PARTITIONS_PER_PAGE,
} from "../../../../common/limits.ts";
import type {
  ClassCount,
  EntityKey,
  Page,
  PageRequest,
  RecordSpan,
  RemovedRecord,
  StoredRecord,
  TimelineRequest,
} from "../../objects.ts";
import { indexedTerms } from "../../terms.ts";
import type { CqlValue, Statement } from "../cassandra/cassandra.ts";
import { pageBefore, readCursor, requestText, writeCursor } from "../cursor.ts";
import type { Deadline } from "../deadline.ts";
import { isOnceEach, placesIn, placesOf, type RecordHour, RecordHours, type RecordPlace } from "./hours.ts";
import {
  hourOf,
  hourStartMs,
  idPrefix,
  idTimeMs,
  lastMsBelow,
  lifeOf,
  livesLeft,
  RECORD_LIVES,
  SHARD_NUMBERS,
  shardsOf,
} from "./places.ts";
import { type FoundRecord, foundIn, isThere, removalTime, ROW, standing, TIMES, writeTimeOf } from "./rows.ts";
import { longLife, ttlSeconds, type Tables } from "../tables.ts";
import type { WordTable } from "../postings/words.ts";
import { allWritten } from "../cassandra/writes.ts";

const PARTITION = "cid = ? AND hour = ? AND shard = ?";

/**
 * Records in tables by the magnitude of their lifetimes (`RECORD_LIVES`). Partitions are class, hour and shard, ordered
 * by id, which begins with the time. A record that was appended with several lifetimes may be in several tables.
 */
export class RecordTable {
  readonly #tables: Tables;
  /** Table names, by life. */
  readonly #names: readonly string[];
  readonly #hours: RecordHours;
  readonly #words: WordTable | undefined;
  /** Statements by life, cached because the driver knows them by text. Index + 1: with expiry; + 2: with terms. */
  readonly #updates: readonly (readonly string[])[];

  constructor(tables: Tables, words?: WordTable) {
    this.#tables = tables;
    this.#names = RECORD_LIVES.map(({ table }) => `${tables.keyspace}.${table}`);
    this.#hours = new RecordHours(tables);
    this.#words = words;
    this.#updates = this.#names.map((name) =>
      ["", ", expires = ?", ", terms = terms + ?", ", expires = ?, terms = terms + ?"].map(
        (more) => `UPDATE ${name} USING TIMESTAMP ? AND TTL ? SET value = ?${more} WHERE ${PARTITION} AND id = ?`,
      ),
    );
  }

  /** See `RecordHours.forget`. */
  forget(): void {
    this.#hours.forget();
  }

  /** The writes to wait for. Neighbours of one partition share a write; each write succeeds or fails on its own. */
  append(records: readonly StoredRecord[], deadline: Deadline): Promise<void>[] {
    const words = this.#addWords(records, deadline);
    return hoursOf(records).map(async (some) => {
      const [shards] = await Promise.all([this.#hours.toWrite(some, deadline), words]);
      const batches = batchesOfOnePartition(some, shards);
      await allWritten(batches.map((batch) => this.#tables.cassandra.write(this.#statements(batch), deadline)));
    });
  }

  async #addWords(records: readonly StoredRecord[], deadline: Deadline): Promise<void> {
    const words = this.#words;
    if (words === undefined) return;
    await Promise.all(records.map(({ terms, ...owner }) => words.add(indexedTerms(terms), owner, deadline)));
  }

  #statements({ life, partition, records }: PartitionBatch): Statement[] {
    const updates = this.#updates[life]!;
    return records.map((record) => {
      const { id, value, expiresAtMs, terms } = record;
      const ttl = ttlSeconds(this.#tables.cassandra.runtime.clock, expiresAtMs);
      const params: CqlValue[] = [writeTimeOf(record), ttl, value];
      if (expiresAtMs !== undefined) params.push(BigInt(Math.ceil(expiresAtMs)));
      if (terms.length > 0) params.push(indexedTerms(terms));
      params.push(...partition, id);
      return { query: updates[(expiresAtMs === undefined ? 0 : 1) + (terms.length === 0 ? 0 : 2)]!, params };
    });
  }

  /** Records in the order of `keys`. */
  async get(keys: readonly EntityKey[], deadline: Deadline): Promise<readonly (StoredRecord | undefined)[]> {
    const hours = new Map<string, Promise<RecordHour | undefined>>();
    return Promise.all(
      keys.map(async (key) => {
        const hour = hourOf(idTimeMs(key.id));
        const name = `${key.cid}/${hour}`;
        const listed = hours.get(name) ?? this.#hour(key.cid, hour, deadline);
        hours.set(name, listed);
        const found = await listed;
        return found && (await this.#standing(key, found, deadline))?.record;
      }),
    );
  }

  async #hour(cid: number, hour: number, deadline: Deadline): Promise<RecordHour | undefined> {
    const [found] = await this.#hours.newest({ cid, from: hour, to: hour }, 1, deadline);
    return found;
  }

  /** The valid row of the record, from all places in its hour. */
  async #standing({ cid, id }: EntityKey, written: RecordHour, deadline: Deadline): Promise<FoundRecord | undefined> {
    const answers = await Promise.all(
      placesOf(id, written).map(({ life, shard }) => {
        const query = `SELECT ${ROW} FROM ${this.#names[life]!} WHERE ${PARTITION} AND id = ?`;
        return this.#tables.cassandra.read({ query, params: [cid, written.hour, shard, id] }, deadline);
      }),
    );
    const found = answers.flat().flatMap((row) => foundIn(row, this.#nowMs()) ?? []);
    return found.length === 0 ? undefined : found.reduce(standing);
  }

  /**
   * Removes the record from every place that may contain it, or to which a repetition may still write it. Partitions
   * with the same key in several tables are written together by Cassandra, as one partition.
   */
  remove(record: RemovedRecord, deadline: Deadline): Promise<void>[] {
    const { cid, id } = record;
    const hour = hourOf(idTimeMs(id));
    const queries = livesLeft(id, this.#nowMs()).map(
      (life) => `DELETE FROM ${this.#names[life]!} USING TIMESTAMP ? WHERE ${PARTITION} AND id = ?`,
    );
    return shardsOf(id, SHARD_NUMBERS).map((shard) => {
      const params = [removalTime(record), cid, hour, shard, id];
      return this.#tables.cassandra.write(
        queries.map((query) => ({ query, params })),
        deadline,
      );
    });
  }

  /** Merges the partitions hour by hour from the newest. A page may be short after reading many partitions. */
  async timeline(request: TimelineRequest, page: PageRequest): Promise<Page<StoredRecord>> {
    const text = requestText(this.#tables.keyspace, "timeline", request);
    const deadline = this.#tables.cassandra.deadline();
    // Ids below this one are still to be read.
    let below = readCursor(text, page) ?? idPrefix(request.toMs);
    const items: StoredRecord[] = [];
    let atOnce = 1;
    for (let looked = 0; looked < TIMELINE_PARTITIONS_PER_PAGE && items.length < page.limit; ) {
      const hours = await this.#hoursBelow(request, below, atOnce, deadline);
      if (hours.length === 0) return { items };
      const part = { request, below, limit: page.limit - items.length };
      const parts = await Promise.all(hours.map((hour) => this.#hourPart({ ...part, hour }, deadline)));
      for (const { records, rest } of parts) {
        const taken = records.slice(0, page.limit - items.length);
        items.push(...taken);
        below = taken.length < records.length ? (taken.at(-1)?.id ?? below) : rest.below;
        if (items.length >= page.limit || !rest.isOfEarlierHours) break;
      }
      looked += hours.reduce((sum, hour) => sum + placesIn(hour).length, 0);
      // If hours have few records, more of them are read in parallel.
      atOnce = Math.min(2 * atOnce, RECORD_HOURS_AT_ONCE);
    }
    return pageBefore(items, text, below);
  }

  async #hoursBelow(
    { cid, fromMs }: RecordSpan,
    below: string,
    atMost: number,
    deadline: Deadline,
  ): Promise<readonly RecordHour[]> {
    if (below <= idPrefix(fromMs)) return [];
    const span = { cid, from: hourOf(Math.max(0, fromMs)), to: hourOf(lastMsBelow(below)) };
    return this.#hours.newest(span, atMost, deadline);
  }

  /** The newest records of one hour below an id, as far as their order over its partitions is certain. */
  async #hourPart(part: HourPart, deadline: Deadline): Promise<ReadPart> {
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
      : await Promise.all(found.map(({ record }) => this.#standing(record, hour, deadline)));
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
    const hours = await this.#hoursBelow(span, below, atOnce, deadline);
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
    const nowMs = this.#nowMs();
    return { count: rows.filter((row) => isThere(row, nowMs)).length, state: next ?? null };
  }

  /** A record in two partitions counts once. */
  async #countedIds(span: RecordSpan, place: HourPlace, deadline: Deadline): Promise<CountedPart> {
    const { hour, below } = place;
    const { records, rest } = await this.#hourPart({ request: span, hour, below, limit: OBJECT_PAGE_MAX }, deadline);
    const next = rest.isOfEarlierHours ? { below: rest.below, atOnce: 1 } : { ...place, below: rest.below };
    return { count: records.length, next };
  }

  #nowMs(): number {
    return this.#tables.cassandra.runtime.clock.nowMs();
  }
}

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

type Partition = readonly [cid: number, hour: number, shard: number];

interface PartitionBatch {
  readonly life: number;
  readonly partition: Partition;
  readonly records: StoredRecord[];
  bytes: number;
}

interface RecordsOfHour {
  readonly cid: number;
  readonly hour: number;
  readonly life: number;
  readonly records: StoredRecord[];
  bytes: number;
  untilMs: number;
}

function hoursOf(records: readonly StoredRecord[]): RecordsOfHour[] {
  const hours = new Map<string, RecordsOfHour>();
  for (const record of records) {
    const hour = hourOf(idTimeMs(record.id));
    const life = lifeOf(record);
    const name = `${record.cid}/${hour}/${life}`;
    let of = hours.get(name);
    if (of === undefined) hours.set(name, (of = { cid: record.cid, hour, life, records: [], bytes: 0, untilMs: 0 }));
    of.records.push(record);
    of.bytes += record.value.length;
    of.untilMs = Math.max(of.untilMs, longLife(record.expiresAtMs));
  }
  return [...hours.values()];
}

function batchesOfOnePartition({ cid, hour, life, records }: RecordsOfHour, shards: number): PartitionBatch[] {
  const full: PartitionBatch[] = [];
  const open = new Map<number, PartitionBatch>();
  for (const record of records) {
    const [shard = 0] = shardsOf(record.id, [shards]);
    const bytes = record.value.length;
    let room = open.get(shard);
    const isFull = (of: PartitionBatch): boolean =>
      of.records.length >= RECORD_BATCH_MAX_ROWS || of.bytes + bytes > RECORD_BATCH_MAX_BYTES;
    if (room === undefined || isFull(room)) {
      room = { life, partition: [cid, hour, shard], records: [], bytes: 0 };
      open.set(shard, room);
      full.push(room);
    }
    room.records.push(record);
    room.bytes += bytes;
  }
  return full;
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
