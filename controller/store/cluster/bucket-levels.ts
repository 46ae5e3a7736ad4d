import {
  BUCKET_LEVELS_KNOWN_MAX,
  BUCKET_LEVEL_SETTLES_MS,
  POSTING_LEVEL_MAX,
  POSTING_TERMS_PER_READ,
} from "../../../common/limits.ts";
import type { CqlValue, Statement } from "./cassandra.ts";
import type { Deadline } from "./deadline.ts";
import { HASH_BITS } from "./hashes.ts";
import type { Tables } from "./tables.ts";

/** Of so many ids one is a sample, by the low bits of its hash. */
const SAMPLE_ONE_IN = 256;
/** Samples a bucket is made for: about 4,096 ids that ever came, whether they are there or left a mark. */
const SAMPLES_PER_BUCKET = 16;

/** The partition of a hash: one at level 0, two at level 1, … , each a range of hashes. */
export function bucketOf(hash: number, level: number): number {
  return 2 ** level - 1 + Math.floor(hash / bucketWidth(level));
}

/** How many hashes a bucket covers. */
export function bucketWidth(level: number): number {
  return 2 ** (HASH_BITS - level);
}

interface KnownLevel {
  readonly level: number;
  /** When this controller learned of it, in microseconds. */
  readonly learnedUs: number;
}

/**
 * How far something is spread: the postings of a term, the edges of an object. At level n it has 2^n times as many
 * buckets as at first. A level only rises. Writers may use any up to the stored one, so what they know may be old;
 * readers and removers look at all of them.
 *
 * A level follows the number of different ids that ever came. Every id whose hash ends in zeros is put on record as a
 * sample, once and for good, so neither flips of few ids nor restarts count.
 */
export class BucketLevels {
  readonly #tables: Tables;
  readonly #table: string;
  /** How many buckets there are at level 0, as a power of two. */
  readonly #first: number;
  /** By names of what is at level 1 or above. */
  readonly #known = new Map<string, KnownLevel>();

  constructor(tables: Tables, { bucketsAtFirst = 1 }: { readonly bucketsAtFirst?: number } = {}) {
    this.#tables = tables;
    this.#table = `${tables.keyspace}.posting_levels`;
    this.#first = Math.log2(bucketsAtFirst);
  }

  /** The level to write at, of what is harmless where it should be gone. */
  known(name: string): number {
    return this.#known.get(name)?.level ?? 0;
  }

  /**
   * The level to write at, of what a later removal must find, however late the write arrives: who removes at a later
   * time reads of this level. 0 where it was learned too short a time before.
   */
  settled(name: string, timeUs: number): number {
    const known = this.#known.get(name);
    if (known === undefined) return 0;
    const isSettled = known.learnedUs + BUCKET_LEVEL_SETTLES_MS * 1_000 < timeUs;
    return isSettled ? known.level : 0;
  }

  /** As stored now, for reading and removing. */
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
   * What to write with something above level 0: the keyspace may have been made anew since its level was stored. The
   * higher level wins, as it is the time of its write.
   */
  statements(name: string): Statement[] {
    const level = this.known(name);
    return level === 0 ? [] : [this.#levelStatement(name, level)];
  }

  /** To be called before an id comes; rarely does anything. */
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
