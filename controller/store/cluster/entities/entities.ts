import type { types } from "cassandra-driver";
import { COUNTED_ROWS_PER_READ, ENTITIES_PER_READ } from "../../../../common/limits.ts";
import { NO_CELLS } from "../../cells.ts";
import type {
  CellChoice,
  Cells,
  ClassCount,
  Entity,
  EntityChange,
  EntityKey,
  EntityTrace,
  Page,
  PageRequest,
} from "../../objects.ts";
import type { EndingInParts } from "../../scrub.ts";
import type { CqlValue, Statement } from "../cassandra/cassandra.ts";
import type { Deadline } from "../deadline.ts";
import { stampedCell } from "./cells.ts";
import { readCursor, requestText, writeCursor } from "../cursor.ts";
import { groupsOf } from "../groups.ts";
import { conditionsOf, type IndexRequest } from "../postings/index-conditions.ts";
import { SLOTS } from "../schema.ts";
import { selectionOf, WHOLE, type Selection } from "./selection.ts";
import { NEVER_MS, removalKeptSeconds, ttlSeconds, type Tables } from "../tables.ts";
import { TokenScan } from "../upkeep/token-scan.ts";
import { isClassTerm } from "../../terms.ts";

const NUMBERS = SLOTS.map((slot) => `n${slot}`);
const PRESENT = ["birth", "last", "died", "ends", ...NUMBERS].join(", ");
/** Columns of `present`, besides numbers, that a change can write, in the order of `presentValues`. */
const ASSIGNMENTS = [
  "birth = ?",
  "last = ?",
  "attrs = attrs + ?",
  "attrs = attrs - ?",
  "classes = classes + ?",
  "classes = classes - ?",
  "ends = ?",
];

/** The stored data of one key. */
export interface FoundEntity {
  readonly entity: Entity;
  /** Latest time of a completed change; infinite if it is no longer known. */
  readonly writtenUs: number;
  readonly classes: readonly string[];
}

/** The current state of entities, in the table `present`: one small partition each. */
export class EntityTable {
  readonly #tables: Tables;
  readonly #table: string;
  readonly #selectWritten: string;
  readonly #all: TokenScan;
  readonly #inParts: TokenScan;
  /**
   * Statements by the columns they write: a bit per entry of `ASSIGNMENTS`, and above them the number of named slots.
   */
  readonly #updates: string[] = [];

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#table = `${tables.keyspace}.present`;
    const all = { table: "present", partitionKey: "cid, id", hasSingleRows: true };
    const columns = `cid, id, ${PRESENT}${WHOLE.text}`;
    this.#all = new TokenScan(tables, { ...all, columns });
    const ttls = "TTL(birth) AS birth_ttl, TTL(last) AS last_ttl";
    this.#inParts = new TokenScan(tables, { ...all, columns: `${columns}, ${ttls}` });
    this.#selectWritten = `SELECT last FROM ${this.#table} WHERE cid = ? AND id = ?`;
  }

  /** The statements of a change, all on one partition. */
  statements(change: EntityChange): Statement[] {
    const time = BigInt(change.timeUs);
    const ttl = ttlSeconds(this.#tables.cassandra.runtime.clock, change.expiresAtMs);
    return [...this.#presentStatement(change, time, ttl), ...(change.death ? this.#deathStatements(change, time) : [])];
  }

  async get(key: EntityKey, deadline: Deadline, selection = WHOLE): Promise<Entity | undefined> {
    const [row] = await this.#rows(key, deadline, selection);
    if (row === undefined) return undefined;
    return isUntimed(row, selection) ? this.get(key, deadline) : this.#living(key, row, selection);
  }

  async trace(key: EntityKey, deadline: Deadline): Promise<EntityTrace> {
    const [row] = await this.#rows(key, deadline);
    if (row === undefined) return { entity: undefined, lastUs: 0, leftover: NO_CELLS };
    const entity = bornEntity(key, row, WHOLE);
    if (entity !== undefined) {
      const { lastUs } = entity;
      if (isEnded(row, this.#nowMs()))
        return { entity: undefined, lastUs, leftover: NO_CELLS, ended: entity, endedUs: Number(row.ends) * 1_000 };
      return { entity, lastUs, leftover: NO_CELLS };
    }
    const leftover = WHOLE.cells(row);
    const lastUs = Math.max(Number(row.last ?? 0), diedUs(row));
    return { entity: undefined, lastUs: latest(lastUs, leftover), leftover };
  }

  /** Entities in the order of `keys`; `undefined` for one that does not live. */
  async find(
    keys: readonly EntityKey[],
    deadline: Deadline,
    cells?: CellChoice,
  ): Promise<readonly (FoundEntity | undefined)[]> {
    const selection = selectionOf(cells);
    const query = `SELECT cid, id, classes, ${PRESENT}${selection.text} FROM ${this.#table} WHERE cid = ? AND id IN ?`;
    const rows = await Promise.all(
      groupsOf(keys, ({ cid }) => cid, ENTITIES_PER_READ).map(({ key: cid, items }) => {
        const ids = items.map(({ id }) => id);
        return this.#tables.cassandra.read({ query, params: [...selection.params, cid, ids] }, deadline);
      }),
    );
    const entities = await this.#entities(rows.flat(), selection, deadline);
    const found = new Map(
      entities.map(({ row, entity }) => [
        `${entity.key.cid}:${entity.key.id}`,
        {
          entity,
          writtenUs: writtenUs(row),
          classes: (row.classes as readonly string[] | null) ?? [],
        },
      ]),
    );
    return keys.map((key) => found.get(`${key.cid}:${key.id}`));
  }

  /** Returns the live entities, in the order of `keys`. */
  async living(keys: readonly EntityKey[], cells?: CellChoice): Promise<readonly Entity[]> {
    const found = await this.find(keys, this.#tables.cassandra.deadline(), cells);
    return found.flatMap((one) => (one === undefined ? [] : [one.entity]));
  }

  /** Latest time of a completed change; infinite if it is no longer known. */
  async writtenUs({ cid, id }: EntityKey, deadline: Deadline): Promise<number> {
    const [row] = await this.#tables.cassandra.read({ query: this.#selectWritten, params: [cid, id] }, deadline);
    return row === undefined ? Infinity : writtenUs(row);
  }

  /** One row or none. */
  #rows(key: EntityKey, deadline: Deadline, { text, params }: Selection = WHOLE): Promise<readonly types.Row[]> {
    const query = `SELECT ${PRESENT}${text} FROM ${this.#table} WHERE cid = ? AND id = ?`;
    return this.#tables.cassandra.read({ query, params: [...params, key.cid, key.id] }, deadline);
  }

  /** Searches by the indexes of the table itself; all nodes are asked. */
  async search(request: IndexRequest, page: DriverPage): Promise<PageOfEntities> {
    const { where, params } = conditionsOf(request);
    const selection = selectionOf(request.cells);
    const query = `SELECT cid, id, ${PRESENT}${selection.text} FROM ${this.#table} WHERE ${where} ALLOW FILTERING`;
    return this.#pageOfEntities({ query, params: [...selection.params, ...params] }, page, selection);
  }

  /** Like `search`, but returns only the keys. */
  async keys(
    request: Omit<IndexRequest, "cells">,
    page: DriverPage,
  ): Promise<{ readonly keys: readonly EntityKey[]; readonly state?: string }> {
    const { cassandra } = this.#tables;
    const { where, params } = conditionsOf(request);
    const query = `SELECT cid, id, birth, ends FROM ${this.#table} WHERE ${where} ALLOW FILTERING`;
    const { rows, state } = await cassandra.page({ query, params }, page, cassandra.deadline());
    const nowMs = this.#nowMs();
    const keys = rows.filter((row) => row.birth !== null && !isEnded(row, nowMs)).map(keyOf);
    return { keys, ...(state === undefined ? {} : { state }) };
  }

  /** Counts by the index of classes; reads only the birth of each entity. */
  async countClass(term: string, cursor?: string): Promise<ClassCount> {
    const { cassandra, keyspace } = this.#tables;
    const request = requestText(keyspace, "countClass", term);
    const page = { limit: 1, ...(cursor === undefined ? {} : { cursor }) };
    const place = { size: COUNTED_ROWS_PER_READ, state: readCursor(request, page) };
    const statement = { query: `SELECT birth, ends FROM ${this.#table} WHERE classes CONTAINS ?`, params: [term] };
    const { rows, state } = await cassandra.page(statement, place, cassandra.deadline());
    const nowMs = this.#nowMs();
    const count = rows.filter((row) => row.birth !== null && !isEnded(row, nowMs)).length;
    return { count, ...(state === undefined ? {} : { cursor: writeCursor(request, state) }) };
  }

  /** Finds ended entities by the index of ends. */
  async ended({ beforeMs, ...page }: PageRequest & { readonly beforeMs: number }): Promise<Page<Entity>> {
    const { cassandra, keyspace } = this.#tables;
    const request = requestText(keyspace, "ended", beforeMs);
    const place = { size: page.limit, state: readCursor(request, page) };
    const query = `SELECT cid, id, ${PRESENT}${WHOLE.text} FROM ${this.#table} WHERE ends <= ?`;
    const { rows, state } = await cassandra.page({ query, params: [endOf(beforeMs)] }, place, cassandra.deadline());
    const items = rows.map((row) => entityOf(keyOf(row), row, WHOLE));
    return { items, ...(state === undefined ? {} : { cursor: writeCursor(request, state) }) };
  }

  /** Uses the TTLs in Cassandra: every change writes `last` with the TTL of everything that it writes. */
  async endingInParts(page: PageRequest): Promise<Page<EndingInParts>> {
    const { rows, cursor } = await this.#inParts.page(requestText(this.#tables.keyspace, "inParts"), page);
    const nowMs = this.#nowMs();
    const items = rows.flatMap((row) => {
      const entity = bornEntity(keyOf(row), row, WHOLE);
      if (entity === undefined || entity.endsAtMs !== undefined) return [];
      if (row.birth_ttl === null && row.last_ttl === null) return [];
      return [{ entity, endsAtMs: row.last_ttl === null ? Infinity : nowMs + Number(row.last_ttl) * 1_000 }];
    });
    return cursor === undefined ? { items } : { items, cursor };
  }

  async scan(page: PageRequest): Promise<Page<Entity>> {
    const request = requestText(this.#tables.keyspace, "scan");
    const { rows, cursor } = await this.#all.page(request, page);
    const found = await this.#entities(rows, WHOLE, this.#tables.cassandra.deadline());
    const items = found.map(({ entity }) => entity);
    return cursor === undefined ? { items } : { items, cursor };
  }

  async #pageOfEntities(statement: Statement, page: DriverPage, selection: Selection): Promise<PageOfEntities> {
    const { cassandra } = this.#tables;
    const deadline = cassandra.deadline();
    const { rows, state } = await cassandra.page(statement, page, deadline);
    const items = (await this.#entities(rows, selection, deadline)).map(({ entity }) => entity);
    return { items, ...(state === undefined ? {} : { state }) };
  }

  /** The living entities among the rows. */
  async #entities(
    rows: readonly types.Row[],
    selection: Selection,
    deadline: Deadline,
  ): Promise<readonly ReadEntity[]> {
    const untimed = rows.filter((row) => isUntimed(row, selection));
    const read = await Promise.all(untimed.map((row) => this.get(keyOf(row), deadline)));
    const whole = new Map(untimed.map((row, at) => [row, read[at]]));
    return rows.flatMap((row) => {
      const entity = whole.has(row) ? whole.get(row) : this.#living(keyOf(row), row, selection);
      return entity === undefined ? [] : [{ row, entity }];
    });
  }

  #living(key: EntityKey, row: types.Row, selection: Selection): Entity | undefined {
    return isEnded(row, this.#nowMs()) ? undefined : bornEntity(key, row, selection);
  }

  #nowMs(): number {
    return this.#tables.cassandra.runtime.clock.nowMs();
  }

  /**
   * Writes all columns in one statement: half the work of one statement per column. Slots are named up to the last
   * written one; unwritten ones in between stay unchanged. One statement per choice of slots would be more than
   * Cassandra keeps prepared.
   */
  #presentStatement(change: EntityChange, time: bigint, ttl: number): Statement[] {
    const params: CqlValue[] = [time, ttl];
    const numbers = slotValues(change.numbers);
    let shape = numbers.length << ASSIGNMENTS.length;
    for (const [at, value] of presentValues(change, time).entries()) {
      if (value === undefined) continue;
      shape |= 1 << at;
      params.push(value);
    }
    if (shape === 0) return [];
    params.push(...numbers, change.key.cid, change.key.id);
    return [{ query: (this.#updates[shape] ??= this.#update(shape)), params }];
  }

  #update(shape: number): string {
    const assigned = ASSIGNMENTS.filter((_, at) => (shape & (1 << at)) !== 0);
    const numbers = NUMBERS.slice(0, shape >> ASSIGNMENTS.length).map((column) => `${column} = ?`);
    const texts = [...assigned, ...numbers].join(", ");
    return `UPDATE ${this.#table} USING TIMESTAMP ? AND TTL ? SET ${texts} WHERE cid = ? AND id = ?`;
  }

  /** Deletes the whole partition at once: one tombstone, which readers of other objects do not pass. */
  #deathStatements({ key, timeUs }: EntityChange, time: bigint): Statement[] {
    const { clock } = this.#tables.cassandra.runtime;
    const partition = [key.cid, key.id];
    const present = {
      query: `DELETE FROM ${this.#table} USING TIMESTAMP ? WHERE cid = ? AND id = ?`,
      params: [time, ...partition],
    };
    // The time of the removal stays for a while: the next writer must use a later time, and readers of postings and
    // edges ignore those that the removal covers.
    const memory = {
      query: `UPDATE ${this.#table} USING TIMESTAMP ? AND TTL ? SET died = ? WHERE cid = ? AND id = ?`,
      params: [time + 1n, removalKeptSeconds(clock, timeUs), time, ...partition],
    };
    return [present, memory];
  }
}

interface ReadEntity {
  readonly row: types.Row;
  readonly entity: Entity;
}

export interface DriverPage {
  readonly size: number;
  readonly state: string | undefined;
}

export interface PageOfEntities {
  readonly items: readonly Entity[];
  readonly state?: string;
}

/** Values in the order of `ASSIGNMENTS`; `undefined` leaves a column unchanged. */
function presentValues(
  { birth, death, timeUs, cells, addTerms, dropTerms, endsAtMs }: EntityChange,
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
    ...[removed, (addTerms ?? []).filter(isClassTerm), (dropTerms ?? []).filter(isClassTerm)].map((texts) =>
      texts.length > 0 ? texts : undefined,
    ),
    endsAtMs === undefined ? undefined : endOf(endsAtMs),
  ];
}

/** Values by slot, up to the last written one: null clears a slot, `undefined` leaves it unchanged. */
function slotValues(numbers: EntityChange["numbers"]): CqlValue[] {
  if (numbers === undefined) return [];
  const named = SLOTS.slice(0, 1 + Math.max(-1, ...numbers.keys()));
  return named.map((slot) => (numbers.has(slot) ? (numbers.get(slot) ?? null) : undefined));
}

function keyOf(row: types.Row): EntityKey {
  return { cid: row.cid as number, id: row.id as string };
}

/** The value of `ends`. If two changes of the same time name an end, Cassandra keeps the greater value. */
function endOf(endsAtMs: number): bigint {
  return BigInt(Math.min(Math.max(Math.ceil(endsAtMs), 0), NEVER_MS));
}

function endsAtMs({ ends }: types.Row): number | undefined {
  if (ends === null || ends === undefined) return undefined;
  return Number(ends) >= NEVER_MS ? Infinity : Number(ends);
}

function isEnded(row: types.Row, nowMs: number): boolean {
  return (endsAtMs(row) ?? Infinity) <= nowMs;
}

/** `undefined` for a partition without a birth mark: never born, or dead. */
function bornEntity(key: EntityKey, row: types.Row, selection: Selection): Entity | undefined {
  return row.birth === null || row.birth === undefined ? undefined : entityOf(key, row, selection);
}

function entityOf(key: EntityKey, row: types.Row, selection: Selection): Entity {
  const cells = selection.cells(row);
  const birthUs = Number(row.birth ?? 0);
  // Every write of cells also writes its time to `last`. If `last` has expired, the cells show the latest time.
  const lastUs = row.last === null ? latest(birthUs, cells) : Math.max(birthUs, Number(row.last));
  const numbers = NUMBERS.map((column) => (row[column] as number | null) ?? undefined);
  return { key, birthUs, lastUs, diedUs: diedUs(row), endsAtMs: endsAtMs(row), cells, numbers };
}

function diedUs(row: types.Row): number {
  return Number(row.died ?? 0);
}

/** Infinite if `last` is gone, by a removal or by expiry: then the time of the last completed change is unknown. */
function writtenUs({ last }: types.Row): number {
  return last === null ? Infinity : Number(last);
}

/** True if `last` has expired and only some cells were read: the latest time is known only from all cells. */
function isUntimed({ birth, last }: types.Row, { isWhole }: Selection): boolean {
  return !isWhole && birth !== null && last === null;
}

function latest(lastUs: number, cells: Cells): number {
  let latestUs = lastUs;
  for (let place = 0; place < cells.keys.length; place += 1) latestUs = Math.max(latestUs, cells.timeUs(place));
  return latestUs;
}

/** A copy, because the driver's buffers are windows on whole answers. */
export function plainBytes(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer);
}
