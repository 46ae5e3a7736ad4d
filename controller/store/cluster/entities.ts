import type { types } from "cassandra-driver";
import { AppError } from "../../../common/errors.ts";
import { OBJECT_TOMBSTONE_KEEP_MS } from "../../../common/limits.ts";
import { NO_CELLS } from "../cells.ts";
import type { Cells, Entity, EntityChange, EntityKey, EntityTrace, EntityVersion, FindRequest, Page, PageRequest, TimeRangeUs } from "../objects.ts";
import type { CqlValue, Statement } from "./cassandra.ts";
import type { Deadline } from "./deadline.ts";
import { stampedCell, StampedCells } from "./cells.ts";
import { readCursor, requestText, writeCursor } from "./cursor.ts";
import { SLOTS } from "./schema.ts";
import { ttlSeconds, type Tables } from "./tables.ts";
import { indexedTerms } from "../terms.ts";

const SEARCH_CONDITIONS_MAX = 255;
const COLUMNS = ["cid", "id", "birth", "last", "attrs", ...SLOTS.map((slot) => `n${slot}`)].join(", ");
const MUTABLE = ["birth", "last", "attrs", "terms", ...SLOTS.map((slot) => `n${slot}`)].join(", ");

/** Entities in `entities`: one partition each, its present in static columns, its versions and outgoing edges in rows. */
export class EntityTable {
  readonly #tables: Tables;
  readonly #table: string;

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#table = `${tables.keyspace}.entities`;
  }

  /** One change as statements on one partition: together they are atomic. */
  statements(change: EntityChange): Statement[] {
    const time = BigInt(change.timeUs);
    const ttl = ttlSeconds(this.#tables.cassandra.runtime.clock, change.expiresAtMs);
    return [
      ...this.#presentStatement(change, time, ttl),
      ...this.#edgeStatements(change, time, ttl),
      ...this.#versionStatements(change, time, ttl),
      ...(change.death ? this.#deathStatements(change, time) : []),
    ];
  }

  async get(key: EntityKey, deadline: Deadline): Promise<Entity | undefined> {
    const row = await this.#row(key, deadline);
    return row === undefined ? undefined : toEntity(row);
  }

  async trace(key: EntityKey, deadline: Deadline): Promise<EntityTrace> {
    const row = await this.#row(key, deadline);
    if (row === undefined) return { entity: undefined, lastUs: 0, leftover: NO_CELLS };
    const entity = toEntity(row);
    if (entity !== undefined) return { entity, lastUs: entity.lastUs, leftover: NO_CELLS };
    const leftover = readCells(row);
    return { entity, lastUs: latest(Number(row.last ?? 0), leftover), leftover };
  }

  async #row(key: EntityKey, deadline: Deadline): Promise<types.Row | undefined> {
    const query = `SELECT DISTINCT ${COLUMNS} FROM ${this.#table} WHERE cid = ? AND id = ?`;
    const rows = await this.#tables.cassandra.read({ query, params: [key.cid, key.id] }, deadline);
    return rows[0];
  }

  async find(request: FindRequest, page: PageRequest): Promise<Page<Entity>> {
    const conditions = [...indexedTerms(request.terms).map((term) => ({ text: "terms CONTAINS ?", value: term })), ...rangeConditions(request)];
    if (request.terms.includes("")) throw new AppError("invalid", "A term must not be empty.");
    if (conditions.length > SEARCH_CONDITIONS_MAX) throw new AppError("too_large", `A search names at most ${SEARCH_CONDITIONS_MAX} terms.`);
    const where = conditions.map((condition) => condition.text).join(" AND ");
    // The index gives a row per version and edge of an entity: one of them is enough.
    const query = `SELECT ${COLUMNS} FROM ${this.#table} WHERE ${where} PER PARTITION LIMIT 1 ALLOW FILTERING`;
    return this.#pageOfEntities({ query, params: conditions.map((condition) => condition.value) }, page);
  }

  async scan(page: PageRequest): Promise<Page<Entity>> {
    return this.#pageOfEntities({ query: `SELECT DISTINCT ${COLUMNS} FROM ${this.#table}`, params: [] }, page);
  }

  async history(key: EntityKey, range: TimeRangeUs, page: PageRequest): Promise<Page<EntityVersion>> {
    const request = requestText(this.#tables.keyspace, "history", key, range);
    const before = readCursor(request, page);
    const from = range.fromUs ?? Number.MIN_SAFE_INTEGER;
    const to = before === undefined ? (range.toUs ?? Number.MAX_SAFE_INTEGER) : Number(before) - 1;
    const query = `SELECT time, value FROM ${this.#table} WHERE cid = ? AND id = ? AND section = 1 AND time >= ? AND time <= ? LIMIT ?`;
    const params = [key.cid, key.id, timeParameter(from), timeParameter(to), page.limit];
    const rows = await this.#tables.cassandra.read({ query, params }, this.#tables.cassandra.deadline());
    const items = rows.map((row) => ({ timeUs: Number(row.time), value: plainBytes(row.value) }));
    const last = items.at(-1);
    return last === undefined || items.length < page.limit ? { items } : { items, cursor: writeCursor(request, String(last.timeUs)) };
  }

  async #pageOfEntities(statement: Statement, page: PageRequest): Promise<Page<Entity>> {
    const { cassandra, keyspace } = this.#tables;
    const request = requestText(keyspace, statement.query, statement.params);
    const found = await cassandra.page(statement, { size: page.limit, state: readCursor(request, page) }, cassandra.deadline());
    const items = found.rows.map(toEntity).filter((entity) => entity !== undefined);
    return found.state === undefined ? { items } : { items, cursor: writeCursor(request, found.state) };
  }

  /** All static columns in one statement: half the work of one for each. */
  #presentStatement(change: EntityChange, time: bigint, ttl: number): Statement[] {
    const assignments: readonly Assignment[] = [
      ...(change.birth ? [["birth = ?", time] as const] : []),
      // Whatever is written at a death's time is dead with it.
      ...(change.death ? [] : [["last = ?", time] as const]),
      ...cellAssignments(change),
      ...termAssignments(change),
      ...[...(change.numbers ?? [])].map(([slot, value]): Assignment => [`${slotColumn(slot)} = ?`, value ?? null]),
    ];
    if (assignments.length === 0) return [];
    const texts = assignments.map(([text]) => text).join(", ");
    const query = `UPDATE ${this.#table} USING TIMESTAMP ? AND TTL ? SET ${texts} WHERE cid = ? AND id = ?`;
    return [{ query, params: [time, ttl, ...assignments.map(([, value]) => value), change.key.cid, change.key.id] }];
  }

  #edgeStatements(change: EntityChange, time: bigint, ttl: number): Statement[] {
    const row = "cid = ? AND id = ? AND section = 2 AND time = 0 AND type = ? AND to_cid = ? AND to_id = ?";
    const place = [change.key.cid, change.key.id];
    const added = (change.addEdges ?? []).map((edge) => ({
      query: `UPDATE ${this.#table} USING TIMESTAMP ? AND TTL ? SET value = ? WHERE ${row}`,
      params: [time, ttl, edgeValue(edge.value), ...place, edge.type, edge.to.cid, edge.to.id],
    }));
    const dropped = (change.dropEdges ?? []).map((edge) => ({
      query: `DELETE FROM ${this.#table} USING TIMESTAMP ? WHERE ${row}`,
      params: [time, ...place, edge.type, edge.to.cid, edge.to.id],
    }));
    return [...added, ...dropped];
  }

  #versionStatements(change: EntityChange, time: bigint, ttl: number): Statement[] {
    if (change.version === undefined) return [];
    const row = "cid = ? AND id = ? AND section = 1 AND time = ? AND type = '' AND to_cid = 0 AND to_id = ''";
    const query = `UPDATE ${this.#table} USING TIMESTAMP ? AND TTL ? SET value = ? WHERE ${row}`;
    return [{ query, params: [time, ttl, new Uint8Array(change.version), change.key.cid, change.key.id, time] }];
  }

  #deathStatements(change: EntityChange, time: bigint): Statement[] {
    const partition = [change.key.cid, change.key.id];
    const section = (number: number): Statement => ({
      query: `DELETE FROM ${this.#table} USING TIMESTAMP ? WHERE cid = ? AND id = ? AND section = ?`,
      params: [time, ...partition, number],
    });
    const present = { query: `DELETE ${MUTABLE} FROM ${this.#table} USING TIMESTAMP ? WHERE cid = ? AND id = ?`, params: [time, ...partition] };
    // What was removed when outlives the removal, so that whoever comes next can write above it.
    const memory = {
      query: `UPDATE ${this.#table} USING TIMESTAMP ? AND TTL ? SET last = ? WHERE cid = ? AND id = ?`,
      params: [time + 1n, OBJECT_TOMBSTONE_KEEP_MS / 1_000, time, ...partition],
    };
    return [present, memory, section(2), ...(change.forgetHistory ? [section(1)] : [])];
  }
}

type Assignment = readonly [text: string, value: CqlValue];

function cellAssignments(change: EntityChange): readonly Assignment[] {
  const written = new Map<string, Uint8Array>();
  const removed: string[] = [];
  for (const [name, value] of change.cells ?? []) {
    if (value === undefined) removed.push(name);
    else written.set(name, stampedCell(change.timeUs, value));
  }
  return [...(written.size > 0 ? [["attrs = attrs + ?", written] as const] : []), ...(removed.length > 0 ? [["attrs = attrs - ?", removed] as const] : [])];
}

function termAssignments(change: EntityChange): readonly Assignment[] {
  const added = indexedTerms(change.addTerms ?? []);
  const dropped = indexedTerms(change.dropTerms ?? []);
  return [...(added.length > 0 ? [["terms = terms + ?", added] as const] : []), ...(dropped.length > 0 ? [["terms = terms - ?", dropped] as const] : [])];
}

/** Undefined for a partition without a birth mark: never born, dead, or only its versions are left. */
function toEntity(row: types.Row): Entity | undefined {
  if (row.birth === null || row.birth === undefined) return undefined;
  const cells = readCells(row);
  const birthUs = Number(row.birth);
  const lastUs = latest(Math.max(birthUs, Number(row.last ?? 0)), cells);
  const numbers = SLOTS.map((slot) => (row[`n${slot}`] as number | null) ?? undefined);
  return { key: { cid: Number(row.cid), id: String(row.id) }, birthUs, lastUs, cells, numbers };
}

function readCells(row: types.Row): Cells {
  return new StampedCells((row.attrs as ReadonlyMap<string, Buffer> | null) ?? new Map());
}

function latest(lastUs: number, cells: Cells): number {
  let latestUs = lastUs;
  for (let place = 0; place < cells.keys.length; place += 1) latestUs = Math.max(latestUs, cells.timeUs(place));
  return latestUs;
}

/** An edge row must have a value to exist; its first byte tells whether the edge has one. */
function edgeValue(value: Uint8Array | undefined): Uint8Array {
  return value === undefined ? Uint8Array.of(0) : Buffer.concat([Uint8Array.of(1), value]);
}

export function readEdgeValue(stored: Buffer): Uint8Array | undefined {
  return stored[0] === 0 ? undefined : plainBytes(stored.subarray(1));
}

/** Its own copy: the driver's buffers are windows on whole answers. */
export function plainBytes(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer);
}

function slotColumn(slot: number): string {
  if (!SLOTS.includes(slot)) throw new AppError("invalid", `There is no number slot ${slot}.`);
  return `n${slot}`;
}

function timeParameter(timeUs: number): bigint {
  const bounded = Math.min(Math.max(timeUs, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
  return BigInt(Math.trunc(bounded));
}

/** Cassandra takes one lower and one upper bound per column: several ranges of one slot become their intersection. */
function rangeConditions(request: FindRequest): { readonly text: string; readonly value: number }[] {
  const bounds = new Map<number, { from: number; to: number }>();
  for (const range of request.ranges ?? []) {
    const bound = bounds.get(range.slot) ?? { from: -Infinity, to: Infinity };
    bounds.set(range.slot, { from: Math.max(bound.from, range.from ?? -Infinity), to: Math.min(bound.to, range.to ?? Infinity) });
  }
  return [...bounds].flatMap(([slot, bound]) => [
    { text: `${slotColumn(slot)} >= ?`, value: bound.from },
    { text: `${slotColumn(slot)} <= ?`, value: bound.to },
  ]);
}
