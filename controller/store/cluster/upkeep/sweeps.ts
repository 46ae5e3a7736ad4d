import { errorText } from "../../../../common/errors.ts";
import {
  CELL_MARKS_PER_SWEEP,
  CHANGE_BATCH_MAX,
  REMOVED_CELL_BUCKETS,
  REMOVED_CELLS_PER_STATEMENT,
  REWRITES_PER_SWEEP_BATCH,
  SWEEP_PROMPT_MS,
  SWEEP_SETTLES_MS,
  SWEPT_CELLS_PER_MARK,
} from "../../../../common/limits.ts";
import { Together } from "../../../../common/together.ts";
import type { EntityChange, EntityKey } from "../../objects.ts";
import { stampedCell, stampUs } from "../entities/cells.ts";
import type { Deadline } from "../deadline.ts";
import { groupsOf } from "../groups.ts";
import { hashOf } from "../postings/hashes.ts";
import { REMOVAL_KEPT_SECONDS, ttlSeconds, type Tables } from "../tables.ts";

interface LyingCell {
  /** The cell's write time followed by its value. */
  readonly stamped: Buffer;
  /** Seconds to live; 0: forever. */
  readonly ttl: number;
}

interface LyingCells {
  readonly diedUs: number;
  readonly cells: ReadonlyMap<string, LyingCell>;
}

/**
 * Removes the tombstones that removed cells leave in the partition of their entity. A read passes all of them, and
 * Cassandra aborts a read that passes more than 100,000. A sweep chooses a time before now. In one batch it removes the
 * whole map just before that time, and writes the living cells again at that time. This leaves a single tombstone,
 * which Cassandra does not count.
 *
 * A sweep leaves cells younger than `SWEEP_SETTLES_MS` unchanged, so a prompt write never meets a sweep. A late write
 * may have a time that was already swept; Cassandra ignores it there. Its writer then sweeps again and includes the
 * write. Both sides write first and look afterwards: a sweep writes its time to `swept` before it reads the cells, and
 * a late write is made before it reads `swept`. So either the sweep has read the write, or the writer learns of the
 * sweep. If the batch of a sweep arrives after the next sweep, it changes nothing, because its time is earlier.
 * `removed_cells` records the time at which each cell was removed, so that a late write does not bring a removed cell
 * back. It keeps these times for as long as removals are remembered.
 */
export class CellSweeps {
  readonly #tables: Tables;
  readonly #present: string;
  readonly #removed: string;
  /** Late changes by call, then by entity. */
  readonly #late = new WeakMap<Deadline, Map<string, Together<EntityChange>>>();

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#present = `${tables.keyspace}.present`;
    this.#removed = `${tables.keyspace}.removed_cells`;
  }

  /** Call it before the entity is written. Records the removed cells of the change. */
  writes({ key, timeUs, cells, death }: EntityChange, deadline: Deadline): Promise<void>[] {
    if (death === true) return [];
    return groupsOfBucket(removedNames(cells)).map(({ key: bucket, items: names }) => {
      const query = `INSERT INTO ${this.#removed} (cid, id, bucket, name, time) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?`;
      const [time, ttl] = [BigInt(timeUs), REMOVAL_KEPT_SECONDS];
      const statements = names.map((name) => ({ query, params: [key.cid, key.id, bucket, name, time, time, ttl] }));
      return this.#tables.cassandra.write(statements, deadline);
    });
  }

  /**
   * Call it after the entity is written. If the time of a late change was swept, another sweep makes the change. That
   * sweep includes all changes of the entity in the same call, because one sweep per change would cost quadratic time.
   */
  async admit(change: EntityChange, deadline: Deadline): Promise<void> {
    const { key, timeUs, cells, death } = change;
    if (cells === undefined && death !== true) return;
    const { clock } = this.#tables.cassandra.runtime;
    if (clock.nowMs() - timeUs / 1_000 <= SWEEP_PROMPT_MS) return;
    const name = `${key.cid}:${key.id}`;
    const ofCall = this.#late.get(deadline) ?? new Map<string, Together<EntityChange>>();
    this.#late.set(deadline, ofCall);
    const late = ofCall.get(name) ?? this.#together(key, deadline);
    ofCall.set(name, late);
    return late.do(change);
  }

  #together(key: EntityKey, deadline: Deadline): Together<EntityChange> {
    return new Together<EntityChange>({
      lanes: 1,
      most: CHANGE_BATCH_MAX,
      work: (changes) => this.#admitAll(key, changes, deadline),
      failsAll: () => true,
    });
  }

  async #admitAll(key: EntityKey, changes: readonly EntityChange[], deadline: Deadline): Promise<void> {
    const oldestUs = Math.min(...changes.map(({ timeUs }) => timeUs));
    for (let ownUs = 0; ; ) {
      const { sweptUs } = await this.#swept(key, deadline);
      // If the latest sweep is the one of this call, every later sweep reads the changes.
      if (sweptUs < oldestUs || sweptUs === ownUs) return;
      ownUs = await this.#sweep(key, sweptUs, deadline, changes);
    }
  }

  /**
   * Call it after the entity is written. Sweeps at random, with a probability in proportion to the number of removed
   * cells, so that these need not be counted: on average after `CELL_MARKS_PER_SWEEP` removed cells. An entity with
   * many cells is swept less often: on average after one removed cell per `SWEPT_CELLS_PER_MARK` of its cells. A
   * failure changes nothing, so it is only logged.
   */
  async sweepIfDue({ key, cells, death }: EntityChange, deadline: Deadline): Promise<void> {
    const marks = death === true ? 0 : removedNames(cells).length;
    const { random, log } = this.#tables.cassandra.runtime;
    if (marks === 0) return;
    const chance = random.next();
    if (chance * CELL_MARKS_PER_SWEEP >= marks) return;
    try {
      const { sweptUs, count } = await this.#swept(key, deadline);
      if (this.#sweepTimeUs() - sweptUs < (SWEEP_SETTLES_MS / 2) * 1_000) return;
      if ((chance * count) / SWEPT_CELLS_PER_MARK >= marks) return;
      await this.#sweep(key, sweptUs, deadline);
    } catch (error) {
      log.warn({ reason: errorText(error) }, "marks of removed cells stay for now");
    }
  }

  /** Upper time limit of a sweep: later writes may still be in transit. */
  #sweepTimeUs(): number {
    return this.#tables.cassandra.nextTimeUs() - SWEEP_SETTLES_MS * 1_000;
  }

  /** Returns the time of the sweep, which is later than that of the previous one. */
  async #sweep(
    key: EntityKey,
    formerUs: number,
    deadline: Deadline,
    late: readonly EntityChange[] = [],
  ): Promise<number> {
    const { cassandra } = this.#tables;
    const { clock } = cassandra.runtime;
    const sweepUs = Math.max(this.#sweepTimeUs(), formerUs + 2);
    const time = BigInt(sweepUs);
    const partition = [key.cid, key.id];
    const announcement = {
      query: `UPDATE ${this.#present} USING TIMESTAMP ? AND TTL ? SET swept = ? WHERE cid = ? AND id = ?`,
      params: [time, REMOVAL_KEPT_SECONDS, time, ...partition],
    };
    await cassandra.write([announcement], deadline);
    const readAtMs = clock.monotonicMs();
    const { diedUs, cells } = await this.#lying(key, deadline);
    const kept = new Map([...cells].filter(([, { stamped }]) => stampUs(stamped) > diedUs));
    if (late.length > 0) await this.#bringAlong(key, late, { diedUs, cells: kept }, deadline);
    const elapsed = Math.floor((clock.monotonicMs() - readAtMs) / 1_000);
    const removal = {
      query: `DELETE attrs FROM ${this.#present} USING TIMESTAMP ? WHERE cid = ? AND id = ?`,
      params: [time - 1n, ...partition],
    };
    const rewritten = [...groupsOfTtl(kept, elapsed)].map(([ttl, group]) => ({
      query: `UPDATE ${this.#present} USING TIMESTAMP ? AND TTL ? SET attrs = attrs + ? WHERE cid = ? AND id = ?`,
      params: [time, ttl, group, ...partition],
    }));
    // The same values as before, until everything below them is removed.
    const last = Math.max(0, rewritten.length - REWRITES_PER_SWEEP_BATCH);
    for (let from = 0; from < last; from += REWRITES_PER_SWEEP_BATCH)
      await cassandra.write(rewritten.slice(from, Math.min(last, from + REWRITES_PER_SWEEP_BATCH)), deadline);
    await cassandra.write([removal, ...rewritten.slice(last)], deadline);
    return sweepUs;
  }

  /**
   * Applies late changes of an entity, in any order, to the cells that a sweep writes again. A cell with a later time
   * than the change, or removed at its time or later, is left as it is.
   */
  async #bringAlong(
    key: EntityKey,
    changes: readonly EntityChange[],
    { diedUs, cells: kept }: { readonly diedUs: number; readonly cells: Map<string, LyingCell> },
    deadline: Deadline,
  ): Promise<void> {
    const living = changes.filter(({ timeUs }) => timeUs > diedUs);
    const names = new Set(living.flatMap(({ cells }) => [...(cells?.keys() ?? [])]));
    const removedUs = await this.#removedUs(key, [...names], deadline);
    for (const { timeUs, cells = new Map(), expiresAtMs } of living) {
      const ttl = ttlSeconds(this.#tables.cassandra.runtime.clock, expiresAtMs);
      for (const [name, value] of cells) {
        const former = kept.get(name)?.stamped;
        if (value === undefined) {
          if (former !== undefined && stampUs(former) <= timeUs) kept.delete(name);
          continue;
        }
        const stamped = stampedCell(timeUs, value);
        const isRemoved = (removedUs.get(name) ?? 0) >= timeUs;
        // Compares bytes; the time comes first in them.
        if (!isRemoved && (former === undefined || Buffer.compare(stamped, former) > 0))
          kept.set(name, { stamped, ttl });
      }
    }
  }

  async #removedUs(
    { cid, id }: EntityKey,
    names: readonly string[],
    deadline: Deadline,
  ): Promise<ReadonlyMap<string, number>> {
    const query = `SELECT name, time FROM ${this.#removed} WHERE cid = ? AND id = ? AND bucket = ? AND name IN ?`;
    const rows = await Promise.all(
      groupsOfBucket(names).map((group) =>
        this.#tables.cassandra.read({ query, params: [cid, id, group.key, group.items] }, deadline),
      ),
    );
    return new Map(rows.flat().map(({ name, time }) => [String(name), Number(time)]));
  }

  async #swept(
    { cid, id }: EntityKey,
    deadline: Deadline,
  ): Promise<{ readonly sweptUs: number; readonly count: number }> {
    const query = `SELECT swept, collection_count(attrs) AS count FROM ${this.#present} WHERE cid = ? AND id = ?`;
    const [row] = await this.#tables.cassandra.read({ query, params: [cid, id] }, deadline);
    return { sweptUs: Number(row?.swept ?? 0), count: Number(row?.count ?? 0) };
  }

  async #lying({ cid, id }: EntityKey, deadline: Deadline): Promise<LyingCells> {
    const query = `SELECT died, attrs, TTL(attrs) AS ttls FROM ${this.#present} WHERE cid = ? AND id = ?`;
    const [row] = await this.#tables.cassandra.read({ query, params: [cid, id] }, deadline);
    const attrs = (row?.attrs as ReadonlyMap<string, Buffer> | null | undefined) ?? new Map<string, Buffer>();
    // In the order of the keys.
    const ttls = (row?.ttls as readonly (number | null)[] | null | undefined) ?? [];
    const cells = [...attrs].map(([name, stamped], at) => [name, { stamped, ttl: ttls[at] ?? 0 }] as const);
    return { diedUs: Number(row?.died ?? 0), cells: new Map(cells) };
  }
}

function removedNames(cells: EntityChange["cells"]): readonly string[] {
  return [...(cells ?? [])].flatMap(([name, value]) => (value === undefined ? [name] : []));
}

/** Names grouped by the partitions of `removed_cells`. */
function groupsOfBucket(names: readonly string[]): readonly { readonly key: number; readonly items: string[] }[] {
  return groupsOf(names, (name) => hashOf(name) % REMOVED_CELL_BUCKETS, REMOVED_CELLS_PER_STATEMENT);
}

/** Cells grouped by time to live, without those that expired during the elapsed seconds. */
function groupsOfTtl(cells: ReadonlyMap<string, LyingCell>, elapsed: number): ReadonlyMap<number, Map<string, Buffer>> {
  const groups = new Map<number, Map<string, Buffer>>();
  for (const [name, { stamped, ttl }] of cells) {
    const left = ttl === 0 ? 0 : ttl - elapsed;
    if (ttl > 0 && left <= 0) continue;
    const group = groups.get(left) ?? new Map<string, Buffer>();
    groups.set(left, group.set(name, stamped));
  }
  return groups;
}
