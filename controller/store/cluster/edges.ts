import { errorText } from "../../../common/errors.ts";
import { EDGE_BUCKETS } from "../../../common/limits.ts";
import type { Edge, EdgeEnd, EntityChange, EntityKey, Page, PageRequest } from "../objects.ts";
import type { CqlValue, Statement } from "./cassandra.ts";
import type { Deadline } from "./deadline.ts";
import { pageBefore, readCursor, requestText } from "./cursor.ts";
import { plainBytes, type EntityTable, type FoundEntity } from "./entities.ts";
import { hashOf } from "./hashes.ts";
import { derivedTimeUs, ttlSeconds, type Tables } from "./tables.ts";

const EDGES_PER_READ = 1_000;
/** When an entity is removed, this many of its edges are removed at once; readers detect the others. */
const EDGES_ENDED_MAX = 100_000;
const BUCKETS = Array.from({ length: EDGE_BUCKETS }, (_, bucket) => bucket).join(", ");

/** One row each, by `outgoingKey` and `incomingKey`. */
export const OUTGOING_KEY = "cid = ? AND id = ? AND bucket = ? AND type = ? AND to_cid = ? AND to_id = ?";
export const INCOMING_KEY = "to_cid = ? AND to_id = ? AND bucket = ? AND type = ? AND cid = ? AND id = ?";

/**
 * Edges in `edges_out` by source, each end in buckets. `edges_in` is derived from that, by target: a row is added before
 * the edge and removed after it, so it may say too much, never too little, and what it says is checked at the source.
 * An edge is added before its source is written, and is not there until the source bears its time or a later one; it is
 * dropped after that. The removal of a source hides its edges at once, and removes them afterwards.
 */
export class EdgeTable {
  readonly #tables: Tables;
  readonly #entities: EntityTable;

  constructor(tables: Tables, entities: EntityTable) {
    this.#tables = tables;
    this.#entities = entities;
  }

  async edges(
    key: EntityKey,
    direction: "out" | "in",
    page: PageRequest & { readonly type?: string },
  ): Promise<Page<Edge>> {
    const { cassandra, keyspace } = this.#tables;
    const request = requestText(keyspace, "edges", key, direction, page.type);
    const place = { size: page.limit, state: readCursor(request, page) };
    const deadline = cassandra.deadline();
    const statement = direction === "out" ? this.#outgoing(key, page.type) : this.#incoming(key, page.type);
    const found = await cassandra.page(statement, place, deadline);
    const edges =
      direction === "out"
        ? await this.#living(key, found.rows, deadline)
        : await this.#checked(key, found.rows, deadline);
    const items = edges.filter((edge) => edge !== undefined);
    return found.state === undefined ? { items } : pageBefore(items, request, found.state);
  }

  /** To be made before the source itself is written. */
  writes(change: EntityChange, deadline: Deadline): Promise<void>[] {
    const { cassandra, keyspace } = this.#tables;
    const { key, timeUs, addEdges = [], expiresAtMs } = change;
    const ttl = ttlSeconds(cassandra.runtime.clock, expiresAtMs);
    const derivedTime = BigInt(derivedTimeUs(cassandra, timeUs));
    const incoming = `UPDATE ${keyspace}.edges_in USING TIMESTAMP ? AND TTL ? SET present = true WHERE ${INCOMING_KEY}`;
    const outgoing = `UPDATE ${keyspace}.edges_out USING TIMESTAMP ? AND TTL ? SET value = ? WHERE ${OUTGOING_KEY}`;
    return addEdges.map(async (edge) => {
      await cassandra.write([{ query: incoming, params: [derivedTime, ttl, ...incomingKey(key, edge)] }], deadline);
      const params = [BigInt(timeUs), ttl, edgeValue(edge.value), ...outgoingKey(key, edge)];
      await cassandra.write([{ query: outgoing, params }], deadline);
    });
  }

  /** The edges that a removal covers. */
  async #endedBy({ key, timeUs }: Omit<Drop, "edge">, deadline: Deadline): Promise<readonly EdgeEnd[]> {
    const ended: EdgeEnd[] = [];
    let state: string | undefined;
    do {
      const found = await this.#tables.cassandra.page(
        this.#outgoing(key, undefined),
        { size: EDGES_PER_READ, state },
        deadline,
      );
      const covered = found.rows.filter((row) => Number(row.time_us) <= timeUs);
      ended.push(...covered.map((row) => ({ type: String(row.type), to: targetOf(row) })));
      state = found.state;
    } while (state !== undefined && ended.length < EDGES_ENDED_MAX);
    return ended;
  }

  /**
   * To be called after the source is written: takes away what the change drops. What a removal covers every reader finds
   * out, so a failure with that is only logged.
   */
  async retract({ key, timeUs, dropEdges = [], death }: EntityChange, deadline: Deadline): Promise<void> {
    await Promise.all(dropEdges.map((edge) => this.#drop({ key, timeUs, edge }, deadline)));
    if (death !== true) return;
    try {
      const ended = await this.#endedBy({ key, timeUs }, deadline);
      // First what tells where the others are.
      await Promise.all(ended.map((edge) => this.#dropIncoming({ key, timeUs, edge }, deadline)));
      await Promise.all(ended.map((edge) => this.#dropOutgoing({ key, timeUs, edge }, deadline)));
    } catch (error) {
      this.#tables.cassandra.runtime.log.warn({ reason: errorText(error) }, "rows of ended edges stay behind");
    }
  }

  async #drop(drop: Drop, deadline: Deadline): Promise<void> {
    await this.#dropOutgoing(drop, deadline);
    await this.#dropIncoming(drop, deadline);
  }

  #dropOutgoing({ key, timeUs, edge }: Drop, deadline: Deadline): Promise<void> {
    const query = `DELETE FROM ${this.#tables.keyspace}.edges_out USING TIMESTAMP ? WHERE ${OUTGOING_KEY}`;
    return this.#tables.cassandra.write([{ query, params: [BigInt(timeUs), ...outgoingKey(key, edge)] }], deadline);
  }

  #dropIncoming({ key, timeUs, edge }: Drop, deadline: Deadline): Promise<void> {
    const query = `DELETE FROM ${this.#tables.keyspace}.edges_in USING TIMESTAMP ? WHERE ${INCOMING_KEY}`;
    return this.#tables.cassandra.write([{ query, params: [BigInt(timeUs), ...incomingKey(key, edge)] }], deadline);
  }

  async #living(from: EntityKey, rows: readonly Row[], deadline: Deadline): Promise<(Edge | undefined)[]> {
    const [source] = await this.#entities.find([from], deadline);
    return rows.map((row) => outgoingEdge(from, source, row));
  }

  async #checked(target: EntityKey, rows: readonly Row[], deadline: Deadline): Promise<(Edge | undefined)[]> {
    const keys = rows.map((row) => ({ cid: Number(row.cid), id: String(row.id) }));
    const [sources, edges] = await Promise.all([
      this.#entities.find(keys, deadline),
      Promise.all(
        rows.map((row, at) => {
          const statement = this.#single(keys[at] ?? target, { type: String(row.type), to: target });
          return this.#tables.cassandra.read(statement, deadline);
        }),
      ),
    ]);
    return keys.map((from, at) => outgoingEdge(from, sources[at], edges[at]?.[0]));
  }

  #outgoing(key: EntityKey, type: string | undefined): Statement {
    const query = `SELECT type, to_cid, to_id, value, WRITETIME(value) AS time_us FROM ${this.#tables.keyspace}.edges_out WHERE cid = ? AND id = ? AND bucket IN (${BUCKETS})`;
    if (type === undefined) return { query, params: [key.cid, key.id] };
    return { query: `${query} AND type = ?`, params: [key.cid, key.id, type] };
  }

  #single(from: EntityKey, edge: EdgeEnd): Statement {
    const query = `SELECT type, to_cid, to_id, value, WRITETIME(value) AS time_us FROM ${this.#tables.keyspace}.edges_out WHERE ${OUTGOING_KEY}`;
    return { query, params: outgoingKey(from, edge) };
  }

  #incoming(key: EntityKey, type: string | undefined): Statement {
    const query = `SELECT type, cid, id FROM ${this.#tables.keyspace}.edges_in WHERE to_cid = ? AND to_id = ? AND bucket IN (${BUCKETS})`;
    if (type === undefined) return { query, params: [key.cid, key.id] };
    return { query: `${query} AND type = ?`, params: [key.cid, key.id, type] };
  }
}

interface Drop {
  readonly key: EntityKey;
  readonly timeUs: number;
  readonly edge: EdgeEnd;
}

type Row = Record<string, unknown>;

export function outgoingKey({ cid, id }: EntityKey, { type, to }: EdgeEnd): CqlValue[] {
  return [cid, id, hashOf(type, to.cid, to.id) % EDGE_BUCKETS, type, to.cid, to.id];
}

export function incomingKey({ cid, id }: EntityKey, { type, to }: EdgeEnd): CqlValue[] {
  return [to.cid, to.id, hashOf(type, cid, id) % EDGE_BUCKETS, type, cid, id];
}

function targetOf(row: Row): EntityKey {
  return { cid: Number(row.to_cid), id: String(row.to_id) };
}

/** Undefined when there is none, the removal of its source covers it, or its change was not made. */
function outgoingEdge(from: EntityKey, source: FoundEntity | undefined, row: Row | undefined): Edge | undefined {
  if (source === undefined || row === undefined || !Buffer.isBuffer(row.value)) return undefined;
  const timeUs = Number(row.time_us);
  if (timeUs <= source.entity.diedUs || timeUs > source.writtenUs) return undefined;
  const value = readEdgeValue(row.value);
  return { from, type: String(row.type), to: targetOf(row), timeUs, ...(value === undefined ? {} : { value }) };
}

/** An edge row must have a value to exist; its first byte says whether the edge has one. */
function edgeValue(value: Uint8Array | undefined): Uint8Array {
  return value === undefined ? Uint8Array.of(0) : Buffer.concat([Uint8Array.of(1), value]);
}

function readEdgeValue(stored: Buffer): Uint8Array | undefined {
  return stored[0] === 0 ? undefined : plainBytes(stored.subarray(1));
}
