import { mapLimited } from "../../../../common/concurrency.ts";
import {
  POSTING_DENSITY_RATIO_MAX,
  POSTING_READS_PER_PAGE_MAX,
  POSTINGS_PER_READ_MIN,
  POSTINGS_PER_WRITE,
  SCRUB_CHECKS_AT_ONCE,
  TERMS_COMPARED_MAX,
} from "../../../../common/limits.ts";
import type { EntityKey, TermEstimate } from "../../objects.ts";
import type { CqlValue, Statement } from "../cassandra/cassandra.ts";
import type { Deadline } from "../deadline.ts";
import { keyHash } from "./hashes.ts";
import { bucketOf, BucketLevels } from "./bucket-levels.ts";
import {
  BEGINNING,
  compare,
  END,
  PostingStream,
  type Position,
  type Posting,
  type ReadBucket,
} from "./posting-stream.ts";
import type { Tables } from "../tables.ts";
import type { WordTable } from "./words.ts";

export interface PostingWrite {
  readonly key: EntityKey;
  readonly terms: readonly string[];
  readonly timeUs: number;
  /** Seconds to live; 0: forever. */
  readonly ttl: number;
}

export interface PostingSearch {
  readonly terms: readonly string[];
  /** Indexes of the compared terms, as an earlier page chose them. Absent: not chosen yet. */
  readonly compared?: readonly number[] | undefined;
  readonly after: Position | undefined;
  readonly limit: number;
}

export interface FoundPostings {
  /** Postings of the rarest term, narrowed by other terms that are not much more frequent. At most the limit. */
  readonly postings: readonly Posting[];
  /** Indexes of the compared terms, rarest first. */
  readonly compared: readonly number[];
  /** The position to continue from; absent at the end. */
  readonly next?: Position;
}

/**
 * Terms of entities in `postings`: (term, bucket) to ids. Postings are derived data: written before the entity, with
 * the time `derivedTimeUs` of the change, and removed after it. So there may be superfluous postings, but none is
 * missing; readers check each posting at the entity.
 */
export class PostingTable {
  readonly #tables: Tables;
  readonly #levels: BucketLevels;
  readonly #add: string;
  readonly #remove: string;
  readonly #select: string;

  readonly #words: WordTable | undefined;

  constructor(tables: Tables, words?: WordTable) {
    this.#tables = tables;
    this.#words = words;
    this.#levels = new BucketLevels(tables);
    const table = `${tables.keyspace}.postings`;
    const place = "term = ? AND bucket = ?";
    const row = `${place} AND hash = ? AND cid = ? AND id = ?`;
    this.#add = `UPDATE ${table} USING TIMESTAMP ? AND TTL ? SET time = ? WHERE ${row}`;
    this.#remove = `DELETE FROM ${table} USING TIMESTAMP ? WHERE ${row}`;
    this.#select = `SELECT hash, cid, id, time FROM ${table} WHERE ${place} AND (hash, cid, id) > (?, ?, ?) LIMIT ?`;
  }

  /** Call it before the entity is written. */
  async add({ key, terms, timeUs, ttl }: PostingWrite, deadline: Deadline): Promise<void> {
    if (terms.length === 0) return;
    const hash = keyHash(key);
    const expiresAtMs = ttl === 0 ? undefined : this.#expiryMs(ttl);
    // The entity is written after both, so neither must wait for the other.
    await Promise.all([
      this.#words?.add(terms, { expiresAtMs }, deadline),
      this.#post({ key, terms, timeUs, ttl }, hash, deadline),
    ]);
  }

  async #post({ key, terms, timeUs, ttl }: PostingWrite, hash: number, deadline: Deadline): Promise<void> {
    await Promise.all(terms.map((term) => this.#levels.count(term, hash, deadline)));
    const time = BigInt(timeUs);
    const statements = terms.flatMap((term) => [
      ...this.#levels.statements(term),
      { query: this.#add, params: [time, ttl, time, ...rowOf(term, this.#levels.known(term), { ...key, hash })] },
    ]);
    await this.#write(statements, deadline);
  }

  /** Call it after the entity is written. Removes postings with times up to this one. */
  async remove({ key, terms, timeUs }: Omit<PostingWrite, "ttl">, deadline: Deadline): Promise<void> {
    if (terms.length === 0) return;
    const levels = await this.#levels.stored(terms, deadline);
    const position = { ...key, hash: keyHash(key) };
    const buckets = await Promise.all(
      terms.map(async (term) => {
        const level = levels.get(term) ?? 0;
        return level === 0 ? [bucketOf(position.hash, 0)] : this.#lying(term, position, level, deadline);
      }),
    );
    await this.#write(
      terms.flatMap((term, at) =>
        (buckets[at] ?? []).map((bucket) => ({
          query: this.#remove,
          params: [BigInt(timeUs), term, bucket, position.hash, key.cid, key.id],
        })),
      ),
      deadline,
    );
  }

  /**
   * The buckets that contain the entity. A removal is written only to these. Removals at every level would leave a
   * tombstone of every id that was ever added in the single bucket of level 0. A posting that arrives later is
   * superfluous, but harmless.
   */
  async #lying(
    term: string,
    { hash, cid, id }: Position,
    level: number,
    deadline: Deadline,
  ): Promise<readonly number[]> {
    const buckets = Array.from({ length: level + 1 }, (_, at) => bucketOf(hash, at));
    const places = buckets.map(() => "?").join(", ");
    const query = `SELECT bucket FROM ${this.#tables.keyspace}.postings WHERE term = ? AND bucket IN (${places}) AND hash = ? AND cid = ? AND id = ?`;
    const rows = await this.#tables.cassandra.read({ query, params: [term, ...buckets, hash, cid, id] }, deadline);
    return rows.map(({ bucket }) => bucket as number);
  }

  /** The terms among these that have no posting of the entity. */
  async unposted(key: EntityKey, terms: readonly string[], deadline: Deadline): Promise<readonly string[]> {
    const levels = await this.#levels.stored(terms, deadline);
    const hash = keyHash(key);
    const found = await mapLimited(terms, SCRUB_CHECKS_AT_ONCE, (term) =>
      this.#lying(term, { ...key, hash }, levels.get(term) ?? 0, deadline),
    );
    return terms.filter((_, at) => found[at]?.length === 0);
  }

  /** Postings of entities that have every term, and perhaps of others. */
  async find({ terms, compared, after = BEGINNING, limit }: PostingSearch, deadline: Deadline): Promise<FoundPostings> {
    const read = compared?.map((place) => terms[place] ?? "") ?? terms;
    // While the terms to compare are not chosen yet, only few rows of each are held.
    const least = read.length > 1 + TERMS_COMPARED_MAX ? POSTINGS_PER_READ_MIN : limit;
    const rowsPerRead = read.length === 1 ? limit : Math.max(least, POSTINGS_PER_READ_MIN);
    const parts = await this.#begun({ terms: read, after, rowsPerRead }, deadline);
    const chosen = compared === undefined ? selective(parts, after) : parts;
    const places = compared ?? chosen.map(({ place }) => place);
    const merged = new Intersection(after, chosen);
    const found: Posting[] = [...merged.step()];
    for (let reads = 1; found.length < limit && !merged.ended && reads < POSTING_READS_PER_PAGE_MAX; reads += 1) {
      await merged.refill();
      found.push(...merged.step());
    }
    const last = found[limit - 1];
    if (last !== undefined && (found.length > limit || !merged.ended))
      return { postings: found.slice(0, limit), compared: places, next: last };
    return { postings: found, compared: places, ...(merged.ended ? {} : { next: merged.reached }) };
  }

  /**
   * Estimates the number of postings per term from its first ones, assuming that all are equally dense. Rarest first.
   */
  async estimate(terms: readonly string[], deadline: Deadline): Promise<readonly Required<TermEstimate>[]> {
    const of = { terms, after: BEGINNING, rowsPerRead: POSTINGS_PER_READ_MIN };
    const parts = await this.#begun(of, deadline);
    const read = new Set(selective(parts, BEGINNING));
    return byDensity(parts, BEGINNING).map((part) => ({
      term: terms[part.place] ?? "",
      count: Math.round(density(part, BEGINNING) * END.hash),
      isRead: read.has(part),
    }));
  }

  /** The streams of postings, with the first rows of each. */
  async #begun(
    {
      terms,
      after,
      rowsPerRead,
    }: { readonly terms: readonly string[]; readonly after: Position; readonly rowsPerRead: number },
    deadline: Deadline,
  ): Promise<readonly Part[]> {
    const levels = await this.#levels.stored(terms, deadline);
    return Promise.all(
      terms.map(async (term, place) => {
        const read: ReadBucket = (bucket, position) =>
          this.#bucket(term, { bucket, after: position, limit: rowsPerRead }, deadline);
        const stream = new PostingStream({ read, rowsPerRead, level: levels.get(term) ?? 0, after });
        return { place, stream, rows: await stream.next() };
      }),
    );
  }

  /** The level of the rarest of these terms. */
  async level(terms: readonly string[], deadline: Deadline): Promise<number> {
    return Math.min(...(await this.#levels.stored(terms, deadline)).values());
  }

  async #bucket(
    term: string,
    of: { readonly bucket: number; readonly after: Position; readonly limit: number },
    deadline: Deadline,
  ): Promise<readonly Posting[]> {
    const { hash, cid, id } = of.after;
    const params = [term, of.bucket, hash, cid, id, of.limit];
    const rows = await this.#tables.cassandra.read({ query: this.#select, params }, deadline);
    return rows.map((row) => ({
      hash: row.hash as number,
      cid: row.cid as number,
      id: row.id as string,
      timeUs: Number(row.time),
    }));
  }

  #expiryMs(ttl: number): number {
    return this.#tables.cassandra.runtime.clock.nowMs() + ttl * 1_000;
  }

  /** Writes statements, each in its own partition; a few of them share one request. */
  async #write(statements: readonly Statement[], deadline: Deadline): Promise<void> {
    const writes = [];
    for (let from = 0; from < statements.length; from += POSTINGS_PER_WRITE)
      writes.push(this.#tables.cassandra.write(statements.slice(from, from + POSTINGS_PER_WRITE), deadline));
    await Promise.all(writes);
  }
}

function rowOf(term: string, level: number, { hash, cid, id }: Position): CqlValue[] {
  return [term, bucketOf(hash, level), hash, cid, id];
}

interface Part {
  /** Index of its term among the requested ones. */
  readonly place: number;
  readonly stream: PostingStream;
  rows: readonly Posting[];
}

/**
 * The rarest term, and those that are not so much more frequent that reading them costs more than it saves. At most
 * `TERMS_COMPARED_MAX` besides the rarest, so that a page holds the rows of few streams.
 */
function selective(parts: readonly Part[], after: Position): readonly Part[] {
  const ranked = byDensity(parts, after);
  const most = density(ranked[0]!, after) * POSTING_DENSITY_RATIO_MAX;
  return ranked.filter((part) => density(part, after) <= most).slice(0, 1 + TERMS_COMPARED_MAX);
}

function byDensity(parts: readonly Part[], after: Position): readonly Part[] {
  return parts.toSorted((a, b) => density(a, after) - density(b, after));
}

/** Postings per hash, estimated from the first rows. */
function density({ stream, rows }: Part, after: Position): number {
  return rows.length / (stream.reached.hash - after.hash + 1);
}

/** The common postings of several streams, up to the position that all have reached. */
class Intersection {
  readonly #parts: readonly Part[];
  reached: Position;

  constructor(after: Position, parts: readonly Part[]) {
    this.reached = after;
    this.#parts = parts;
  }

  get ended(): boolean {
    return this.#parts.some(({ stream, rows }) => stream.ended && rows.length === 0);
  }

  /** Reads on in the streams whose postings are all compared. */
  async refill(): Promise<void> {
    await Promise.all(
      this.#parts.map(async (part) => {
        if (compare(part.stream.reached, this.reached) <= 0) part.rows = await part.stream.next();
      }),
    );
  }

  step(): readonly Posting[] {
    this.reached = this.#parts.map(({ stream }) => stream.reached).reduce((a, b) => (compare(a, b) <= 0 ? a : b));
    const [first, ...others] = this.#parts.map((part) => {
      const compared = part.rows.filter((row) => compare(row, this.reached) <= 0);
      part.rows = part.rows.slice(compared.length);
      return compared;
    });
    const borne = others.map((rows) => new Set(rows.map(text)));
    return (first ?? []).filter((row) => borne.every((texts) => texts.has(text(row))));
  }
}

function text({ cid, id }: Posting): string {
  return `${cid}:${id}`;
}
