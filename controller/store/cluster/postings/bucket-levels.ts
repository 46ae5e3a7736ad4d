import {
  BUCKET_LEVELS_KNOWN_MAX,
  BUCKET_LEVEL_SETTLES_MS,
  POSTING_LEVEL_MAX,
  POSTING_TERMS_PER_READ,
} from "../../../../common/limits.ts";
import type { CqlValue, Statement } from "../cassandra/cassandra.ts";
import type { Deadline } from "../deadline.ts";
import { HASH_BITS } from "./hashes.ts";
import type { Tables } from "../tables.ts";

/** One id in this many is a sample, chosen by the low bits of its hash. */
const SAMPLE_ONE_IN = 256;
/** Samples per bucket. They represent about 4,096 ids that were ever added, including those that left a tombstone. */
const SAMPLES_PER_BUCKET = 16;

/** The bucket (partition) of a hash: one bucket at level 0, two at level 1, and so on. Each is a range of hashes. */
export function bucketOf(hash: number, level: number): number {
  return 2 ** level - 1 + Math.floor(hash / bucketWidth(level));
}

/** Number of hashes in a bucket. */
export function bucketWidth(level: number): number {
  return 2 ** (HASH_BITS - level);
}

interface KnownLevel {
  readonly level: number;
  /** Time in microseconds at which this controller learned it. */
  readonly learnedUs: number;
}

/**
 * Defines over how many buckets the postings of a term, or the edges of an object, are spread: at level n, 2^n times as
 * many as at level 0. A level only increases. A writer may use any level up to the stored one, so a controller may
 * cache the level. Readers and removers look at all levels.
 *
 * A level depends on the number of different ids that were ever added. Every id whose hash ends in zeros is recorded as
 * a sample, once and for good. So repeated changes of few ids, and restarts, do not raise the level.
 */
export class BucketLevels {
  readonly #tables: Tables;
  readonly #table: string;
  /** Number of buckets at level 0, as a power of two. */
  readonly #first: number;
  /** Known levels of 1 and above, by name. */
  readonly #known = new Map<string, KnownLevel>();

  constructor(tables: Tables, { bucketsAtFirst = 1 }: { readonly bucketsAtFirst?: number } = {}) {
    this.#tables = tables;
    this.#table = `${tables.keyspace}.posting_levels`;
    this.#first = Math.log2(bucketsAtFirst);
  }

  /**
   * The level as far as this controller knows it, without a read; 0 if it knows none. For rows that do no harm if a
   * removal misses them, such as postings.
   */
  known(name: string): number {
    return this.#known.get(name)?.level ?? 0;
  }

  /**
   * The level for writing rows that a removal must find, even if the write arrives late. A removal with a later time
   * than `timeUs` also reads this level. 0 if this controller learned the level less than `BUCKET_LEVEL_SETTLES_MS`
   * before `timeUs`.
   */
  settled(name: string, timeUs: number): number {
    const known = this.#known.get(name);
    if (known === undefined) return 0;
    const isSettled = known.learnedUs + BUCKET_LEVEL_SETTLES_MS * 1_000 < timeUs;
    return isSettled ? known.level : 0;
  }

  /** The stored levels, for reading and removing. */
  async stored(names: readonly string[], deadline: Deadline): Promise<ReadonlyMap<string, number>> {
    const query = `SELECT DISTINCT term, level FROM ${this.#table} WHERE term IN ?`;
    const groups = [];
    for (let from = 0; from < names.length; from += POSTING_TERMS_PER_READ)
      groups.push(names.slice(from, from + POSTING_TERMS_PER_READ));
    const answers = await Promise.all(
      groups.map((group) => this.#tables.cassandra.read({ query, params: [group] }, deadline)),
    );
    const levels = new Map(names.map((name) => [name, 0]));
    for (const row of answers.flat()) levels.set(String(row.term), this.#learn(String(row.term), row.level));
    return levels;
  }

  /**
   * Statements to write together with rows above level 0, because the keyspace may have been recreated since the level
   * was stored. The level is also the write time, so the higher level wins.
   */
  statements(name: string): Statement[] {
    const level = this.known(name);
    return level === 0 ? [] : [this.#levelStatement(name, level)];
  }

  /** Call it before an id is added. Only for one in `SAMPLE_ONE_IN` ids it reads and writes anything. */
  async count(name: string, hash: number, deadline: Deadline): Promise<void> {
    if (hash % SAMPLE_ONE_IN !== 0 || this.known(name) === this.#most) return;
    const { cassandra } = this.#tables;
    const sample = `UPDATE ${this.#table} USING TIMESTAMP 1 SET present = true WHERE term = ? AND sample = ?`;
    await cassandra.write([{ query: sample, params: [name, hash] }], deadline);
    const query = `SELECT count(sample) AS samples, max(level) AS level FROM ${this.#table} WHERE term = ?`;
    const [row] = await cassandra.read({ query, params: [name] }, deadline);
    const stored = this.#learn(name, row?.level);
    const buckets = Math.max(1, Number(row?.samples ?? 0) / SAMPLES_PER_BUCKET);
    const needed = Math.ceil(Math.log2(buckets)) - this.#first;
    if (needed <= stored) return;
    const level = Math.min(needed, this.#most);
    await cassandra.write([this.#levelStatement(name, level)], deadline);
    this.#learn(name, level);
  }

  get #most(): number {
    return POSTING_LEVEL_MAX - this.#first;
  }

  #levelStatement(name: string, level: number): Statement {
    const params: CqlValue[] = [BigInt(level), level, name];
    return { query: `UPDATE ${this.#table} USING TIMESTAMP ? SET level = ? WHERE term = ?`, params };
  }

  #learn(name: string, stored: unknown): number {
    const level = typeof stored === "number" ? stored : 0;
    if (level > this.known(name)) {
      if (this.#known.size >= BUCKET_LEVELS_KNOWN_MAX) this.#known.clear();
      this.#known.set(name, { level, learnedUs: this.#tables.cassandra.runtime.clock.nowMs() * 1_000 });
    }
    return level;
  }
}
