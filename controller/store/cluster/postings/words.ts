import {
  POSTINGS_PER_WRITE,
  WORD_PARTITIONS_PER_PAGE,
  WORD_PARTITION_WORDS,
  WORD_SAMPLE_ONE_IN,
  WORDS_KNOWN_MAX,
} from "../../../../common/limits.ts";
import type { Page, PageRequest, TermsRequest } from "../../objects.ts";
import { isWordTerm, WORD_MARK } from "../../terms.ts";
import type { CqlValue, Statement } from "../cassandra/cassandra.ts";
import { pageBefore, readCursor, requestText } from "../cursor.ts";
import type { Deadline } from "../deadline.ts";
import { hashOf } from "./hashes.ts";
import { RecentValues } from "./recent-values.ts";
import { longLife, NEVER_MS, ttlSeconds, type Tables } from "../tables.ts";

/** Pseudo class number for the words of all entities; words of records are under their class. */
const ENTITIES = -1;
/** Kind of the rows that list the partitions of words. */
const PARTITIONS = 0;
const WORDS = 1;
/** Sorts after every continuation of a word. */
const LAST = "\u{10ffff}";

/** The owner of words: a class of records, or all entities. */
export interface WordOwner {
  readonly cid?: number;
  readonly expiresAtMs?: number | undefined;
}

/** Position to continue from: all words of the partition up to `after` were returned. */
interface Place {
  readonly partition: string;
  readonly after?: string;
}

interface WordSizes {
  readonly partitionWords: number;
  readonly sampleOneIn: number;
}

/**
 * The list of words in their order: `words` has them by their first characters. A word is written before the first
 * entity or record that has it, and stays. So the list may have unused words, but none is missing. Words of expiring
 * data expire at least a day after the data (`longLife`). The expiry of a word is also its write time, so the write
 * with the latest expiry wins.
 *
 * A partition holds the words with one prefix. At `WORD_PARTITION_WORDS` it is split for good: later words are written
 * to the partitions of longer prefixes. Writers need not know of a split, because readers look at all prefixes of the
 * requested beginning.
 */
export class WordTable {
  readonly #tables: Tables;
  readonly #sizes: WordSizes;
  readonly #select: string;
  readonly #add: string;
  /** Words and partitions that were written, with their expiry time. */
  readonly #known = new RecentValues<number>(WORDS_KNOWN_MAX);
  readonly #splits = new RecentValues<true>(WORDS_KNOWN_MAX);
  readonly #writing = new Map<string, { readonly untilMs: number; readonly written: Promise<void> }>();

  constructor(
    tables: Tables,
    sizes: WordSizes = { partitionWords: WORD_PARTITION_WORDS, sampleOneIn: WORD_SAMPLE_ONE_IN },
  ) {
    this.#tables = tables;
    this.#sizes = sizes;
    const table = `${tables.keyspace}.words`;
    const partition = "cid = ? AND kind = ? AND beginning = ?";
    this.#add = `UPDATE ${table} USING TIMESTAMP ? AND TTL ? SET present = true WHERE ${partition} AND word = ?`;
    this.#select = `SELECT word FROM ${table} WHERE ${partition} AND word`;
  }

  /** Await it before the data with these terms is written. Terms that are no words are ignored. */
  async add(terms: readonly string[], { cid = ENTITIES, expiresAtMs }: WordOwner, deadline: Deadline): Promise<void> {
    const untilMs = longLife(expiresAtMs);
    const fresh: string[] = [];
    const others: Promise<void>[] = [];
    for (const word of new Set(terms.filter(isWordTerm).map((term) => term.slice(WORD_MARK.length)))) {
      const name = nameOf(cid, word);
      if ((this.#known.get(name) ?? 0) >= untilMs) continue;
      const writing = this.#writing.get(name);
      if (writing !== undefined && writing.untilMs >= untilMs) others.push(writing.written);
      else fresh.push(word);
    }
    if (fresh.length > 0) others.push(this.#begin(fresh, { cid, untilMs }, deadline));
    if (others.length > 0) await Promise.all(others);
  }

  /** Drops all knowledge, because the keyspace may have been lost, and recreated or restored. */
  forget(): void {
    this.#known.clear();
    this.#splits.clear();
  }

  /** Words with that beginning; a word may come twice. `undefined` for terms that are no words. */
  async list({ beginning, cid = ENTITIES }: TermsRequest, page: PageRequest): Promise<Page<string> | undefined> {
    if (!isWordTerm(beginning)) return undefined;
    const wanted = beginning.slice(WORD_MARK.length);
    const request = requestText(this.#tables.keyspace, "words", wanted, cid);
    const state = readCursor(request, page);
    const from = state === undefined ? undefined : (JSON.parse(state) as Place);
    const deadline = this.#tables.cassandra.deadline();
    const isBelow = from !== undefined && from.partition.length > wanted.length;
    const above = isBelow ? [] : beginningsOf(wanted).filter(({ length }) => length >= (from?.partition.length ?? 0));
    const search = { limit: WORD_PARTITIONS_PER_PAGE, beginning: wanted };
    const listed = { cid, kind: PARTITIONS, partition: "" };
    const below = await this.#read(listed, { ...search, from: isBelow ? from.partition : undefined }, deadline);
    const partitions = [...above, ...below.filter((partition) => partition !== wanted)];
    const words = await Promise.all(
      partitions.map((partition) => {
        const after = partition === from?.partition ? from.after : undefined;
        return this.#read({ cid, kind: WORDS, partition }, { beginning: wanted, limit: page.limit, after }, deadline);
      }),
    );
    const items: string[] = [];
    for (const [at, partition] of partitions.entries()) {
      const found = words[at]!;
      const room = page.limit - items.length;
      items.push(...found.slice(0, room).map((word) => `${WORD_MARK}${word}`));
      if (found.length > room || found.length === page.limit) {
        const after = found[room - 1];
        return pageBefore(items, request, textOf({ partition, ...(after !== undefined && { after }) }));
      }
    }
    const last = below.at(-1);
    return last === undefined || below.length < WORD_PARTITIONS_PER_PAGE
      ? { items }
      : pageBefore(items, request, textOf({ partition: last, after: LAST }));
  }

  /** Writes words. Words that other calls of this process are writing at the same time need not be written again. */
  async #begin(words: readonly string[], of: WordWrite, deadline: Deadline): Promise<void> {
    const writing = { untilMs: of.untilMs, written: this.#write(words, of, deadline) };
    const names = words.map((word) => nameOf(of.cid, word));
    for (const name of names) this.#writing.set(name, writing);
    try {
      await writing.written;
    } finally {
      for (const name of names) if (this.#writing.get(name) === writing) this.#writing.delete(name);
    }
  }

  async #write(words: readonly string[], { cid, untilMs }: WordWrite, deadline: Deadline): Promise<void> {
    const sampled = words.filter((word) => hashOf(cid, word) % this.#sizes.sampleOneIn === 0);
    await Promise.all(sampled.map((word) => this.#learn(cid, word, deadline)));
    const { cassandra } = this.#tables;
    const ttl = untilMs === NEVER_MS ? 0 : ttlSeconds(cassandra.runtime.clock, untilMs);
    const time = BigInt(untilMs) * 1_000n;
    const partitions = new Set<string>();
    const statements = words.map((word): Statement => {
      const partition = this.#partitionOf(cid, word);
      if (partition !== "") partitions.add(partition);
      return { query: this.#add, params: [time, ttl, cid, WORDS, partition, word] };
    });
    const fresh = [...partitions].filter((one) => this.#known.get(nameOf(cid, one, PARTITIONS)) === undefined);
    const listed = fresh.map((one) => ({ query: this.#add, params: [1n, 0, cid, PARTITIONS, "", one] }));
    await this.#writeAll([...listed, ...statements], deadline);
    for (const one of fresh) this.#known.set(nameOf(cid, one, PARTITIONS), NEVER_MS);
    for (const word of words) this.#known.set(nameOf(cid, word), untilMs);
  }

  async #writeAll(statements: readonly Statement[], deadline: Deadline): Promise<void> {
    const writes = [];
    for (let from = 0; from < statements.length; from += POSTINGS_PER_WRITE)
      writes.push(this.#tables.cassandra.write(statements.slice(from, from + POSTINGS_PER_WRITE), deadline));
    await Promise.all(writes);
  }

  /** The shortest prefix of the word that is not known to be split. */
  #partitionOf(cid: number, word: string): string {
    return beginningsOf(word).find((one) => this.#splits.get(nameOf(cid, one)) === undefined) ?? word;
  }

  /** Learns which partitions of the word's prefixes are split, and whether its own partition must be split. */
  async #learn(cid: number, word: string, deadline: Deadline): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const query = `SELECT DISTINCT cid, kind, beginning, split FROM ${keyspace}.words WHERE cid = ? AND kind = ? AND beginning IN ?`;
    const rows = await cassandra.read({ query, params: [cid, WORDS, beginningsOf(word)] }, deadline);
    for (const row of rows) if (row.split === true) this.#splits.set(nameOf(cid, String(row.beginning)), true);
    const partition = this.#partitionOf(cid, word);
    const params: CqlValue[] = [cid, WORDS, partition];
    const place = `${keyspace}.words`;
    const count = `SELECT count(word) AS words FROM ${place} WHERE cid = ? AND kind = ? AND beginning = ?`;
    const [row] = await cassandra.read({ query: count, params }, deadline);
    if (Number(row?.words ?? 0) < this.#sizes.partitionWords) return;
    const split = `UPDATE ${place} USING TIMESTAMP 1 SET split = true WHERE cid = ? AND kind = ? AND beginning = ?`;
    await cassandra.write([{ query: split, params }], deadline);
    this.#splits.set(nameOf(cid, partition), true);
  }

  async #read(
    { cid, kind, partition }: { readonly cid: number; readonly kind: number; readonly partition: string },
    { beginning, from = beginning, after, limit }: WordRange,
    deadline: Deadline,
  ): Promise<readonly string[]> {
    const query = `${this.#select} ${after === undefined ? ">=" : ">"} ? AND word < ? LIMIT ?`;
    const params = [cid, kind, partition, after ?? from, `${beginning}${LAST}`, limit];
    const rows = await this.#tables.cassandra.read({ query, params }, deadline);
    return rows.map(({ word }) => String(word));
  }
}

interface WordWrite {
  readonly cid: number;
  readonly untilMs: number;
}

interface WordRange {
  readonly beginning: string;
  /** The first wanted word, inclusive. */
  readonly from?: string | undefined;
  /** Only words after this one; wins over `from`. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** All prefixes of the word, from the empty one to the whole word. */
function beginningsOf(word: string): string[] {
  const beginnings = [""];
  for (const character of word) beginnings.push(`${beginnings.at(-1)!}${character}`);
  return beginnings;
}

function nameOf(cid: number, text: string, kind = WORDS): string {
  return `${cid}/${kind}/${text}`;
}

function textOf(place: Place): string {
  return JSON.stringify(place);
}
