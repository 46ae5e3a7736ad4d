import { Client, types } from "cassandra-driver";
import { hashOf } from "../../../controller/store/cluster/postings/hashes.ts";
import type { ClusterSettings } from "../../../deploy/local/cluster.ts";

/**
 * Layouts for finding objects on Cassandra, with bare statements of the driver. They differ only in the place of the
 * terms of values and words. Write times are explicit, as in the engine.
 */

const CID = 7;
/** Ids per bucket to which the engine's levels spread postings: `SAMPLES_PER_BUCKET` samples of one in 256. */
const IDS_PER_BUCKET = 4_096;
const BUCKETS_AT_ONCE = 16;
const POSTINGS_PER_BATCH = 100;

/** Prefix of values that very many objects take; all other terms have one bucket. */
export const FREQUENT = "frequent ";

export interface LaidObject {
  readonly id: string;
  /** Texts of indexed values. */
  readonly values: readonly string[];
  readonly words: readonly string[];
}

export interface Layout {
  readonly name: string;
  /** Writes an object. `before`: its former state; absent if it is new. It expires after `ttl` seconds; 0: never. */
  put(object: LaidObject, how?: { readonly before?: LaidObject; readonly ttl?: number }): Promise<void>;
  remove(object: LaidObject): Promise<void>;
  /** Reads the first objects with a value, and returns their number. */
  byValue(value: string, limit: number): Promise<number>;
  byWord(word: string, limit: number): Promise<number>;
  get(id: string): Promise<number>;
}

interface Query {
  readonly query: string;
  readonly params: unknown[];
}

export class LayoutTables {
  readonly layouts: readonly Layout[];
  readonly #client: Client;
  readonly #keyspace: string;

  private constructor(client: Client, keyspace: string, idsEver: number) {
    this.#client = client;
    this.#keyspace = keyspace;
    const session = new Session(client, keyspace, idsEver);
    this.layouts = [new AllPostings(session), new WordsBeside(session), new OneSet(session)];
  }

  /** `idsEver`: number of objects that ever take one value in this run. It determines the number of buckets. */
  static async open(settings: ClusterSettings, idsEver: number): Promise<LayoutTables> {
    const [host = "", port = "9042"] = (settings.cassandraContactPoints[0] ?? "").split(":");
    const client = new Client({
      contactPoints: settings.cassandraContactPoints.map((point) => point.split(":")[0] ?? host),
      localDataCenter: settings.cassandraDatacenter,
      protocolOptions: { port: Number(port) },
      encoding: { useBigIntAsLong: true },
      socketOptions: { readTimeout: 30_000 },
    });
    const keyspace = `layouts${process.pid}`;
    const replicas = Math.min(3, settings.cassandraContactPoints.length);
    for (const definition of definitions(keyspace, settings.cassandraDatacenter, replicas))
      await client.execute(definition, [], { readTimeout: 60_000 });
    return new LayoutTables(client, keyspace, idsEver);
  }

  async close(): Promise<void> {
    await this.#client.execute(`DROP KEYSPACE ${this.#keyspace}`, [], { readTimeout: 60_000 });
    await this.#client.shutdown();
  }
}

function definitions(keyspace: string, datacenter: string, replicas: number): readonly string[] {
  const object = "cid int, id text, birth bigint, attrs map<text, blob>";
  const posting = "term text, bucket int, hash int, id text, time bigint, PRIMARY KEY ((term, bucket), hash, id)";
  return [
    `CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${datacenter}': ${replicas}}`,
    `CREATE TABLE ${keyspace}.plain (${object}, PRIMARY KEY ((cid, id)))`,
    `CREATE TABLE ${keyspace}.worded (${object}, words set<text>, PRIMARY KEY ((cid, id)))`,
    `CREATE TABLE ${keyspace}.termed (${object}, terms set<text>, PRIMARY KEY ((cid, id)))`,
    `CREATE TABLE ${keyspace}.plain_postings (${posting}) WITH gc_grace_seconds = 14400`,
    `CREATE TABLE ${keyspace}.worded_postings (${posting}) WITH gc_grace_seconds = 14400`,
    `CREATE INDEX ON ${keyspace}.worded (words) USING 'sai'`,
    `CREATE INDEX ON ${keyspace}.termed (terms) USING 'sai'`,
  ];
}

class Session {
  readonly #client: Client;
  readonly keyspace: string;
  /** Number of buckets of each frequent value. */
  readonly buckets: number;
  #lastUs = 0;

  constructor(client: Client, keyspace: string, idsEver: number) {
    this.#client = client;
    this.keyspace = keyspace;
    this.buckets = 2 ** Math.max(0, Math.ceil(Math.log2(idsEver / IDS_PER_BUCKET)));
  }

  nextUs(): bigint {
    this.#lastUs = Math.max(this.#lastUs + 1, Date.now() * 1_000);
    return BigInt(this.#lastUs);
  }

  async run({ query, params }: Query): Promise<types.Row[]> {
    return (await this.#client.execute(query, params, OPTIONS)).rows;
  }

  async batch(queries: readonly Query[]): Promise<void> {
    const [only, ...others] = queries;
    if (only === undefined) return;
    if (others.length === 0) await this.run(only);
    else await this.#client.batch([...queries], { ...OPTIONS, logged: false });
  }
}

const OPTIONS = { prepare: true, isIdempotent: true, consistency: types.consistencies.localQuorum };
const ATTRIBUTES = new Map(Array.from({ length: 10 }, (_, at) => [`a${at}`, Buffer.from(`value ${at} of an object`)]));

/** Rows (term, bucket) → ids. */
class Postings {
  readonly #session: Session;
  readonly #table: string;

  constructor(session: Session, table: string) {
    this.#session = session;
    this.#table = `${session.keyspace}.${table}`;
  }

  async add(id: string, terms: readonly string[], { timeUs, ttl }: { timeUs: bigint; ttl: number }): Promise<void> {
    const query = `UPDATE ${this.#table} USING TIMESTAMP ? AND TTL ? SET time = ? WHERE term = ? AND bucket = ? AND hash = ? AND id = ?`;
    await this.#write(terms.map((term) => ({ query, params: [timeUs, ttl, timeUs, ...this.#row(term, id)] })));
  }

  async remove(id: string, terms: readonly string[], timeUs: bigint): Promise<void> {
    const query = `DELETE FROM ${this.#table} USING TIMESTAMP ? WHERE term = ? AND bucket = ? AND hash = ? AND id = ?`;
    await this.#write(terms.map((term) => ({ query, params: [timeUs, ...this.#row(term, id)] })));
  }

  async find(term: string, limit: number): Promise<readonly string[]> {
    const query = `SELECT id FROM ${this.#table} WHERE term = ? AND bucket = ? LIMIT ?`;
    const ids: string[] = [];
    for (let from = 0; from < this.#bucketsOf(term) && ids.length < limit; from += BUCKETS_AT_ONCE) {
      const buckets = Array.from(
        { length: Math.min(BUCKETS_AT_ONCE, this.#bucketsOf(term) - from) },
        (_, n) => from + n,
      );
      const found = await Promise.all(
        buckets.map((bucket) => this.#session.run({ query, params: [term, bucket, limit] })),
      );
      ids.push(...found.flat().map((row) => String(row.id)));
    }
    return ids.slice(0, limit);
  }

  async #write(queries: readonly Query[]): Promise<void> {
    for (let from = 0; from < queries.length; from += POSTINGS_PER_BATCH)
      await this.#session.batch(queries.slice(from, from + POSTINGS_PER_BATCH));
  }

  #row(term: string, id: string): unknown[] {
    const hash = hashOf(CID, id);
    return [term, hash % this.#bucketsOf(term), hash, id];
  }

  #bucketsOf(term: string): number {
    return term.startsWith(FREQUENT) ? this.#session.buckets : 1;
  }
}

/** Stores values and words as postings, written before the object and removed after it. */
class AllPostings implements Layout {
  readonly name = "postings for values and words";
  readonly #session: Session;
  readonly #postings: Postings;

  constructor(session: Session) {
    this.#session = session;
    this.#postings = new Postings(session, "plain_postings");
  }

  async put(object: LaidObject, { before, ttl = 0 }: { before?: LaidObject; ttl?: number } = {}): Promise<void> {
    const timeUs = this.#session.nextUs();
    await this.#postings.add(object.id, termsOf(object), { timeUs, ttl });
    const query = `UPDATE ${this.#session.keyspace}.plain USING TIMESTAMP ? AND TTL ? SET birth = ?, attrs = attrs + ? WHERE cid = ? AND id = ?`;
    await this.#session.run({ query, params: [timeUs, ttl, timeUs, ATTRIBUTES, CID, object.id] });
    if (before !== undefined) await this.#postings.remove(before.id, without(termsOf(before), termsOf(object)), timeUs);
  }

  async remove(object: LaidObject): Promise<void> {
    const timeUs = this.#session.nextUs();
    await this.#session.run(removal(this.#session, "plain", timeUs, object));
    await this.#postings.remove(object.id, termsOf(object), timeUs);
  }

  async byValue(value: string, limit: number): Promise<number> {
    return readAll(this.#session, "plain", await this.#postings.find(value, limit));
  }

  byWord(word: string, limit: number): Promise<number> {
    return this.byValue(word, limit);
  }

  get(id: string): Promise<number> {
    return readAll(this.#session, "plain", [id]);
  }
}

/** Stores values as postings, and words as one indexed set of the object that is always assigned as a whole. */
class WordsBeside implements Layout {
  readonly name = "postings for values, words in a set";
  readonly #session: Session;
  readonly #postings: Postings;

  constructor(session: Session) {
    this.#session = session;
    this.#postings = new Postings(session, "worded_postings");
  }

  async put(object: LaidObject, { before, ttl = 0 }: { before?: LaidObject; ttl?: number } = {}): Promise<void> {
    const timeUs = this.#session.nextUs();
    await this.#postings.add(object.id, object.values, { timeUs, ttl });
    const query = `UPDATE ${this.#session.keyspace}.worded USING TIMESTAMP ? AND TTL ? SET birth = ?, attrs = attrs + ?, words = ? WHERE cid = ? AND id = ?`;
    await this.#session.run({ query, params: [timeUs, ttl, timeUs, ATTRIBUTES, object.words, CID, object.id] });
    if (before !== undefined) await this.#postings.remove(before.id, without(before.values, object.values), timeUs);
  }

  async remove(object: LaidObject): Promise<void> {
    const timeUs = this.#session.nextUs();
    await this.#session.run(removal(this.#session, "worded", timeUs, object));
    await this.#postings.remove(object.id, object.values, timeUs);
  }

  async byValue(value: string, limit: number): Promise<number> {
    return readAll(this.#session, "worded", await this.#postings.find(value, limit));
  }

  byWord(word: string, limit: number): Promise<number> {
    return byIndex(this.#session, { table: "worded", column: "words" }, word, limit);
  }

  get(id: string): Promise<number> {
    return readAll(this.#session, "worded", [id]);
  }
}

/** Stores all terms in one indexed set of the object; writes add and remove single terms. */
class OneSet implements Layout {
  readonly name = "one set of terms";
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  async put(object: LaidObject, { before, ttl = 0 }: { before?: LaidObject; ttl?: number } = {}): Promise<void> {
    const timeUs = this.#session.nextUs();
    const { keyspace } = this.#session;
    const added = termsOf(object);
    const query = `UPDATE ${keyspace}.termed USING TIMESTAMP ? AND TTL ? SET birth = ?, attrs = attrs + ?, terms = terms + ? WHERE cid = ? AND id = ?`;
    const dropped = before === undefined ? [] : without(termsOf(before), added);
    const drop = `UPDATE ${keyspace}.termed USING TIMESTAMP ? SET terms = terms - ? WHERE cid = ? AND id = ?`;
    await this.#session.batch([
      { query, params: [timeUs, ttl, timeUs, ATTRIBUTES, added, CID, object.id] },
      ...(dropped.length === 0 ? [] : [{ query: drop, params: [timeUs, dropped, CID, object.id] }]),
    ]);
  }

  async remove(object: LaidObject): Promise<void> {
    await this.#session.run(removal(this.#session, "termed", this.#session.nextUs(), object));
  }

  byValue(value: string, limit: number): Promise<number> {
    return byIndex(this.#session, { table: "termed", column: "terms" }, value, limit);
  }

  byWord(word: string, limit: number): Promise<number> {
    return this.byValue(word, limit);
  }

  get(id: string): Promise<number> {
    return readAll(this.#session, "termed", [id]);
  }
}

function termsOf({ values, words }: LaidObject): readonly string[] {
  return [...values, ...words];
}

function without(terms: readonly string[], others: readonly string[]): readonly string[] {
  const kept = new Set(others);
  return terms.filter((term) => !kept.has(term));
}

function removal({ keyspace }: Session, table: string, timeUs: bigint, { id }: LaidObject): Query {
  return {
    query: `DELETE FROM ${keyspace}.${table} USING TIMESTAMP ? WHERE cid = ? AND id = ?`,
    params: [timeUs, CID, id],
  };
}

async function readAll(session: Session, table: string, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const query = `SELECT id, birth, attrs FROM ${session.keyspace}.${table} WHERE cid = ? AND id IN ?`;
  return (await session.run({ query, params: [CID, ids] })).length;
}

async function byIndex(
  session: Session,
  { table, column }: { readonly table: string; readonly column: string },
  term: string,
  limit: number,
): Promise<number> {
  const query = `SELECT id, birth, attrs FROM ${session.keyspace}.${table} WHERE ${column} CONTAINS ? LIMIT ?`;
  return (await session.run({ query, params: [term, limit] })).length;
}
