import {
  POSTING_DENSITY_RATIO_MAX,
  POSTING_READS_PER_PAGE_MAX,
  POSTINGS_PER_READ_MIN,
  POSTINGS_PER_WRITE,
} from "../../../common/limits.ts";
import type { EntityKey } from "../objects.ts";
import type { CqlValue, Statement } from "./cassandra.ts";
import type { Deadline } from "./deadline.ts";
import { keyHash } from "./hashes.ts";
import { bucketOf, PostingLevels } from "./posting-levels.ts";
import { BEGINNING, compare, PostingStream, type Position, type Posting } from "./posting-stream.ts";
import type { Tables } from "./tables.ts";

export interface PostingWrite {
  readonly key: EntityKey;
  readonly terms: readonly string[];
  readonly timeUs: number;
  /** Seconds to live, 0 for ever. */
  readonly ttl: number;
}

export interface PostingSearch {
  readonly terms: readonly string[];
  readonly after: Position | undefined;
  readonly limit: number;
}

export interface FoundPostings {
  /** Those of the rarest term, narrowed by others that are not much more frequent. At most the limit. */
  readonly postings: readonly Posting[];
  /** Where to go on; absent at the end. */
  readonly next?: Position;
}

/**
 * Terms of entities in `postings`: (term, bucket) to ids. Derived: written before the entity and removed after it with
 * the times of the values, so that it may say too much, never too little; readers check each at the entity.
 */
export class PostingTable {
  readonly #tables: Tables;
  readonly #levels: PostingLevels;
  readonly #add: string;
  readonly #remove: string;
  readonly #select: string;

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#levels = new PostingLevels(tables);
    const table = `${tables.keyspace}.postings`;
    const place = "term = ? AND bucket = ?";
    const row = `${place} AND hash = ? AND cid = ? AND id = ?`;
    this.#add = `UPDATE ${table} USING TIMESTAMP ? AND TTL ? SET time = ? WHERE ${row}`;
    this.#remove = `DELETE FROM ${table} USING TIMESTAMP ? WHERE ${row}`;
    this.#select = `SELECT hash, cid, id, time FROM ${table} WHERE ${place} AND (hash, cid, id) > (?, ?, ?) LIMIT ?`;
  }

  /** To be called before the entity is written. */
  async add({ key, terms, timeUs, ttl }: PostingWrite, deadline: Deadline): Promise<void> {
    if (terms.length === 0) return;
    const hash = keyHash(key);
    await Promise.all(terms.map((term) => this.#levels.count(term, hash, deadline)));
    const time = BigInt(timeUs);
    const statements = terms.flatMap((term) => [
      ...this.#levels.statements(term),
      { query: this.#add, params: [time, ttl, time, ...rowOf(term, this.#levels.known(term), { ...key, hash })] },
    ]);
    await this.#write(statements, deadline);
  }

  /** To be called after the entity is written. Covers postings of times up to this one. */
  async remove({ key, terms, timeUs }: Omit<PostingWrite, "ttl">, deadline: Deadline): Promise<void> {
    if (terms.length === 0) return;
    const levels = await this.#levels.stored(terms, deadline);
    const posting = { ...key, hash: keyHash(key), timeUs };
    await this.#write(
      terms.flatMap((term) => this.#removal(term, levels.get(term) ?? 0, posting)),
      deadline,
    );
  }

  /** Where entities lie that bear every term, and perhaps others that do not. */
  async find({ terms, after = BEGINNING, limit }: PostingSearch, deadline: Deadline): Promise<FoundPostings> {
    const levels = await this.#levels.stored(terms, deadline);
    const rowsPerRead = terms.length === 1 ? limit : Math.max(limit, POSTINGS_PER_READ_MIN);
    const streams = terms.map(
      (term) =>
        new PostingStream({
          read: (bucket, position) => this.#bucket(term, { bucket, after: position, limit: rowsPerRead }, deadline),
          rowsPerRead,
          level: levels.get(term) ?? 0,
          after,
        }),
    );
    const merged = new Intersection(after, await comparable(after, streams));
    const found: Posting[] = [...merged.step()];
    for (let reads = 1; found.length < limit && !merged.ended && reads < POSTING_READS_PER_PAGE_MAX; reads += 1) {
      await merged.refill();
      found.push(...merged.step());
    }
    const last = found[limit - 1];
    if (last !== undefined && (found.length > limit || !merged.ended))
      return { postings: found.slice(0, limit), next: last };
    return merged.ended ? { postings: found } : { postings: found, next: merged.reached };
  }

  /** How far the rarest of these terms is spread. */
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

  #removal(term: string, highest: number, posting: Posting): Statement[] {
    return Array.from({ length: highest + 1 }, (_, level) => ({
      query: this.#remove,
      params: [BigInt(posting.timeUs), ...rowOf(term, level, posting)],
    }));
  }

  /** Each in a partition of its own; a few together are one request. */
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
  readonly stream: PostingStream;
  rows: readonly Posting[];
}

/** The rarest, and those that are not so much more frequent that reading them costs more than they spare. */
async function comparable(after: Position, streams: readonly PostingStream[]): Promise<readonly Part[]> {
  const parts = await Promise.all(streams.map(async (stream) => ({ stream, rows: await stream.next() })));
  const density = ({ stream, rows }: Part): number => rows.length / (stream.reached.hash - after.hash + 1);
  const rarest = Math.min(...parts.map(density));
  return parts.filter((part) => density(part) <= rarest * POSTING_DENSITY_RATIO_MAX);
}

/** What several streams have in common, as far as all of them were read. */
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

  /** Reads on where everything was compared. */
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
