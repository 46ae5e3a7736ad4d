import type { types } from "cassandra-driver";
import { AppError } from "../../../common/errors.ts";
import { OBJECT_TOMBSTONE_KEEP_MS } from "../../../common/limits.ts";
import { NO_CELLS } from "../cells.ts";
import type {
  Cells,
  Entity,
  EntityChange,
  EntityKey,
  EntityTrace,
  EntityVersion,
  FindRequest,
  Page,
  PageRequest,
  TimeRangeUs,
} from "../objects.ts";
import type { CqlValue, Statement } from "./cassandra.ts";
import type { Deadline } from "./deadline.ts";
import { stampedCell, StampedCells } from "./cells.ts";
import { pageBefore, readCursor, requestText } from "./cursor.ts";
import { SLOTS } from "./schema.ts";
import { ttlSeconds, type Tables } from "./tables.ts";
import { indexedTerms } from "../terms.ts";

const SEARCH_CONDITIONS_MAX = 255;
const NUMBERS = SLOTS.map((slot) => `n${slot}`);
const PRESENT = ["birth", "last", "attrs", ...NUMBERS].join(", ");
const MUTABLE = ["birth", "last", "attrs", "terms", ...NUMBERS].join(", ");
/** What a change can write of the present, in the order of `presentValues`. */
const ASSIGNMENTS = [
  "birth = ?",
  "last = ?",
  "attrs = attrs + ?",
  "attrs = attrs - ?",
  "terms = terms + ?",
  "terms = terms - ?",
  ...NUMBERS.map((column) => `${column} = ?`),
];

/**
 * Entities in `entities`: one partition each, its present in static columns, its versions and outgoing edges in rows.
 */
export class EntityTable {
  readonly #tables: Tables;
  readonly #table: string;
  /** Made once: the driver knows a statement by its text. */
  readonly #select: string;
  /** By what is written: a bit for each of `ASSIGNMENTS`. */
  readonly #updates: string[] = [];

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#table = `${tables.keyspace}.entities`;
    this.#select = `SELECT DISTINCT ${PRESENT} FROM ${this.#table} WHERE cid = ? AND id = ?`;
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
    const [row] = await this.#rows(key, deadline);
    return row === undefined ? undefined : toEntity(key, row);
  }

  async trace(key: EntityKey, deadline: Deadline): Promise<EntityTrace> {
    const [row] = await this.#rows(key, deadline);
    if (row === undefined) return { entity: undefined, lastUs: 0, leftover: NO_CELLS };
    const entity = toEntity(key, row);
    if (entity !== undefined) return { entity, lastUs: entity.lastUs, leftover: NO_CELLS };
    const leftover = readCells(row);
    return { entity, lastUs: latest(Number(row.last ?? 0), leftover), leftover };
  }

  /** One or none. */
  #rows(key: EntityKey, deadline: Deadline): Promise<readonly types.Row[]> {
    return this.#tables.cassandra.read({ query: this.#select, params: [key.cid, key.id] }, deadline);
  }

  async find(request: FindRequest, page: PageRequest): Promise<Page<Entity>> {
    const conditions = [
      ...indexedTerms(request.terms).map((term) => ({ text: "terms CONTAINS ?", value: term })),
      ...rangeConditions(request),
    ];
    if (request.terms.includes("")) throw new AppError("invalid", "A term must not be empty.");
    if (conditions.length > SEARCH_CONDITIONS_MAX)
      throw new AppError("too_large", `A search names at most ${SEARCH_CONDITIONS_MAX} terms.`);
    const where = conditions.map((condition) => condition.text).join(" AND ");
    // The index gives a row per version and edge of an entity: one of them is enough.
    const query = `SELECT cid, id, ${PRESENT} FROM ${this.#table} WHERE ${where} PER PARTITION LIMIT 1 ALLOW FILTERING`;
    return this.#pageOfEntities({ query, params: conditions.map((condition) => condition.value) }, page);
  }

  async scan(page: PageRequest): Promise<Page<Entity>> {
    return this.#pageOfEntities({ query: `SELECT DISTINCT cid, id, ${PRESENT} FROM ${this.#table}`, params: [] }, page);
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
    return last === undefined || items.length < page.limit
      ? { items }
      : pageBefore(items, request, String(last.timeUs));
  }

  async #pageOfEntities(statement: Statement, page: PageRequest): Promise<Page<Entity>> {
    const { cassandra, keyspace } = this.#tables;
    const request = requestText(keyspace, statement.query, statement.params);
    const found = await cassandra.page(
      statement,
      { size: page.limit, state: readCursor(request, page) },
      cassandra.deadline(),
    );
    const items = found.rows
      .map((row) => toEntity({ cid: row.cid as number, id: row.id as string }, row))
      .filter((entity) => entity !== undefined);
    return found.state === undefined ? { items } : pageBefore(items, request, found.state);
  }

  /** All static columns in one statement: half the work of one for each. */
  #presentStatement(change: EntityChange, time: bigint, ttl: number): Statement[] {
    const params: CqlValue[] = [time, ttl];
    let shape = 0;
    for (const [at, value] of presentValues(change, time).entries()) {
      if (value === undefined) continue;
      shape |= 1 << at;
      params.push(value);
    }
    if (shape === 0) return [];
    params.push(change.key.cid, change.key.id);
    return [{ query: (this.#updates[shape] ??= this.#update(shape)), params }];
  }

  #update(shape: number): string {
    const texts = ASSIGNMENTS.filter((_, at) => (shape & (1 << at)) !== 0).join(", ");
    return `UPDATE ${this.#table} USING TIMESTAMP ? AND TTL ? SET ${texts} WHERE cid = ? AND id = ?`;
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
    const present = {
      query: `DELETE ${MUTABLE} FROM ${this.#table} USING TIMESTAMP ? WHERE cid = ? AND id = ?`,
      params: [time, ...partition],
    };
    // What was removed when outlives the removal, so that the next writer can use a greater time.
    const memory = {
      query: `UPDATE ${this.#table} USING TIMESTAMP ? AND TTL ? SET last = ? WHERE cid = ? AND id = ?`,
      params: [time + 1n, OBJECT_TOMBSTONE_KEEP_MS / 1_000, time, ...partition],
    };
    return [present, memory, section(2), ...(change.forgetHistory ? [section(1)] : [])];
  }
}

/** In the order of `ASSIGNMENTS`; undefined for what stays as it is. */
function presentValues(
  { birth, death, timeUs, cells, addTerms, dropTerms, numbers }: EntityChange,
  time: bigint,
): (CqlValue | undefined)[] {
  const written = new Map<string, Uint8Array>();
  const removed: string[] = [];
  for (const [name, value] of cells ?? []) {
    if (value === undefined) removed.push(name);
    else written.set(name, stampedCell(timeUs, value));
  }
  return [
    birth ? time : undefined,
    // A cell written at the time of a removal is removed with it.
    death ? undefined : time,
    written.size > 0 ? written : undefined,
    ...[removed, indexedTerms(addTerms ?? []), indexedTerms(dropTerms ?? [])].map((texts) =>
      texts.length > 0 ? texts : undefined,
    ),
    ...SLOTS.map((slot) => (numbers?.has(slot) ? (numbers.get(slot) ?? null) : undefined)),
  ];
}

/** Undefined for a partition without a birth mark: never born, dead, or only its versions are left. */
function toEntity(key: EntityKey, row: types.Row): Entity | undefined {
  if (row.birth === null || row.birth === undefined) return undefined;
  const cells = readCells(row);
  const birthUs = Number(row.birth);
  // Every writer of cells writes their time to `last` as well; only its expiry can hide an older one.
  const lastUs = row.last === null ? latest(birthUs, cells) : Math.max(birthUs, Number(row.last));
  const numbers = NUMBERS.map((column) => (row[column] as number | null) ?? undefined);
  return { key, birthUs, lastUs, cells, numbers };
}

function readCells(row: types.Row): Cells {
  return new StampedCells((row.attrs as ReadonlyMap<string, Buffer> | null) ?? new Map());
}

function latest(lastUs: number, cells: Cells): number {
  let latestUs = lastUs;
  for (let place = 0; place < cells.keys.length; place += 1) latestUs = Math.max(latestUs, cells.timeUs(place));
  return latestUs;
}

/** An edge row must have a value to exist; its first byte says whether the edge has one. */
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
    bounds.set(range.slot, {
      from: Math.max(bound.from, range.from ?? -Infinity),
      to: Math.min(bound.to, range.to ?? Infinity),
    });
  }
  return [...bounds].flatMap(([slot, bound]) => [
    { text: `${slotColumn(slot)} >= ?`, value: bound.from },
    { text: `${slotColumn(slot)} <= ?`, value: bound.to },
  ]);
}
