import { crc32 } from "node:zlib";
import type { types } from "cassandra-driver";
import {
  COUNTED_ROWS_PER_READ,
  RECORD_BATCH_MAX_BYTES,
  RECORD_BATCH_MAX_ROWS,
  RECORD_DAYS_CACHED_MAX,
  RECORD_RANKS,
  TIMELINE_PARTITIONS_PER_PAGE,
} from "../../../common/limits.ts";
import type {
  ClassCount,
  EntityKey,
  Page,
  PageRequest,
  RecordSpan,
  StoredRecord,
  TimelineRequest,
} from "../objects.ts";
import type { CqlValue, Statement } from "./cassandra.ts";
import { pageBefore, readCursor, requestText, writeCursor } from "./cursor.ts";
import type { Deadline } from "./deadline.ts";
import { plainBytes } from "./entities.ts";
import { longLife, NEVER_MS, ttlSeconds, type Tables } from "./tables.ts";
import type { WordTable } from "./words.ts";
import { indexedTerms } from "../terms.ts";

const DAY_MS = 86_400_000;
/** Partitions a day of one class is spread over. A changed number is a changed format. */
const SHARDS = [0, 1, 2, 3] as const;
/** What tells whether a record is there, and all that `toRecord` reads. */
const TIMES = "writetime(value) AS written, expires, writetime(expires) AS ends_written";
const ROW = `cid, id, value, ${TIMES}, terms`;
const MS_US = 1_000n;
const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ID_TIME_CHARACTERS = 10;
const ID_CHARACTERS = 26;

/** Records in `records`: partitions of class, day and shard, ordered by id, which begins with the time. */
export class RecordTable {
  readonly #tables: Tables;
  /** Made once: the driver knows a statement by its text. One with expiry is 1 further on, one with terms 2. */
  readonly #updates: readonly string[];
  /** (class, day) → until when `record_days` is known to list it. */
  readonly #knownDays = new Map<string, number>();

  readonly #words: WordTable | undefined;

  constructor(tables: Tables, words?: WordTable) {
    this.#tables = tables;
    this.#words = words;
    this.#updates = [[], ["expires = ?"], ["terms = terms + ?"], ["expires = ?", "terms = terms + ?"]].map((more) => {
      const assignments = ["value = ?", ...more].join(", ");
      return `UPDATE ${tables.keyspace}.records USING TIMESTAMP ? AND TTL ? SET ${assignments} WHERE cid = ? AND day = ? AND shard = ? AND id = ?`;
    });
  }

  /**
   * The writes to be waited for: neighbours of one partition go together. Those of a batch happen or do not, each for
   * itself.
   */
  append(records: readonly StoredRecord[], deadline: Deadline): Promise<void>[] {
    const placed = records.map((record) => ({ record, place: placeOf(record) }));
    const announced = Promise.all([this.#announceDays(placed, deadline), this.#addWords(records, deadline)]);
    return batchesOfOnePartition(placed).map(async (batch) => {
      await announced;
      await this.#tables.cassandra.write(
        batch.map((one) => this.#statement(one)),
        deadline,
      );
    });
  }

  async #addWords(records: readonly StoredRecord[], deadline: Deadline): Promise<void> {
    const words = this.#words;
    if (words === undefined) return;
    await Promise.all(records.map(({ terms, ...owner }) => words.add(indexedTerms(terms), owner, deadline)));
  }

  #statement({ record: { id, value, expiresAtMs, terms }, place }: PlacedRecord): Statement {
    const ttl = ttlSeconds(this.#tables.cassandra.runtime.clock, expiresAtMs);
    const time = firstWriteTime(id) + rankOf(value, expiresAtMs);
    const params: CqlValue[] = [time, ttl, value];
    if (expiresAtMs !== undefined) params.push(BigInt(Math.ceil(expiresAtMs)));
    if (terms.length > 0) params.push(indexedTerms(terms));
    params.push(place.cid, place.day, place.shard, id);
    return { query: this.#updates[(expiresAtMs === undefined ? 0 : 1) + (terms.length === 0 ? 0 : 2)] ?? "", params };
  }

  async get(key: EntityKey, deadline: Deadline): Promise<StoredRecord | undefined> {
    const query = `SELECT ${ROW} FROM ${this.#tables.keyspace}.records WHERE cid = ? AND day = ? AND shard = ? AND id = ?`;
    const [row] = await this.#tables.cassandra.read(
      { query, params: [...partitionOf(placeOf(key)), key.id] },
      deadline,
    );
    return row === undefined ? undefined : toRecord(row, this.#nowMs());
  }

  async remove(key: EntityKey, deadline: Deadline): Promise<void> {
    const query = `DELETE FROM ${this.#tables.keyspace}.records USING TIMESTAMP ? WHERE cid = ? AND day = ? AND shard = ? AND id = ?`;
    await this.#tables.cassandra.write(
      [{ query, params: [removalTime(key.id), ...partitionOf(placeOf(key)), key.id] }],
      deadline,
    );
  }

  /**
   * Day by day from the newest, the shards of each merged. A page may be short after looking into many empty
   * partitions.
   */
  async timeline(request: TimelineRequest, page: PageRequest): Promise<Page<StoredRecord>> {
    const text = requestText(this.#tables.keyspace, "timeline", request);
    const deadline = this.#tables.cassandra.deadline();
    // Ids below this one are still to come.
    let below = readCursor(text, page) ?? idPrefix(request.toMs);
    const lowest = idPrefix(request.fromMs);
    const items: StoredRecord[] = [];
    for (let partitions = 0; partitions < TIMELINE_PARTITIONS_PER_PAGE; partitions += SHARDS.length) {
      const day = below > lowest ? await this.#newestDay(request, below, deadline) : undefined;
      if (day === undefined) return { items };
      const step = await this.#dayPart({ request, day, below, lowest, limit: page.limit - items.length }, deadline);
      items.push(...step.records);
      below = step.below;
      if (items.length >= page.limit) break;
    }
    return pageBefore(items, text, below);
  }

  /** The newest records of one day below an id, as far as they are certainly in order across the shards. */
  async #dayPart(
    part: DayPart,
    deadline: Deadline,
  ): Promise<{ readonly records: StoredRecord[]; readonly below: string }> {
    const perShard = Math.min(part.limit, Math.ceil(part.limit / SHARDS.length) + 8);
    const shards = await Promise.all(
      SHARDS.map(async (shard) => {
        const rows = await this.#tables.cassandra.read(this.#shardStatement(part, shard, perShard), deadline);
        return {
          records: rows.map((row) => toRecord(row, this.#nowMs())).filter((record) => record !== undefined),
          lastId: rows.length < perShard ? undefined : String(rows.at(-1)?.id),
        };
      }),
    );
    // A shard that filled its page may have more just below its last id.
    const dayStart = idPrefix(part.day * DAY_MS);
    const certain = shards.reduce(
      (id, shard) => (shard.lastId !== undefined && shard.lastId > id ? shard.lastId : id),
      dayStart > part.lowest ? dayStart : part.lowest,
    );
    const merged = shards.flatMap((shard) => shard.records).filter((record) => record.id >= certain);
    merged.sort((a, b) => (a.id < b.id ? 1 : -1));
    const records = merged.slice(0, part.limit);
    return { records, below: records.length < merged.length ? (records.at(-1)?.id ?? certain) : certain };
  }

  /** Day by day, of each record its times alone: a page of each shard at once. */
  async count(span: RecordSpan, cursor?: string): Promise<ClassCount> {
    const text = requestText(this.#tables.keyspace, "countRecords", span);
    const deadline = this.#tables.cassandra.deadline();
    const place = readCursor(text, { limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    const at = place === undefined ? await this.#countedNext(span, idPrefix(span.toMs), deadline) : placeOfText(place);
    if (at === undefined) return { count: 0 };
    const pages = await Promise.all(
      SHARDS.map((shard) => this.#countedPage(span, { day: at.day, shard, state: at.states[shard] ?? null }, deadline)),
    );
    const count = pages.reduce((sum, page) => sum + page.count, 0);
    const states = pages.map(({ state }) => state);
    const next = states.some((state) => state !== null)
      ? { day: at.day, states }
      : await this.#countedNext(span, idPrefix(at.day * DAY_MS), deadline);
    return { count, ...(next === undefined ? {} : { cursor: writeCursor(text, JSON.stringify(next)) }) };
  }

  async #countedNext(span: RecordSpan, below: string, deadline: Deadline): Promise<CountPlace | undefined> {
    const day = below > idPrefix(span.fromMs) ? await this.#newestDay(span, below, deadline) : undefined;
    return day === undefined ? undefined : { day, states: SHARDS.map(() => "") };
  }

  async #countedPage(
    { cid, fromMs, toMs }: RecordSpan,
    { day, shard, state }: { readonly day: number; readonly shard: number; readonly state: string | null },
    deadline: Deadline,
  ): Promise<{ readonly count: number; readonly state: string | null }> {
    if (state === null) return { count: 0, state };
    const query = `SELECT ${TIMES} FROM ${this.#tables.keyspace}.records WHERE cid = ? AND day = ? AND shard = ? AND id < ? AND id >= ?`;
    const params = [cid, day, shard, idPrefix(toMs), idPrefix(fromMs)];
    const page = { size: COUNTED_ROWS_PER_READ, ...(state === "" ? {} : { state }) };
    const { rows, state: next } = await this.#tables.cassandra.page({ query, params }, page, deadline);
    const nowMs = this.#nowMs();
    const there = rows.filter((row) => row.written !== null && (endOf(row) ?? Infinity) > nowMs);
    return { count: there.length, state: next ?? null };
  }

  #nowMs(): number {
    return this.#tables.cassandra.runtime.clock.nowMs();
  }

  #shardStatement(part: DayPart, shard: number, limit: number): Statement {
    const terms = indexedTerms(part.request.terms ?? []);
    const conditions = [
      "cid = ? AND day = ? AND shard = ? AND id < ? AND id >= ?",
      ...terms.map(() => "terms CONTAINS ?"),
    ];
    const filtering = terms.length > 0 ? " ALLOW FILTERING" : "";
    return {
      query: `SELECT ${ROW} FROM ${this.#tables.keyspace}.records WHERE ${conditions.join(" AND ")} LIMIT ?${filtering}`,
      params: [part.request.cid, part.day, shard, part.below, part.lowest, ...terms, limit],
    };
  }

  async #newestDay(request: RecordSpan, below: string, deadline: Deadline): Promise<number | undefined> {
    const query = `SELECT day FROM ${this.#tables.keyspace}.record_days WHERE cid = ? AND day <= ? AND day >= ? LIMIT 1`;
    // The greatest time an id below `below` can have is that of `below` itself, or one less when it stands for the time
    // alone.
    const lastMs = below.length === ID_TIME_CHARACTERS ? idTimeMs(below) - 1 : idTimeMs(below);
    const params = [request.cid, dayOf(lastMs), dayOf(Math.max(0, request.fromMs))];
    const [row] = await this.#tables.cassandra.read({ query, params }, deadline);
    return row === undefined ? undefined : Number(row.day);
  }

  async #announceDays(placed: readonly PlacedRecord[], deadline: Deadline): Promise<void> {
    const days = new Map<string, RecordDay>();
    for (const {
      record: { cid, expiresAtMs },
      place: { day },
    } of placed) {
      const name = `${cid}/${day}`;
      const untilMs = longLife(expiresAtMs);
      if ((this.#knownDays.get(name) ?? 0) < untilMs && (days.get(name)?.untilMs ?? 0) < untilMs)
        days.set(name, { name, cid, day, untilMs });
    }
    await Promise.all([...days.values()].map((day) => this.#announceDay(day, deadline)));
  }

  /**
   * Notes in `record_days` that the day has records. Its write time is its own expiry, so that the longest life wins.
   */
  async #announceDay({ name, cid, day, untilMs }: RecordDay, deadline: Deadline): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const ttl = untilMs === NEVER_MS ? 0 : ttlSeconds(cassandra.runtime.clock, untilMs);
    const query = `UPDATE ${keyspace}.record_days USING TIMESTAMP ? AND TTL ? SET present = true WHERE cid = ? AND day = ?`;
    await cassandra.write([{ query, params: [BigInt(untilMs) * 1_000n, ttl, cid, day] }], deadline);
    if (this.#knownDays.size >= RECORD_DAYS_CACHED_MAX) this.#knownDays.clear();
    this.#knownDays.set(name, untilMs);
  }
}

/** Where a count goes on in a day. */
interface CountPlace {
  readonly day: number;
  /** By shard what the driver gave; empty at its beginning, null at its end. */
  readonly states: readonly (string | null)[];
}

function placeOfText(place: string): CountPlace {
  return JSON.parse(place) as CountPlace;
}

interface DayPart {
  readonly request: TimelineRequest;
  readonly day: number;
  readonly below: string;
  readonly lowest: string;
  readonly limit: number;
}

interface RecordDay {
  readonly name: string;
  readonly cid: number;
  readonly day: number;
  readonly untilMs: number;
}

interface PlacedRecord {
  readonly record: StoredRecord;
  readonly place: RecordPlace;
}

interface RecordPlace {
  readonly cid: number;
  readonly day: number;
  readonly shard: number;
}

/**
 * Ids that count up in their last characters (those of one entry of an agent) stay in one partition for 32 of them, so
 * that they can be written together, and then go on in the next, so that the newest are in all of them. Random ids are
 * spread evenly.
 */
function placeOf(key: EntityKey): RecordPlace {
  const shard =
    CROCKFORD.indexOf(key.id.charAt(ID_TIME_CHARACTERS)) + CROCKFORD.indexOf(key.id.charAt(ID_CHARACTERS - 2));
  return { cid: key.cid, day: dayOf(idTimeMs(key.id)), shard: shard % SHARDS.length };
}

function batchesOfOnePartition(placed: readonly PlacedRecord[]): PlacedRecord[][] {
  const full: PlacedRecord[][] = [];
  const open = new Map<string, { readonly batch: PlacedRecord[]; bytes: number }>();
  for (const one of placed) {
    const name = partitionOf(one.place).join("/");
    const bytes = one.record.value.length;
    let room = open.get(name);
    if (
      room === undefined ||
      room.batch.length >= RECORD_BATCH_MAX_ROWS ||
      room.bytes + bytes > RECORD_BATCH_MAX_BYTES
    ) {
      room = { batch: [], bytes: 0 };
      open.set(name, room);
      full.push(room.batch);
    }
    room.batch.push(one);
    room.bytes += bytes;
  }
  return full;
}

function partitionOf(place: RecordPlace): CqlValue[] {
  return [place.cid, place.day, place.shard];
}

/**
 * Writes of one record bear times of the millisecond in its id, so that a replay writes the same cells and a removed
 * record stays removed. Which microsecond follows from the bytes: of different ones the greater rank stands, whole and
 * in whatever order they come, where Cassandra alone would take some cells of each, by the moment of their expiry. Of
 * the same bytes those that stay for ever are above those that expire, of which Cassandra takes the latest.
 */
function rankOf(value: Uint8Array, expiresAtMs: number | undefined): bigint {
  return BigInt(2 * (crc32(value) % RECORD_RANKS) + (expiresAtMs === undefined ? 1 : 0));
}

function firstWriteTime(id: string): bigint {
  return BigInt(idTimeMs(id)) * MS_US;
}

/** Above all ranks. */
function removalTime(id: string): bigint {
  return firstWriteTime(id) + MS_US - 1n;
}

function dayOf(timeMs: number): number {
  return Math.floor(timeMs / DAY_MS);
}

function idTimeMs(id: string): number {
  let time = 0;
  for (const character of id.slice(0, ID_TIME_CHARACTERS))
    time = time * CROCKFORD.length + CROCKFORD.indexOf(character);
  return time;
}

/** The first characters of all ids of this time: less than each of them, greater than all of earlier times. */
function idPrefix(timeMs: number): string {
  let rest = Math.min(Math.max(0, Math.ceil(timeMs)), NEVER_MS - 1);
  let prefix = "";
  for (let i = 0; i < ID_TIME_CHARACTERS; i++) {
    prefix = `${CROCKFORD[rest % CROCKFORD.length] ?? ""}${prefix}`;
    rest = Math.floor(rest / CROCKFORD.length);
  }
  return prefix;
}

/** An end that was written with other bytes is not the end of these. */
function endOf({ expires, written, ends_written }: types.Row): number | undefined {
  return typeof expires === "bigint" && ends_written === written ? Number(expires) : undefined;
}

/**
 * Undefined for a row that has expired (Cassandra itself counts whole seconds), or whose value has vanished before
 * another cell.
 */
function toRecord(row: types.Row, nowMs: number): StoredRecord | undefined {
  const end = endOf(row);
  if (!Buffer.isBuffer(row.value) || (end !== undefined && end <= nowMs)) return undefined;
  return {
    cid: Number(row.cid),
    id: String(row.id),
    value: plainBytes(row.value),
    terms: (row.terms as readonly string[] | null) ?? [],
    ...(end === undefined ? {} : { expiresAtMs: end }),
  };
}
