import { RECORD_HOURS_AT_ONCE, TIMELINE_PARTITIONS_PER_PAGE } from "../../../../common/limits.ts";
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
import { allWritten } from "../cassandra/writes.ts";
import { pageBefore, readCursor, requestText } from "../cursor.ts";
import type { Deadline } from "../deadline.ts";
import type { WordTable } from "../postings/words.ts";
import { ttlSeconds, type Tables } from "../tables.ts";
import { batchesOfOnePartition, hoursOf, type PartitionBatch } from "./batches.ts";
import { RecordCounter } from "./counter.ts";
import { HourReader } from "./hour-reader.ts";
import { placesIn, type RecordHour, RecordHours } from "./hours.ts";
import { hourOf, idPrefix, idTimeMs, livesLeft, PARTITION, recordTables, SHARD_NUMBERS, shardsOf } from "./places.ts";
import { removalTime, writeTimeOf } from "./rows.ts";

/**
 * Records in tables by the magnitude of their lifetimes (`RECORD_LIVES`). Partitions are class, hour and shard, ordered
 * by id, which begins with the time. A record that was appended with several lifetimes may be in several tables.
 */
export class RecordTable {
  readonly #tables: Tables;
  /** Table names, by life. */
  readonly #names: readonly string[];
  readonly #hours: RecordHours;
  readonly #reader: HourReader;
  readonly #counter: RecordCounter;
  readonly #words: WordTable | undefined;
  /** Statements by life, cached because the driver knows them by text. Index + 1: with expiry; + 2: with terms. */
  readonly #updates: readonly (readonly string[])[];

  constructor(tables: Tables, words?: WordTable) {
    this.#tables = tables;
    this.#names = recordTables(tables.keyspace);
    this.#hours = new RecordHours(tables);
    this.#reader = new HourReader(tables, this.#hours);
    this.#counter = new RecordCounter(tables, this.#reader);
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
        const listed = hours.get(name) ?? this.#reader.hour(key.cid, hour, deadline);
        hours.set(name, listed);
        const found = await listed;
        return found && (await this.#reader.standing(key, found, deadline))?.record;
      }),
    );
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
      const hours = await this.#reader.hoursBelow(request, below, atOnce, deadline);
      if (hours.length === 0) return { items };
      const part = { request, below, limit: page.limit - items.length };
      const parts = await Promise.all(hours.map((hour) => this.#reader.part({ ...part, hour }, deadline)));
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

  /** See `RecordCounter.count`. */
  count(span: RecordSpan, cursor?: string): Promise<ClassCount> {
    return this.#counter.count(span, cursor);
  }

  #nowMs(): number {
    return this.#tables.cassandra.runtime.clock.nowMs();
  }
}
