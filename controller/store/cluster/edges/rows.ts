import { EDGE_BUCKETS } from "../../../../common/limits.ts";
import type { Edge, EntityKey } from "../../objects.ts";
import type { Statement } from "../cassandra/cassandra.ts";
import type { Deadline } from "../deadline.ts";
import { plainBytes, type FoundEntity } from "../entities/entities.ts";
import { BucketLevels } from "../postings/bucket-levels.ts";
import type { Tables } from "../tables.ts";
import {
  EDGE_TABLES,
  edgeBuckets,
  type edgeRow,
  edgeRows,
  edgesName,
  levelOfBucket,
  nameOf,
  type EdgeSide,
  type PlacedEdge,
} from "./places.ts";

const COLUMNS = {
  out: "bucket, type, to_cid, to_id, value, WRITETIME(value) AS time_us",
  in: "bucket, type, cid, id, WRITETIME(present) AS time_us",
} as const;

/** The value of a row that marks a dropped edge. */
export const DROPPED = Uint8Array.of(2);

export type Row = Record<string, unknown>;

type EdgePlaceRow = ReturnType<typeof edgeRow>;

export function edgeLevels(tables: Tables): BucketLevels {
  return new BucketLevels(tables, { bucketsAtFirst: EDGE_BUCKETS });
}

/** Rows of edges in both tables, at all of their levels. */
export class EdgeRows {
  readonly #tables: Tables;
  readonly #levels: BucketLevels;

  constructor(tables: Tables, levels: BucketLevels) {
    this.#tables = tables;
    this.#levels = levels;
  }

  /** All rows of the edge at one end, up to the level `top`. */
  of(side: EdgeSide, placed: PlacedEdge, top: number, deadline: Deadline): Promise<readonly Row[]> {
    const { cassandra, keyspace } = this.#tables;
    const { where, params } = edgeRows(side, placed, top);
    return cassandra.read(
      { query: `SELECT ${COLUMNS[side]} FROM ${keyspace}.${EDGE_TABLES[side]} WHERE ${where}`, params },
      deadline,
    );
  }

  /** The highest level of the rows at this end of each edge. */
  async topsOf(side: EdgeSide, edges: readonly PlacedEdge[], deadline: Deadline): Promise<readonly number[]> {
    const names = edges.map((placed) => nameOf(side, placed));
    const levels = await this.#levels.stored([...new Set(names)], deadline);
    return names.map((name) => levels.get(name) ?? 0);
  }

  /** The levels at which the edge has rows. */
  async levelsOf(side: EdgeSide, placed: PlacedEdge, top: number, deadline: Deadline): Promise<readonly number[]> {
    const rows = await this.of(side, placed, top, deadline);
    return rows.map(({ bucket }) => levelOfBucket(Number(bucket)));
  }

  /** Selects the rows of an object's edges at one level, of all types or one. */
  lying({
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

  /** Removes rows that were written at `timeUs` or before. */
  async delete(side: EdgeSide, rows: readonly EdgePlaceRow[], timeUs: number, deadline: Deadline): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    await Promise.all(
      rows.map(({ where, params }) => {
        const query = `DELETE FROM ${keyspace}.${EDGE_TABLES[side]} USING TIMESTAMP ? WHERE ${where}`;
        return cassandra.write([{ query, params: [BigInt(timeUs), ...params] }], deadline);
      }),
    );
  }
}

/** The highest level of an object's edges, of the levels that were read. */
export function topIn(levels: ReadonlyMap<string, number>, side: EdgeSide, key: EntityKey): number {
  return levels.get(edgesName(side, key)) ?? 0;
}

/** The target of a row of `edges_out`. */
export function targetOf(row: Row): EntityKey {
  return { cid: Number(row.to_cid), id: String(row.to_id) };
}

/** The latest of all rows of an edge. At equal times a removal wins, as within one row. */
export function latestOf(rows: readonly Row[]): Row | undefined {
  return rows.reduce<Row | undefined>((latest, row) => {
    const later = latest === undefined ? 1 : Number(row.time_us) - Number(latest.time_us);
    return later > 0 || (later === 0 && isDropped(row)) ? row : latest;
  }, undefined);
}

/**
 * The edge of a row. `undefined` if there is none, if the removal of its source covers it, or if its change was not
 * completed.
 */
export function outgoingEdge(from: EntityKey, source: FoundEntity | undefined, row: Row | undefined): Edge | undefined {
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

/** The stored form of an edge's value, never empty. Its first byte is 0 if the edge has no value, otherwise 1. */
export function edgeValue(value: Uint8Array | undefined): Uint8Array {
  return value === undefined ? Uint8Array.of(0) : Buffer.concat([Uint8Array.of(1), value]);
}

function readEdgeValue(stored: Buffer): Uint8Array | undefined {
  return stored[0] === 0 ? undefined : plainBytes(stored.subarray(1));
}
