import { RECORD_HOURS_CACHED_MAX, RECORD_SHARD_BYTES, RECORD_SHARDS_MAX } from "../../../common/limits.ts";
import type { Deadline } from "./deadline.ts";
import { RECORD_LIVES, SHARD_NUMBERS, shardsOf } from "./record-places.ts";
import { NEVER_MS, ttlSeconds, type Tables } from "./tables.ts";

/** An hour of a class that has records. */
export interface RecordHour {
  readonly hour: number;
  /** What it was written by: a record may lie where any of them puts it. Mostly one, with one number. */
  readonly lives: readonly LifeOfHour[];
}

interface LifeOfHour {
  /** The index in `RECORD_LIVES`. */
  readonly life: number;
  /** Of shards, the smallest first. */
  readonly numbers: readonly number[];
}

/** One partition of an hour. */
export interface RecordPlace {
  readonly life: number;
  readonly shard: number;
}

/** Hours of one class, both ends included. */
export interface HourSpan {
  readonly cid: number;
  readonly from: number;
  readonly to: number;
}

/** What is to be written into an hour, of one life. */
export interface HourWrite {
  readonly cid: number;
  readonly hour: number;
  readonly life: number;
  readonly bytes: number;
  /** Until when the hour has to be listed. */
  readonly untilMs: number;
}

interface OpenHour {
  /** Written by this controller. */
  bytes: number;
  shards: number;
  /** Until when it is known to be listed with this number. */
  untilMs: number;
}

/**
 * The hours that have records, listed in `record_hours` by the lives of these and the number of shards each life is
 * written by. That begins with what the hour before came to and doubles whenever a controller has written
 * `RECORD_SHARD_BYTES` for each shard, so that no partition grows with the traffic. What is once listed stays: what was
 * written by it lies where it put it.
 */
export class RecordHours {
  readonly #tables: Tables;
  readonly #open = new Map<string, Promise<OpenHour>>();
  /** What this controller wrote of each class and life in the latest of its hours. */
  readonly #latest = new Map<string, { readonly hour: number; readonly written: OpenHour }>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** The number of shards to write by, once the hour is listed with it. */
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

  /** The newest hours of the span, newest first: at least one, if there is any, and at most so many. */
  async newest({ cid, from, to }: HourSpan, atMost: number, deadline: Deadline): Promise<readonly RecordHour[]> {
    // Each hour has one row for each life and number, mostly one.
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
    // Of the last one there may be more rows.
    if (rows.length === limit) found.pop();
    return found.slice(0, atMost);
  }

  /** After a write that failed, as the keyspace may have been lost and made anew. */
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
    // The next write tries a failed one again.
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

  /** What the hour before came to here; undefined where nothing of it was written here. */
  #paceOf(name: string, hour: number): number | undefined {
    const latest = this.#latest.get(name);
    if (latest?.hour !== hour - 1) return undefined;
    return SHARD_NUMBERS.find((shards) => shards * RECORD_SHARD_BYTES >= latest.written.bytes) ?? RECORD_SHARDS_MAX;
  }

  /** Its write time is its own expiry, so that the longest life wins. */
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

/** The partitions of an hour that may have a record of this id. */
export function placesOf(id: string, { lives }: RecordHour): RecordPlace[] {
  return lives.flatMap(({ life, numbers }) => shardsOf(id, numbers).map((shard) => ({ life, shard })));
}

/** Whether no record of the hour can lie in two partitions. */
export function isOnceEach({ lives }: RecordHour): boolean {
  return lives.length === 1 && lives[0]?.numbers.length === 1;
}
