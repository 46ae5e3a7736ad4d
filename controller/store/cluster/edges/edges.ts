import { errorText } from "../../../../common/errors.ts";
import { EDGE_BUCKETS, EDGE_READS_PER_PAGE } from "../../../../common/limits.ts";
import type { Edge, EdgeEnd, EntityChange, EntityKey, Page, PageRequest } from "../../objects.ts";
import { BucketLevels } from "../postings/bucket-levels.ts";
import type { Statement } from "../cassandra/cassandra.ts";
import type { Deadline } from "../deadline.ts";
import { pageBefore, readCursor, requestText } from "../cursor.ts";
import {
  EDGE_TABLES,
  edgeBuckets,
  edgeHash,
  edgeRow,
  edgeRows,
  edgesName,
  levelOfBucket,
  levelsUpTo,
  nameOf,
  type EdgeSide,
  type PlacedEdge,
} from "./places.ts";
import { plainBytes, type EntityTable, type FoundEntity } from "../entities/entities.ts";
import { derivedTimeUs, REMOVAL_KEPT_SECONDS, ttlSeconds, type Tables } from "../tables.ts";

const EDGES_PER_READ = 1_000;
/** Edges that are removed at once when an entity is removed; readers detect the others. */
const EDGES_ENDED_MAX = 100_000;
/** The value of a row that marks a dropped edge. */
const DROPPED = Uint8Array.of(2);

export function edgeLevels(tables: Tables): BucketLevels {
  return new BucketLevels(tables, { bucketsAtFirst: EDGE_BUCKETS });
}

/**
 * Edges are in `edges_out` by source, in buckets. `edges_in` is derived from it, by target: its row is added before the
 * edge and removed after it. So it may contain too much, never too little; readers check its rows at the source. An
 * edge is added before its source is written, is visible when the source has its time or a later one, and is dropped
 * after that write. The removal of a source hides its edges at once, and removes them afterwards.
 *
 * The more different edges an object ever had, the more buckets they are spread over (`BucketLevels`). An edge that is
 * set again may then be stored at several levels: its latest row is valid, and the lowest level returns it. With
 * several levels, a row marks a dropped edge as dropped, because a late write of it may arrive at any of them.
 */
export class EdgeTable {
  readonly #tables: Tables;
  readonly #entities: EntityTable;
  readonly #levels: BucketLevels;

  constructor(tables: Tables, entities: EntityTable) {
    this.#tables = tables;
    this.#entities = entities;
    this.#levels = edgeLevels(tables);
  }

  /** Edges level by level. An edge that is set again in the meantime may be returned twice. */
  async edges(
    key: EntityKey,
    direction: EdgeSide,
    page: PageRequest & { readonly type?: string },
  ): Promise<Page<Edge>> {
    const { cassandra, keyspace } = this.#tables;
    const request = requestText(keyspace, "edges", key, direction, page.type);
    const deadline = cassandra.deadline();
    let place = this.#place(readCursor(request, page));
    for (let reads = 1; ; reads += 1) {
      const { level, sinceUs, state } = place;
      const statement = this.#lying({ side: direction, key, level, type: page.type });
      const [levels, found] = await Promise.all([
        this.#levels.stored([edgesName(direction, key)], deadline),
        cassandra.page(statement, { size: page.limit, state }, deadline),
      ]);
      const part = { key, rows: found.rows, top: this.#topOf(levels, direction, key), sinceUs };
      const edges = direction === "out" ? await this.#living(part, deadline) : await this.#checked(part, deadline);
      const items = edges.filter((edge) => edge !== undefined);
      if (found.state === undefined && level >= part.top) return { items };
      place = found.state === undefined ? { level: level + 1, sinceUs } : { level, sinceUs, state: found.state };
      if (items.length > 0 || reads >= EDGE_READS_PER_PAGE) return pageBefore(items, request, JSON.stringify(place));
    }
  }

  /** Call it before the source itself is written. */
  writes(change: EntityChange, deadline: Deadline): Promise<void>[] {
    const { key, addEdges = [], expiresAtMs } = change;
    const ttl = ttlSeconds(this.#tables.cassandra.runtime.clock, expiresAtMs);
    return addEdges.map(async (edge) => {
      const placed = { from: key, edge };
      // The statements use the levels known before this edge is counted.
      const [incoming, outgoing] = [
        this.#statement("in", placed, change, ttl),
        this.#statement("out", placed, change, ttl),
      ];
      await Promise.all([this.#count("in", placed, deadline), this.#count("out", placed, deadline)]);
      await this.#tables.cassandra.write([incoming], deadline);
      await this.#tables.cassandra.write([outgoing], deadline);
      if (ttl > 0) await this.#supersede(placed, change.timeUs, deadline);
    });
  }

  /** Removes former rows of an expiring edge at other levels, so that they do not reappear when it expires. */
  async #supersede(placed: PlacedEdge, timeUs: number, deadline: Deadline): Promise<void> {
    const [top = 0] = await this.#topsOf("out", [placed], deadline);
    if (top === 0) return;
    const rows = await this.#rowsOf("out", placed, top, deadline);
    const former = rows.filter((row) => Number(row.time_us) < timeUs);
    await Promise.all(
      former.map((row) => {
        const place = edgeRow("out", placed, levelOfBucket(Number(row.bucket)));
        return this.#delete("out", [place], Number(row.time_us), deadline);
      }),
    );
  }

  /**
   * Call it after the source is written. Removes the edges that the change drops. After a removal of the source, every
   * reader detects its ended edges, so a failure to remove these is only logged.
   */
  async retract({ key, timeUs, dropEdges = [], death }: EntityChange, deadline: Deadline): Promise<void> {
    await this.#drop(key, dropEdges, timeUs, deadline);
    if (death !== true) return;
    try {
      const ended = await this.#endedBy(key, timeUs, deadline);
      // Incoming rows first: outgoing ones show where they are. The removal's time covers rows that arrive later.
      await this.#dropIncoming(ended, timeUs, deadline);
      const lying = ended.flatMap(({ levels, ...placed }) => [...levels].map((level) => edgeRow("out", placed, level)));
      await this.#delete("out", lying, timeUs, deadline);
    } catch (error) {
      this.#tables.cassandra.runtime.log.warn({ reason: errorText(error) }, "rows of ended edges stay behind");
    }
  }

  #statement(
    side: EdgeSide,
    placed: PlacedEdge & { readonly edge: EdgeEnd & { readonly value?: Uint8Array } },
    { timeUs }: EntityChange,
    ttl: number,
  ): Statement {
    const { cassandra, keyspace } = this.#tables;
    const { where, params } = edgeRow(side, placed, this.#levels.settled(nameOf(side, placed), timeUs));
    const time = BigInt(side === "out" ? timeUs : derivedTimeUs(cassandra, timeUs));
    const [column, value] = side === "out" ? ["value", edgeValue(placed.edge.value)] : ["present", true];
    const query = `UPDATE ${keyspace}.${EDGE_TABLES[side]} USING TIMESTAMP ? AND TTL ? SET ${column} = ? WHERE ${where}`;
    return { query, params: [time, ttl, value, ...params] };
  }

  async #count(side: EdgeSide, placed: PlacedEdge, deadline: Deadline): Promise<void> {
    const name = nameOf(side, placed);
    const stored = this.#levels.statements(name);
    await Promise.all([
      this.#levels.count(name, edgeHash(side, placed), deadline),
      this.#tables.cassandra.write(stored, deadline),
    ]);
  }

  /** The edges that a removal covers, with their levels. */
  async #endedBy(from: EntityKey, timeUs: number, deadline: Deadline): Promise<readonly EndedEdge[]> {
    const { cassandra } = this.#tables;
    const stored = await this.#levels.stored([edgesName("out", from)], deadline);
    const ended = new Map<string, EndedEdge>();
    for (const level of levelsUpTo(this.#topOf(stored, "out", from))) {
      const statement = this.#lying({ side: "out", key: from, level, type: undefined });
      let state: string | undefined;
      do {
        const found = await cassandra.page(statement, { size: EDGES_PER_READ, state }, deadline);
        for (const row of found.rows) {
          if (Number(row.time_us) > timeUs) continue;
          const edge = { type: String(row.type), to: targetOf(row) };
          const name = JSON.stringify([edge.type, edge.to.cid, edge.to.id]);
          const known = ended.get(name) ?? { from, edge, levels: new Set() };
          known.levels.add(level);
          ended.set(name, known);
        }
        state = found.state;
      } while (state !== undefined && ended.size < EDGES_ENDED_MAX);
    }
    return [...ended.values()];
  }

  async #drop(from: EntityKey, edges: readonly EdgeEnd[], timeUs: number, deadline: Deadline): Promise<void> {
    if (edges.length === 0) return;
    const placed = edges.map((edge) => ({ from, edge }));
    await this.#dropOutgoing(placed, timeUs, deadline);
    await this.#dropIncoming(placed, timeUs, deadline);
  }

  /**
   * With one level, the deletion itself covers a write that arrives later. With several, it would be written at each,
   * and every edge that ever existed would leave a tombstone in the few buckets of the first level.
   */
  async #dropOutgoing(edges: readonly PlacedEdge[], timeUs: number, deadline: Deadline): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const tops = await this.#topsOf("out", edges, deadline);
    const query = `UPDATE ${keyspace}.${EDGE_TABLES.out} USING TIMESTAMP ? AND TTL ${REMOVAL_KEPT_SECONDS} SET value = ? WHERE `;
    await Promise.all(
      edges.map(async (placed, at) => {
        const top = tops[at] ?? 0;
        if (top === 0) return this.#delete("out", [edgeRow("out", placed, 0)], timeUs, deadline);
        const { where, params } = edgeRow("out", placed, top);
        const mark = { query: query + where, params: [BigInt(timeUs), DROPPED, ...params] };
        await cassandra.write([mark], deadline);
        const below = (await this.#levelsOf("out", placed, top, deadline)).filter((level) => level < top);
        await this.#delete(
          "out",
          below.map((level) => edgeRow("out", placed, level)),
          timeUs,
          deadline,
        );
      }),
    );
  }

  /** A row that arrives later is superfluous, but harmless. */
  async #dropIncoming(edges: readonly PlacedEdge[], timeUs: number, deadline: Deadline): Promise<void> {
    const tops = await this.#topsOf("in", edges, deadline);
    await Promise.all(
      edges.map(async (placed, at) => {
        const top = tops[at] ?? 0;
        const levels = top === 0 ? [0] : await this.#levelsOf("in", placed, top, deadline);
        await this.#delete(
          "in",
          levels.map((level) => edgeRow("in", placed, level)),
          timeUs,
          deadline,
        );
      }),
    );
  }

  async #delete(side: EdgeSide, rows: readonly EdgePlaceRow[], timeUs: number, deadline: Deadline): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    await Promise.all(
      rows.map(({ where, params }) => {
        const query = `DELETE FROM ${keyspace}.${EDGE_TABLES[side]} USING TIMESTAMP ? WHERE ${where}`;
        return cassandra.write([{ query, params: [BigInt(timeUs), ...params] }], deadline);
      }),
    );
  }

  async #topsOf(side: EdgeSide, edges: readonly PlacedEdge[], deadline: Deadline): Promise<readonly number[]> {
    const names = edges.map((placed) => nameOf(side, placed));
    const levels = await this.#levels.stored([...new Set(names)], deadline);
    return names.map((name) => levels.get(name) ?? 0);
  }

  /** The levels at which the edge has rows. */
  async #levelsOf(side: EdgeSide, placed: PlacedEdge, top: number, deadline: Deadline): Promise<readonly number[]> {
    const rows = await this.#rowsOf(side, placed, top, deadline);
    return rows.map(({ bucket }) => levelOfBucket(Number(bucket)));
  }

  async #living({ key, rows, ...part }: ReadPart, deadline: Deadline): Promise<(Edge | undefined)[]> {
    const [[source], standing] = await Promise.all([
      this.#entities.find([key], deadline),
      Promise.all(
        rows.map((row) =>
          this.#standing(
            "out",
            { from: key, edge: { type: String(row.type), to: targetOf(row) } },
            { ...part, row },
            deadline,
          ),
        ),
      ),
    ]);
    return standing.map((row) => outgoingEdge(key, source, row));
  }

  async #checked({ key: to, rows, ...part }: ReadPart, deadline: Deadline): Promise<(Edge | undefined)[]> {
    const keys = rows.map((row) => ({ cid: Number(row.cid), id: String(row.id) }));
    const [sources, levels] = await Promise.all([
      this.#entities.find(keys, deadline),
      this.#levels.stored([...new Set(keys.map((from) => edgesName("out", from)))], deadline),
    ]);
    const edges = await Promise.all(
      rows.map(async (row, at) => {
        const placed = { from: keys[at] ?? to, edge: { type: String(row.type), to } };
        const top = this.#topOf(levels, "out", placed.from);
        const [lying, edge] = await Promise.all([
          this.#standing("in", placed, { ...part, row }, deadline),
          this.#rowsOf("out", placed, top, deadline),
        ]);
        return lying === undefined ? undefined : latestOf(edge);
      }),
    );
    return keys.map((from, at) => outgoingEdge(from, sources[at], edges[at]));
  }

  /** The latest row of an edge; `undefined` if a lower level has returned it since the reading began. */
  async #standing(
    side: EdgeSide,
    placed: PlacedEdge,
    { row, top, sinceUs }: { readonly row: Row; readonly top: number; readonly sinceUs: number },
    deadline: Deadline,
  ): Promise<Row | undefined> {
    if (top === 0) return row;
    // If a row at a lower level is later, that row returns the edge.
    if (isDropped(row)) return undefined;
    const level = levelOfBucket(Number(row.bucket));
    // The row at the source decides about the edge.
    if (side === "in" && level === 0) return row;
    const rows = await this.#rowsOf(side, placed, top, deadline);
    const isTold = rows.some(
      (other) => !isDropped(other) && levelOfBucket(Number(other.bucket)) < level && Number(other.time_us) <= sinceUs,
    );
    return isTold ? undefined : latestOf(rows);
  }

  #rowsOf(side: EdgeSide, placed: PlacedEdge, top: number, deadline: Deadline): Promise<readonly Row[]> {
    const { cassandra, keyspace } = this.#tables;
    const { where, params } = edgeRows(side, placed, top);
    return cassandra.read(
      { query: `SELECT ${COLUMNS[side]} FROM ${keyspace}.${EDGE_TABLES[side]} WHERE ${where}`, params },
      deadline,
    );
  }

  #lying({
    side,
    key,
    level,
    type,
  }: {
    readonly side: EdgeSide;
    readonly key: EntityKey;
    readonly level: number;
    readonly type: string | undefined;
  }): Statement {
    const near = side === "out" ? "cid = ? AND id = ?" : "to_cid = ? AND to_id = ?";
    const query = `SELECT ${COLUMNS[side]} FROM ${this.#tables.keyspace}.${EDGE_TABLES[side]} WHERE ${near} AND bucket IN (${edgeBuckets(level).join(", ")})`;
    if (type === undefined) return { query, params: [key.cid, key.id] };
    return { query: `${query} AND type = ?`, params: [key.cid, key.id, type] };
  }

  #place(cursor: string | undefined): EdgePlace {
    if (cursor !== undefined) return JSON.parse(cursor) as EdgePlace;
    return { level: 0, sinceUs: this.#tables.cassandra.runtime.clock.nowMs() * 1_000 };
  }

  #topOf(levels: ReadonlyMap<string, number>, side: EdgeSide, key: EntityKey): number {
    return levels.get(edgesName(side, key)) ?? 0;
  }
}

interface EndedEdge extends PlacedEdge {
  readonly levels: Set<number>;
}

type EdgePlaceRow = ReturnType<typeof edgeRow>;

const COLUMNS = {
  out: "bucket, type, to_cid, to_id, value, WRITETIME(value) AS time_us",
  in: "bucket, type, cid, id, WRITETIME(present) AS time_us",
} as const;

/** Position of a page. */
interface EdgePlace {
  readonly level: number;
  /** Time at which the first page was read. */
  readonly sinceUs: number;
  readonly state?: string;
}

interface ReadPart {
  readonly key: EntityKey;
  readonly rows: readonly Row[];
  /** The highest level of its edges. */
  readonly top: number;
  readonly sinceUs: number;
}

export type Row = Record<string, unknown>;

function targetOf(row: Row): EntityKey {
  return { cid: Number(row.to_cid), id: String(row.to_id) };
}

/** The latest of all rows of an edge. At equal times a removal wins, as within one row. */
export function latestOf(rows: readonly Row[]): Row | undefined {
  return rows.reduce<Row | undefined>((latest, row) => {
    const later = latest === undefined ? 1 : Number(row.time_us) - Number(latest.time_us);
    return later > 0 || (later === 0 && isDropped(row)) ? row : latest;
  }, undefined);
}

/** `undefined` if there is none, if the removal of its source covers it, or if its change was not completed. */
function outgoingEdge(from: EntityKey, source: FoundEntity | undefined, row: Row | undefined): Edge | undefined {
  if (source === undefined || row === undefined || !Buffer.isBuffer(row.value) || isDropped(row)) return undefined;
  const timeUs = Number(row.time_us);
  if (timeUs <= source.entity.diedUs || timeUs > source.writtenUs) return undefined;
  const value = readEdgeValue(row.value);
  return { from, type: String(row.type), to: targetOf(row), timeUs, ...(value === undefined ? {} : { value }) };
}

/** True if the row marks a dropped edge. */
export function isDropped(row: Row): boolean {
  return Buffer.isBuffer(row.value) && row.value[0] === DROPPED[0];
}

/** A stored value, never empty because an edge row needs one. Its first byte says whether the edge has a value. */
function edgeValue(value: Uint8Array | undefined): Uint8Array {
  return value === undefined ? Uint8Array.of(0) : Buffer.concat([Uint8Array.of(1), value]);
}

function readEdgeValue(stored: Buffer): Uint8Array | undefined {
  return stored[0] === 0 ? undefined : plainBytes(stored.subarray(1));
}
