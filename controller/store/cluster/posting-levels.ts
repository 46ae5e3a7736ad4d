import { POSTING_LEVEL_MAX, POSTING_LEVELS_KNOWN_MAX, POSTING_TERMS_PER_READ } from "../../../common/limits.ts";
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

/**
 * How far the postings of a term are spread: level n has 2^n buckets. A level only rises. Writers may use any up to the
 * stored one, so what they know may be old; readers and removers ask all of them.
 *
 * A level follows the number of different ids that ever had the term. Every id whose hash ends in zeros is put on
 * record as a sample, once and for good, so neither flips of few ids nor restarts count.
 */
export class PostingLevels {
  readonly #tables: Tables;
  readonly #table: string;
  /** Terms of level 1 and above. */
  readonly #known = new Map<string, number>();

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#table = `${tables.keyspace}.posting_levels`;
  }

  /** The level to write at. */
  known(term: string): number {
    return this.#known.get(term) ?? 0;
  }

  /** As stored now, for reading and removing. */
  async stored(terms: readonly string[], deadline: Deadline): Promise<ReadonlyMap<string, number>> {
    const query = `SELECT DISTINCT term, level FROM ${this.#table} WHERE term IN ?`;
    const groups = [];
    for (let from = 0; from < terms.length; from += POSTING_TERMS_PER_READ)
      groups.push(terms.slice(from, from + POSTING_TERMS_PER_READ));
    const answers = await Promise.all(
      groups.map((group) => this.#tables.cassandra.read({ query, params: [group] }, deadline)),
    );
    const levels = new Map(terms.map((term) => [term, 0]));
    for (const row of answers.flat()) levels.set(String(row.term), this.#learn(String(row.term), row.level));
    return levels;
  }

  /**
   * What to write with the postings of a term above level 0: the keyspace may have been made anew since its level was
   * stored. The higher level wins, as it is the time of its write.
   */
  statements(term: string): Statement[] {
    const level = this.known(term);
    return level === 0 ? [] : [this.#levelStatement(term, level)];
  }

  /** To be called before an id gets a term; rarely does anything. */
  async count(term: string, hash: number, deadline: Deadline): Promise<void> {
    if (hash % SAMPLE_ONE_IN !== 0 || this.known(term) === POSTING_LEVEL_MAX) return;
    const { cassandra } = this.#tables;
    const sample = `UPDATE ${this.#table} USING TIMESTAMP 1 SET present = true WHERE term = ? AND sample = ?`;
    await cassandra.write([{ query: sample, params: [term, hash] }], deadline);
    const query = `SELECT count(sample) AS samples, max(level) AS level FROM ${this.#table} WHERE term = ?`;
    const [row] = await cassandra.read({ query, params: [term] }, deadline);
    const stored = this.#learn(term, row?.level);
    const needed = Math.ceil(Math.log2(Math.max(1, Number(row?.samples ?? 0) / SAMPLES_PER_BUCKET)));
    if (needed <= stored) return;
    const level = Math.min(needed, POSTING_LEVEL_MAX);
    await cassandra.write([this.#levelStatement(term, level)], deadline);
    this.#learn(term, level);
  }

  #levelStatement(term: string, level: number): Statement {
    const params: CqlValue[] = [BigInt(level), level, term];
    return { query: `UPDATE ${this.#table} USING TIMESTAMP ? SET level = ? WHERE term = ?`, params };
  }

  #learn(term: string, stored: unknown): number {
    const level = typeof stored === "number" ? stored : 0;
    if (level > this.known(term)) {
      if (this.#known.size >= POSTING_LEVELS_KNOWN_MAX) this.#known.clear();
      this.#known.set(term, level);
    }
    return level;
  }
}
