import { RECORD_HOURS_CACHED_MAX, RECORD_SHARD_BYTES, RECORD_SHARDS_MAX } from "../../../../common/limits.ts";
import type { Deadline } from "../deadline.ts";
import { RECORD_LIVES, SHARD_NUMBERS, shardsOf } from "./places.ts";
import { NEVER_MS, ttlSeconds, type Tables } from "../tables.ts";

/** An hour of a class that has records. */
export interface RecordHour {
  readonly hour: number;
  /**
   * Lives and numbers of shards that were used in this hour, usually one of each. Each combination gives one partition
   * in which a record may be.
   */
  readonly lives: readonly LifeOfHour[];
}

interface LifeOfHour {
  /** The index in `RECORD_LIVES`. */
  readonly life: number;
  /** The numbers of shards with which records were written, smallest first. */
  readonly numbers: readonly number[];
}

/** One partition of an hour. */
export interface RecordPlace {
  readonly life: number;
  readonly shard: number;
}

/** Hours of one class; both ends are included. */
export interface HourSpan {
  readonly cid: number;
  readonly from: number;
  readonly to: number;
}

/** A write into an hour, for one life. */
export interface HourWrite {
  readonly cid: number;
  readonly hour: number;
  readonly life: number;
  readonly bytes: number;
  /** Time until which the hour must be listed. */
  readonly untilMs: number;
}

interface OpenHour {
  /** Bytes written by this controller. */
  bytes: number;
  shards: number;
  /** Time until which the hour is listed with this number of shards, as far as this controller knows. */
  untilMs: number;
}

/**
 * The hours that have records, listed in `record_hours` with the lives of the records and the number of shards of each
 * life. The number of shards starts with the result of the previous hour. It doubles whenever a controller has written
 * `RECORD_SHARD_BYTES` per shard, so that no partition grows with the traffic. A listed number stays, because records
 * written with it stay in its places.
 */
export class RecordHours {
  readonly #tables: Tables;
  readonly #open = new Map<string, Promise<OpenHour>>();
  /** By class and life: the data this controller wrote in its latest hour. */
  readonly #latest = new Map<string, { readonly hour: number; readonly written: OpenHour }>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** The number of shards for this write. The hour is listed with it when this resolves. */
  async toWrite(write: HourWrite, deadline: Deadline): Promise<number> {
    const open = await this.#opened(write, deadline);
    open.bytes += write.bytes;
    const isFull = open.bytes > open.shards * RECORD_SHARD_BYTES && open.shards < RECORD_SHARDS_MAX;
    const shards = isFull ? 2 * open.shards : open.shards;
    const untilMs = Math.max(write.untilMs, isFull ? open.untilMs : 0);
    if (isFull || untilMs > open.untilMs) {
      await this.#list(write, { shards, untilMs }, deadline);
      open.untilMs = Math.max(open.untilMs, untilMs);
      open.shards = Math.max(open.shards, shards);
    }
    return shards;
  }

  /** The newest hours of the span, newest first: at least one if there is any, at most `atMost`. */
  async newest({ cid, from, to }: HourSpan, atMost: number, deadline: Deadline): Promise<readonly RecordHour[]> {
    // Each hour has one row per life and number, mostly one.
    const limit = 2 * atMost + RECORD_LIVES.length * SHARD_NUMBERS.length;
    const query = `SELECT hour, life, shards FROM ${this.#tables.keyspace}.record_hours WHERE cid = ? AND hour <= ? AND hour >= ? LIMIT ?`;
    const rows = await this.#tables.cassandra.read({ query, params: [cid, to, from, limit] }, deadline);
    const hours = new Map<number, Map<number, number[]>>();
    for (const row of rows) {
      const [hour, life, shards] = [row.hour, row.life, row.shards].map(Number) as [number, number, number];
      const lives = hours.get(hour) ?? new Map<number, number[]>();
      hours.set(hour, lives.set(life, [...(lives.get(life) ?? []), shards]));
    }
    const found = Array.from(hours, ([hour, lives]): RecordHour => {
      return { hour, lives: Array.from(lives, ([life, numbers]) => ({ life, numbers })) };
    });
    // The last hour may have more rows than were read.
    if (rows.length === limit) found.pop();
    return found.slice(0, atMost);
  }

  /** Call it after a failed write, because the keyspace may have been lost and recreated. */
  forget(): void {
    this.#open.clear();
    this.#latest.clear();
  }

  #opened(write: HourWrite, deadline: Deadline): Promise<OpenHour> {
    const name = `${write.cid}/${write.hour}/${write.life}`;
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    const opening = this.#begun(write, deadline);
    if (this.#open.size >= RECORD_HOURS_CACHED_MAX) this.#open.clear();
    this.#open.set(name, opening);
    // After a failure the next write tries again.
    opening.catch(() => this.#open.get(name) === opening && this.#open.delete(name));
    return opening;
  }

  async #begun({ cid, hour, life }: HourWrite, deadline: Deadline): Promise<OpenHour> {
    const listed = await this.newest({ cid, from: hour - 1, to: hour }, 2, deadline);
    const shardsIn = (wanted: number): number | undefined => {
      const found = listed.find((one) => one.hour === wanted)?.lives.find((one) => one.life === life);
      return found?.numbers.at(-1);
    };
    const name = `${cid}/${life}`;
    const shards = Math.max(shardsIn(hour) ?? 0, this.#paceOf(name, hour) ?? shardsIn(hour - 1) ?? 1);
    const open = { bytes: 0, shards, untilMs: 0 };
    const latest = this.#latest.get(name);
    if (this.#latest.size >= RECORD_HOURS_CACHED_MAX) this.#latest.clear();
    if (latest === undefined || latest.hour < hour) this.#latest.set(name, { hour, written: open });
    return open;
  }

  /** Number of shards that this controller's data of the previous hour needed; `undefined` if it wrote none. */
  #paceOf(name: string, hour: number): number | undefined {
    const latest = this.#latest.get(name);
    if (latest?.hour !== hour - 1) return undefined;
    return SHARD_NUMBERS.find((shards) => shards * RECORD_SHARD_BYTES >= latest.written.bytes) ?? RECORD_SHARDS_MAX;
  }

  /** Uses the row's expiry as its write time, so that the longest life wins. */
  async #list(
    { cid, hour, life }: HourWrite,
    { shards, untilMs }: { readonly shards: number; readonly untilMs: number },
    deadline: Deadline,
  ): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const ttl = untilMs === NEVER_MS ? 0 : ttlSeconds(cassandra.runtime.clock, untilMs);
    const query = `UPDATE ${keyspace}.record_hours USING TIMESTAMP ? AND TTL ? SET present = true WHERE cid = ? AND hour = ? AND life = ? AND shards = ?`;
    await cassandra.write([{ query, params: [BigInt(untilMs) * 1_000n, ttl, cid, hour, life, shards] }], deadline);
  }
}

/** All partitions of an hour. */
export function placesIn({ lives }: RecordHour): RecordPlace[] {
  return lives.flatMap(({ life, numbers }) =>
    Array.from({ length: numbers.at(-1) ?? 0 }, (_, shard) => ({ life, shard })),
  );
}

/** The partitions of an hour that may contain a record with this id. */
export function placesOf(id: string, { lives }: RecordHour): RecordPlace[] {
  return lives.flatMap(({ life, numbers }) => shardsOf(id, numbers).map((shard) => ({ life, shard })));
}

/** True if no record of the hour can be in two partitions. */
export function isOnceEach({ lives }: RecordHour): boolean {
  return lives.length === 1 && lives[0]?.numbers.length === 1;
}
