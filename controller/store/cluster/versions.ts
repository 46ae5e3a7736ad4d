import { VERSION_DAYS_AT_ONCE, VERSION_DAYS_PER_PAGE } from "../../../common/limits.ts";
import type { EntityChange, EntityKey, EntityVersion, Page, PageRequest, TimeRangeUs } from "../objects.ts";
import type { Statement } from "./cassandra.ts";
import { pageBefore, readCursor, requestText } from "./cursor.ts";
import type { Deadline } from "./deadline.ts";
import { plainBytes, type EntityTable } from "./entities.ts";
import { ttlSeconds, type Tables } from "./tables.ts";

const DAY_US = 86_400_000_000;
const DAY_MS = DAY_US / 1_000;
/** Stands for "for ever" among the days of expiry. */
const NEVER_DAY = 0x7fff_ffff;

interface TimesUs {
  readonly from: number;
  readonly to: number;
}

/**
 * Versions of entities in `versions`: a partition for each object and day, listed in `version_days`. One is written
 * before the entity; readers do not see those that are later than all that is written of the entity.
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

  /** To be made before the change itself is written. */
  writes(change: EntityChange, deadline: Deadline): Promise<void>[] {
    return this.#statements(change).map((statement) => this.#tables.cassandra.write([statement], deadline));
  }

  #statements({ key: { cid, id }, timeUs, version, expiresAtMs }: EntityChange): Statement[] {
    if (version === undefined) return [];
    const { clock } = this.#tables.cassandra.runtime;
    const time = BigInt(timeUs);
    const day = dayOf(timeUs);
    // Listed by the day of expiry as well: one that expires sooner must not take the others along.
    const until = expiresAtMs === undefined ? NEVER_DAY : dayOf(expiresAtMs * 1_000) + 1;
    const listedFor = ttlSeconds(clock, expiresAtMs === undefined ? undefined : (until + 1) * DAY_MS);
    return [
      {
        query: `UPDATE ${this.#days} USING TIMESTAMP ? AND TTL ? SET present = true WHERE cid = ? AND id = ? AND day = ? AND until = ?`,
        params: [time, listedFor, cid, id, day, until],
      },
      {
        query: `UPDATE ${this.#versions} USING TIMESTAMP ? AND TTL ? SET value = ? WHERE cid = ? AND id = ? AND day = ? AND time = ?`,
        params: [time, ttlSeconds(clock, expiresAtMs), new Uint8Array(version), cid, id, day, time],
      },
    ];
  }

  /** Removes all versions up to the time of the change, and then their list: repeating it finishes the work. */
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

  /** Day by day from the newest. A page may be short after looking into many days. */
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

  /** Each once, newest first, up to `VERSION_DAYS_PER_PAGE`. */
  async #daysOf({ cid, id }: EntityKey, times: TimesUs, deadline: Deadline): Promise<readonly number[]> {
    const query = `SELECT day FROM ${this.#days} WHERE cid = ? AND id = ? AND day >= ? AND day <= ?`;
    const params = [cid, id, dayOf(times.from), dayOf(times.to)];
    const rows = await this.#tables.cassandra.read({ query, params }, deadline);
    return [...new Set(rows.map((row) => Number(row.day)))].slice(0, VERSION_DAYS_PER_PAGE);
  }
}

function dayOf(timeUs: number): number {
  return Math.floor(timeUs / DAY_US);
}

function bigintOf(timeUs: number): bigint {
  return BigInt(Math.trunc(timeUs));
}
