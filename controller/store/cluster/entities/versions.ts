import { VERSION_DAYS_AT_ONCE, VERSION_DAYS_PER_PAGE, VERSIONS_ENDED_MAX } from "../../../../common/limits.ts";
import type { EntityChange, EntityKey, EntityVersion, Page, PageRequest, TimeRangeUs } from "../../objects.ts";
import type { Statement } from "../cassandra/cassandra.ts";
import { pageBefore, readCursor, requestText } from "../cursor.ts";
import type { Deadline } from "../deadline.ts";
import { plainBytes, type EntityTable } from "./entities.ts";
import { ttlSeconds, type Tables } from "../tables.ts";

const DAY_US = 86_400_000_000;
const DAY_MS = DAY_US / 1_000;
/** Represents "never" among the days of expiry. */
const NEVER_DAY = 0x7fff_ffff;
/** Represents "no expiry yet": a later write will set the expiry of the day's versions. */
export const OPEN_DAY = NEVER_DAY - 1;

interface Listing {
  readonly key: EntityKey;
  /** Time of the write. */
  readonly timeUs: number;
  readonly day: number;
  /** The day after the day of expiry; `OPEN_DAY` or `NEVER_DAY` without expiry. */
  readonly until: number;
}

interface VersionWrite extends Omit<Listing, "until"> {
  readonly expiresAtMs?: number | undefined;
}

interface VersionRow {
  readonly time: bigint;
  readonly value: Uint8Array;
  readonly stays?: true | undefined;
}

interface TimesUs {
  readonly from: number;
  readonly to: number;
}

/**
 * Versions of entities in `versions`: one partition per object and day, listed in `version_days`. A version is written
 * before its entity; readers ignore versions that are later than the last completed change of the entity.
 */
export class VersionTable {
  readonly #tables: Tables;
  readonly #entities: EntityTable;
  readonly #days: string;
  readonly #versions: string;

  constructor(tables: Tables, entities: EntityTable) {
    this.#tables = tables;
    this.#entities = entities;
    this.#days = `${tables.keyspace}.version_days`;
    this.#versions = `${tables.keyspace}.versions`;
  }

  /** Call it before the change itself is written. */
  writes(change: EntityChange, deadline: Deadline): Promise<void>[] {
    return this.#statements(change).map((statement) => this.#tables.cassandra.write([statement], deadline));
  }

  #statements(change: EntityChange): Statement[] {
    const { key, timeUs, version, versionStays, endVersionsAtMs } = change;
    const expiresAtMs = change.versionExpiresAtMs ?? change.expiresAtMs;
    if (version === undefined) return [];
    const isOpen = endVersionsAtMs !== undefined && !versionStays;
    const day = dayOf(timeUs);
    const row = { time: BigInt(timeUs), value: new Uint8Array(version), stays: versionStays };
    return [
      this.#listing({ key, timeUs, day, until: untilOf(expiresAtMs) ?? (isOpen ? OPEN_DAY : NEVER_DAY) }),
      this.#row({ key, timeUs, day, expiresAtMs }, row),
    ];
  }

  /**
   * Lists the day. The row's key includes the day of expiry: when the row for a version that expires soon is gone, the
   * rows for other versions still list the day.
   */
  #listing({ key: { cid, id }, timeUs, day, until }: Listing): Statement {
    const { clock } = this.#tables.cassandra.runtime;
    const listedFor = ttlSeconds(clock, until >= OPEN_DAY ? undefined : (until + 1) * DAY_MS);
    return {
      query: `UPDATE ${this.#days} USING TIMESTAMP ? AND TTL ? SET present = true WHERE cid = ? AND id = ? AND day = ? AND until = ?`,
      params: [BigInt(timeUs), listedFor, cid, id, day, until],
    };
  }

  #row({ key: { cid, id }, timeUs, day, expiresAtMs }: VersionWrite, { time, value, stays }: VersionRow): Statement {
    const ttl = ttlSeconds(this.#tables.cassandra.runtime.clock, expiresAtMs);
    return {
      query: `UPDATE ${this.#versions} USING TIMESTAMP ? AND TTL ? SET value = ?, stays = ? WHERE cid = ? AND id = ? AND day = ? AND time = ?`,
      params: [BigInt(timeUs), ttl, value, stays, cid, id, day, time],
    };
  }

  /**
   * Call it after the entity is written. Sets the expiry of earlier versions. Their days are then no longer listed
   * under `OPEN_DAY`, except for the day of this change, which may get more versions. Idempotent.
   */
  async end({ key, timeUs, endVersionsAtMs: atMs }: EntityChange, deadline: Deadline): Promise<void> {
    if (atMs === undefined) return;
    const days = await this.#daysOf(key, { from: 0, to: timeUs - 1 }, deadline);
    let left = VERSIONS_ENDED_MAX;
    for (const day of days.slice(0, VERSIONS_ENDED_MAX)) {
      const rows = await this.#endable({ key, timeUs, day, expiresAtMs: atMs }, left, deadline);
      left -= rows.looked;
      await this.#endRows({ key, timeUs, day, expiresAtMs: atMs }, rows.ended, deadline);
      if (left <= 0) return;
    }
  }

  /** Among the newest versions of the day before the time: those that last longer and do not stay. */
  async #endable(
    { key: { cid, id }, timeUs, day, expiresAtMs = Infinity }: VersionWrite,
    limit: number,
    deadline: Deadline,
  ): Promise<{ readonly looked: number; readonly ended: readonly VersionRow[] }> {
    const query = `SELECT time, value, stays, TTL(value) AS ttl FROM ${this.#versions} WHERE cid = ? AND id = ? AND day = ? AND time < ? LIMIT ?`;
    const { cassandra } = this.#tables;
    const rows = await cassandra.read({ query, params: [cid, id, day, BigInt(timeUs), limit] }, deadline);
    const leftSeconds = ttlSeconds(cassandra.runtime.clock, expiresAtMs);
    const ended = rows.filter(({ stays, ttl }) => stays !== true && (ttl === null || Number(ttl) > leftSeconds));
    return {
      looked: rows.length,
      ended: ended.map(({ time, value }) => ({ time: time as bigint, value: value as Buffer })),
    };
  }

  async #endRows(write: VersionWrite, rows: readonly VersionRow[], deadline: Deadline): Promise<void> {
    if (rows.length === 0) return;
    const { cassandra } = this.#tables;
    const { key, timeUs, day, expiresAtMs } = write;
    const until = untilOf(expiresAtMs) ?? NEVER_DAY;
    await cassandra.write([this.#listing({ key, timeUs, day, until })], deadline);
    await cassandra.write(
      rows.map((row) => this.#row(write, row)),
      deadline,
    );
    if (day === dayOf(timeUs)) return;
    const query = `DELETE FROM ${this.#days} USING TIMESTAMP ? WHERE cid = ? AND id = ? AND day = ? AND until = ?`;
    await cassandra.write([{ query, params: [BigInt(timeUs), key.cid, key.id, day, OPEN_DAY] }], deadline);
  }

  /**
   * Removes all versions up to the time of the change, and then their list. Repeating it completes an interrupted
   * removal.
   */
  async forget({ key: { cid, id }, timeUs }: EntityChange, deadline: Deadline): Promise<void> {
    const { cassandra } = this.#tables;
    const time = BigInt(timeUs);
    const times = { from: 0, to: timeUs };
    for (let days = await this.#daysOf({ cid, id }, times, deadline); days.length > 0; ) {
      const query = `DELETE FROM ${this.#versions} USING TIMESTAMP ? WHERE cid = ? AND id = ? AND day = ?`;
      await Promise.all(days.map((day) => cassandra.write([{ query, params: [time, cid, id, day] }], deadline)));
      days = await this.#daysOf({ cid, id }, { ...times, to: (days.at(-1) ?? 0) * DAY_US - 1 }, deadline);
    }
    const query = `DELETE FROM ${this.#days} USING TIMESTAMP ? WHERE cid = ? AND id = ?`;
    await cassandra.write([{ query, params: [time, cid, id] }], deadline);
  }

  /** Day by day from the newest. A page may be short after reading many days. */
  async history(key: EntityKey, range: TimeRangeUs, page: PageRequest): Promise<Page<EntityVersion>> {
    const { cassandra, keyspace } = this.#tables;
    const request = requestText(keyspace, "history", key, range);
    const before = readCursor(request, page);
    const deadline = cassandra.deadline();
    const times = {
      from: Math.max(Math.ceil(range.fromUs ?? 0), 0),
      to: Math.min(before === undefined ? (range.toUs ?? Infinity) : Number(before) - 1, Number.MAX_SAFE_INTEGER),
    };
    const [writtenUs, days] = await Promise.all([
      this.#entities.writtenUs(key, deadline),
      this.#daysOf(key, times, deadline),
    ]);
    const made = { ...times, to: Math.min(times.to, writtenUs) };
    const items: EntityVersion[] = [];
    let looked = 0;
    for (let atOnce = 1; looked < days.length && items.length < page.limit; atOnce = VERSION_DAYS_AT_ONCE) {
      const group = days.slice(looked, looked + atOnce);
      const found = await Promise.all(
        group.map((day) => this.#ofDay(key, { day, times: made, limit: page.limit }, deadline)),
      );
      items.push(...found.flat());
      looked += group.length;
    }
    const last = items[page.limit - 1];
    if (last !== undefined) return pageBefore(items.slice(0, page.limit), request, String(last.timeUs));
    const lastDay = days.at(-1);
    return lastDay === undefined || days.length < VERSION_DAYS_PER_PAGE
      ? { items }
      : pageBefore(items, request, String(lastDay * DAY_US));
  }

  async #ofDay(
    { cid, id }: EntityKey,
    of: { readonly day: number; readonly times: TimesUs; readonly limit: number },
    deadline: Deadline,
  ): Promise<EntityVersion[]> {
    const query = `SELECT time, value FROM ${this.#versions} WHERE cid = ? AND id = ? AND day = ? AND time >= ? AND time <= ? LIMIT ?`;
    const params = [cid, id, of.day, bigintOf(of.times.from), bigintOf(of.times.to), of.limit];
    const rows = await this.#tables.cassandra.read({ query, params }, deadline);
    return rows.map((row) => ({ timeUs: Number(row.time), value: plainBytes(row.value) }));
  }

  /** Each day once, newest first, at most `VERSION_DAYS_PER_PAGE`. */
  async #daysOf({ cid, id }: EntityKey, times: TimesUs, deadline: Deadline): Promise<readonly number[]> {
    const query = `SELECT day FROM ${this.#days} WHERE cid = ? AND id = ? AND day >= ? AND day <= ?`;
    const params = [cid, id, dayOf(times.from), dayOf(times.to)];
    const rows = await this.#tables.cassandra.read({ query, params }, deadline);
    return [...new Set(rows.map((row) => Number(row.day)))].slice(0, VERSION_DAYS_PER_PAGE);
  }
}

function untilOf(expiresAtMs: number | undefined): number | undefined {
  return expiresAtMs === undefined ? undefined : dayOf(expiresAtMs * 1_000) + 1;
}

function dayOf(timeUs: number): number {
  return Math.floor(timeUs / DAY_US);
}

function bigintOf(timeUs: number): bigint {
  return BigInt(Math.trunc(timeUs));
}
