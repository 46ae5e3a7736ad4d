import { errorText } from "../../../../common/errors.ts";
import { EDGE_READS_PER_PAGE } from "../../../../common/limits.ts";
import type { Edge, EdgeEnd, EntityChange, EntityKey, Page, PageRequest } from "../../objects.ts";
import type { Statement } from "../cassandra/cassandra.ts";
import { pageBefore, readCursor, requestText } from "../cursor.ts";
import type { Deadline } from "../deadline.ts";
import type { EntityTable } from "../entities/entities.ts";
import type { BucketLevels } from "../postings/bucket-levels.ts";
import { derivedTimeUs, ttlSeconds, type Tables } from "../tables.ts";
import {
  EDGE_TABLES,
  edgeHash,
  edgeRow,
  edgesName,
  levelOfBucket,
  nameOf,
  type EdgeSide,
  type PlacedEdge,
} from "./places.ts";
import { EdgeRemoval } from "./removal.ts";
import {
  edgeLevels,
  EdgeRows,
  edgeValue,
  isDropped,
  latestOf,
  outgoingEdge,
  type Row,
  targetOf,
  topIn,
} from "./rows.ts";

/**
 * Edges are in `edges_out` by source, in buckets. `edges_in` is derived from it, by target: its row is added before the
 * edge and removed after it. So `edges_in` may have superfluous rows, but none is missing; readers check its rows at
 * the source. An edge is written before its source. It becomes visible when the source has the time of the edge or a
 * later one. A dropped edge is removed after the source is written. The removal of a source hides its edges at once;
 * their rows are removed afterwards.
 *
 * The more different edges an object ever had, the more buckets they are spread over (`BucketLevels`). An edge that is
 * set again may then have rows at several levels: the latest row is valid, and a reader returns the edge at its lowest
 * level. With several levels, a row marks a dropped edge, because a late write of the edge may arrive at any level.
 */
export class EdgeTable {
  readonly #tables: Tables;
  readonly #entities: EntityTable;
  readonly #levels: BucketLevels;
  readonly #rows: EdgeRows;
  readonly #removal: EdgeRemoval;

  constructor(tables: Tables, entities: EntityTable) {
    this.#tables = tables;
    this.#entities = entities;
    this.#levels = edgeLevels(tables);
    this.#rows = new EdgeRows(tables, this.#levels);
    this.#removal = new EdgeRemoval(tables, this.#levels, this.#rows);
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
      const statement = this.#rows.lying({ side: direction, key, level, type: page.type });
      const [levels, found] = await Promise.all([
        this.#levels.stored([edgesName(direction, key)], deadline),
        cassandra.page(statement, { size: page.limit, state }, deadline),
      ]);
      const part = { key, rows: found.rows, top: topIn(levels, direction, key), sinceUs };
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
      if (ttl > 0) await this.#removal.supersede(placed, change.timeUs, deadline);
    });
  }

  /**
   * Call it after the source is written. Removes the edges that the change drops. After a removal of the source, every
   * reader detects its ended edges, so a failure to remove these is only logged.
   */
  async retract({ key, timeUs, dropEdges = [], death }: EntityChange, deadline: Deadline): Promise<void> {
    await this.#removal.drop(key, dropEdges, timeUs, deadline);
    if (death !== true) return;
    try {
      await this.#removal.dropEnded(key, timeUs, deadline);
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
        const top = topIn(levels, "out", placed.from);
        const [lying, edge] = await Promise.all([
          this.#standing("in", placed, { ...part, row }, deadline),
          this.#rows.of("out", placed, top, deadline),
        ]);
        return lying === undefined ? undefined : latestOf(edge);
      }),
    );
    return keys.map((from, at) => outgoingEdge(from, sources[at], edges[at]));
  }

  /**
   * The latest row of an edge. `undefined` if this row marks it as dropped, or if a lower level has a row of the edge
   * that was written before the first page: that row returns the edge.
   */
  async #standing(
    side: EdgeSide,
    placed: PlacedEdge,
    { row, top, sinceUs }: { readonly row: Row; readonly top: number; readonly sinceUs: number },
    deadline: Deadline,
  ): Promise<Row | undefined> {
    if (top === 0) return row;
    // If the edge was set again after this mark, at another level, that row returns the edge.
    if (isDropped(row)) return undefined;
    const level = levelOfBucket(Number(row.bucket));
    // It need not be the latest row, because the row at the source decides about the edge.
    if (side === "in" && level === 0) return row;
    const rows = await this.#rows.of(side, placed, top, deadline);
    const isTold = rows.some(
      (other) => !isDropped(other) && levelOfBucket(Number(other.bucket)) < level && Number(other.time_us) <= sinceUs,
    );
    return isTold ? undefined : latestOf(rows);
  }

  #place(cursor: string | undefined): EdgePlace {
    if (cursor !== undefined) return JSON.parse(cursor) as EdgePlace;
    return { level: 0, sinceUs: this.#tables.cassandra.runtime.clock.nowMs() * 1_000 };
  }
}

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
