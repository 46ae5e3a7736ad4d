import { POSTING_BUCKETS_AT_ONCE } from "../../../../common/limits.ts";
import type { EntityKey } from "../../objects.ts";
import { HASH_BITS } from "./hashes.ts";
import { bucketOf, bucketWidth } from "./bucket-levels.ts";

/** A position in the order of all postings of a term: by hash, class and the bytes of the id. */
export interface Position extends EntityKey {
  readonly hash: number;
}

export interface Posting extends Position {
  /** Write time of the posting: see `derivedTimeUs`. */
  readonly timeUs: number;
}

/** Before all postings. */
export const BEGINNING: Position = { hash: 0, cid: -1, id: "" };
/** After all postings. */
export const END: Position = { hash: 2 ** HASH_BITS, cid: -1, id: "" };

/** Reads the postings of one bucket after a position, in order. */
export type ReadBucket = (bucket: number, after: Position) => Promise<readonly Posting[]>;

interface Level {
  rows: Posting[];
  /** All postings up to this position are in `rows`, or were returned. */
  upTo: Position;
  /** Number of buckets in the next read. */
  atOnce: number;
}

/**
 * The postings of one term in their order, merged from the buckets of all levels. An id written at several levels comes
 * once, with its latest time.
 */
export class PostingStream {
  readonly #read: ReadBucket;
  readonly #rowsPerRead: number;
  readonly #levels: Level[];
  /** All postings up to this position were returned. */
  reached: Position;

  constructor(of: { readonly read: ReadBucket; readonly rowsPerRead: number; level: number; after: Position }) {
    this.#read = of.read;
    this.#rowsPerRead = of.rowsPerRead;
    this.reached = of.after;
    this.#levels = Array.from({ length: of.level + 1 }, () => ({ rows: [], upTo: of.after, atOnce: 1 }));
  }

  get ended(): boolean {
    return compare(this.reached, END) >= 0;
  }

  /** The next postings after one read of each level; may be empty. */
  async next(): Promise<readonly Posting[]> {
    await Promise.all(this.#levels.map((level, at) => this.#refill(level, at)));
    this.reached = this.#levels.map(({ upTo }) => upTo).reduce((a, b) => (compare(a, b) <= 0 ? a : b));
    const ready = this.#levels.flatMap((level) => taken(level, this.reached));
    ready.sort(compare);
    const latest: Posting[] = [];
    for (const posting of ready) {
      const before = latest.at(-1);
      if (before === undefined || compare(before, posting) !== 0) latest.push(posting);
      else if (before.timeUs < posting.timeUs) latest[latest.length - 1] = posting;
    }
    return latest;
  }

  /** Reads more and more buckets at once while they are nearly empty, because most of their ids are gone. */
  async #refill(level: Level, at: number): Promise<void> {
    if (compare(level.upTo, this.reached) > 0 || this.ended) return;
    const places = placesFrom(level.upTo, at, level.atOnce);
    const parts = await Promise.all(
      places.map(async (after) => ({ after, rows: await this.#read(bucketOf(after.hash, at), after) })),
    );
    const full = parts.findIndex(({ rows }) => rows.length >= this.#rowsPerRead);
    const taken = full < 0 ? parts : parts.slice(0, full + 1);
    level.rows = taken.flatMap(({ rows }) => rows);
    level.upTo = (full < 0 ? undefined : level.rows.at(-1)) ?? bucketEnd(places.at(-1) ?? level.upTo, at);
    const isSparse = level.rows.length * 2 <= this.#rowsPerRead;
    level.atOnce = isSparse ? Math.min(2 * level.atOnce, POSTING_BUCKETS_AT_ONCE) : 1;
  }
}

/** The position to continue from in its bucket, and the beginnings of the next buckets at this level. */
function placesFrom(upTo: Position, at: number, atMost: number): readonly Position[] {
  const places = [upTo];
  while (places.length < atMost) {
    const next = bucketEnd(places.at(-1)!, at);
    if (compare(next, END) >= 0) break;
    places.push(next);
  }
  return places;
}

/** The position after all postings of the bucket. */
function bucketEnd({ hash }: Position, at: number): Position {
  const width = bucketWidth(at);
  return { ...END, hash: (Math.floor(hash / width) + 1) * width };
}

/** Removes and returns the rows of a level up to a position. */
function taken(level: Level, upTo: Position): Posting[] {
  const beyond = level.rows.findIndex((row) => compare(row, upTo) > 0);
  return level.rows.splice(0, beyond < 0 ? level.rows.length : beyond);
}

/** Compares in Cassandra's order. */
export function compare(a: Position, b: Position): number {
  if (a.hash !== b.hash) return a.hash - b.hash;
  if (a.cid !== b.cid) return a.cid - b.cid;
  return a.id === b.id ? 0 : Buffer.compare(Buffer.from(a.id), Buffer.from(b.id));
}
