import { EDGE_BUCKETS } from "../../../../common/limits.ts";
import type { EdgeEnd, EntityKey } from "../../objects.ts";
import type { CqlValue } from "../cassandra/cassandra.ts";
import { hashOf } from "../postings/hashes.ts";

/** Edges are stored at both of their ends. */
export type EdgeSide = "out" | "in";

export const EDGE_TABLES = { out: "edges_out", in: "edges_in" } as const;
/** Conditions that select one row, with the parameters of `edgeRow`. */
const EDGE_ROWS = {
  out: "cid = ? AND id = ? AND bucket = ? AND type = ? AND to_cid = ? AND to_id = ?",
  in: "to_cid = ? AND to_id = ? AND bucket = ? AND type = ? AND cid = ? AND id = ?",
} as const;

export interface PlacedEdge {
  readonly from: EntityKey;
  readonly edge: EdgeEnd;
}

/** The edge's row at one end, in the bucket of a level. */
export function edgeRow(side: EdgeSide, placed: PlacedEdge, level: number): { where: string; params: CqlValue[] } {
  const [near, far] = endsOf(side, placed);
  const bucket = edgeBucket(edgeHash(side, placed), level);
  return { where: EDGE_ROWS[side], params: [near.cid, near.id, bucket, placed.edge.type, far.cid, far.id] };
}

/** All possible rows of the edge at one end: one per level up to `top`. */
export function edgeRows(side: EdgeSide, placed: PlacedEdge, top: number): { where: string; params: CqlValue[] } {
  const [near, far] = endsOf(side, placed);
  const hash = edgeHash(side, placed);
  const buckets = levelsUpTo(top).map((level) => edgeBucket(hash, level));
  return {
    where: EDGE_ROWS[side].replace("bucket = ?", `bucket IN (${buckets.map(() => "?").join(", ")})`),
    params: [near.cid, near.id, ...buckets, placed.edge.type, far.cid, far.id],
  };
}

/** Name of an object's edges in `BucketLevels`. No term begins with `>` or `<`. */
export function edgesName(side: EdgeSide, { cid, id }: EntityKey): string {
  return `${side === "out" ? ">" : "<"}${cid}:${id}`;
}

/** `edgesName` of the object at this end of the edge. */
export function nameOf(side: EdgeSide, placed: PlacedEdge): string {
  return edgesName(side, endsOf(side, placed)[0]);
}

export function edgeHash(side: EdgeSide, placed: PlacedEdge): number {
  const [, { cid, id }] = endsOf(side, placed);
  return hashOf(placed.edge.type, cid, id);
}

export function levelsUpTo(top: number): readonly number[] {
  return Array.from({ length: top + 1 }, (_, level) => level);
}

/** The buckets of one level in their order. */
export function edgeBuckets(level: number): readonly number[] {
  const first = firstBucket(level);
  return Array.from({ length: EDGE_BUCKETS * 2 ** level }, (_, at) => first + at);
}

export function levelOfBucket(bucket: number): number {
  return Math.floor(Math.log2(bucket / EDGE_BUCKETS + 1));
}

function edgeBucket(hash: number, level: number): number {
  return firstBucket(level) + (hash % (EDGE_BUCKETS * 2 ** level));
}

function firstBucket(level: number): number {
  return EDGE_BUCKETS * (2 ** level - 1);
}

/** The end at which the row is stored, then the other end. */
function endsOf(side: EdgeSide, { from, edge }: PlacedEdge): readonly [EntityKey, EntityKey] {
  return side === "out" ? [from, edge.to] : [edge.to, from];
}
