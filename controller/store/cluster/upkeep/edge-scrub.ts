import { mapLimited } from "../../../../common/concurrency.ts";
import { OBJECT_TOMBSTONE_KEEP_MS, SCRUB_CHECKS_AT_ONCE } from "../../../../common/limits.ts";
import type { PageRequest } from "../../objects.ts";
import type { EdgeCheck } from "../../scrub.ts";
import { requestText } from "../cursor.ts";
import type { BucketLevels } from "../postings/bucket-levels.ts";
import {
  EDGE_TABLES,
  edgeRow,
  edgeRows,
  levelOfBucket,
  levelsUpTo,
  nameOf,
  type EdgeSide,
  type PlacedEdge,
} from "../edges/places.ts";
import { edgeLevels, isDropped, latestOf } from "../edges/rows.ts";
import type { Tables } from "../tables.ts";
import { TokenScan } from "./token-scan.ts";

export type EdgeScrubPage = PageRequest & { readonly beforeUs: number };

/** An edge as stored at one of its ends. */
interface EdgeRow extends PlacedEdge {
  readonly level: number;
  readonly timeUs: number;
  /** Seconds to live; 0: forever. */
  readonly ttl: number;
}

type Outcome = "sound" | "missing" | "superfluous";

/**
 * Compares `edges_out` and `edges_in`. A removal has the time of the removed row, so anything written in the meantime
 * stays. An edge at its source is removed only in two cases: the death of the source covers it, or the source does not
 * live and the edge is older than all remembered deaths. In both cases a repetition of its write has no effect.
 */
export class EdgeScrub {
  readonly #tables: Tables;
  readonly #levels: BucketLevels;
  readonly #sources: TokenScan;
  readonly #targets: TokenScan;

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#levels = edgeLevels(tables);
    const columns = "bucket, cid, id, type, to_cid, to_id";
    this.#sources = new TokenScan(tables, {
      table: EDGE_TABLES.out,
      columns: `${columns}, value, WRITETIME(value) AS time_us, TTL(value) AS ttl`,
      partitionKey: "cid, id, bucket",
    });
    this.#targets = new TokenScan(tables, {
      table: EDGE_TABLES.in,
      columns: `${columns}, WRITETIME(present) AS time_us, TTL(present) AS ttl`,
      partitionKey: "to_cid, to_id, bucket",
    });
  }

  fromSources(page: EdgeScrubPage): Promise<EdgeCheck> {
    return this.#page(this.#sources, page, (row) => this.#atSource(row));
  }

  fromTargets(page: EdgeScrubPage): Promise<EdgeCheck> {
    return this.#page(this.#targets, page, (row) => this.#atTarget(row));
  }

  async #page(
    scan: TokenScan,
    { beforeUs, ...page }: EdgeScrubPage,
    check: (row: EdgeRow) => Promise<Outcome>,
  ): Promise<EdgeCheck> {
    const side = scan === this.#sources ? "sources" : "targets";
    const request = requestText(this.#tables.keyspace, "scrub", side);
    const { rows, cursor } = await scan.page(request, page);
    const old = rows
      .filter((row) => !isDropped(row))
      .map(toRow)
      .filter(({ timeUs }) => timeUs < beforeUs);
    const outcomes = await mapLimited(old, SCRUB_CHECKS_AT_ONCE, check);
    const count = (wanted: Outcome): number => outcomes.filter((outcome) => outcome === wanted).length;
    const checked = {
      looked: rows.length,
      missing: count("missing"),
      superfluous: count("superfluous"),
      examples: old.flatMap((row, at) => (outcomes[at] === "sound" ? [] : [`${outcomes[at]}: ${textOf(row)}`])),
    };
    return cursor === undefined ? checked : { ...checked, cursor };
  }

  async #atSource(row: EdgeRow): Promise<Outcome> {
    const { cassandra } = this.#tables;
    const look = `SELECT birth, died FROM ${this.#tables.keyspace}.present WHERE cid = ? AND id = ?`;
    const [source] = await cassandra.read({ query: look, params: [row.from.cid, row.from.id] }, cassandra.deadline());
    const diedUs = Number(source?.died ?? 0);
    const forgottenUs = (cassandra.runtime.clock.nowMs() - OBJECT_TOMBSTONE_KEEP_MS) * 1_000;
    const lives = source !== undefined && source.birth !== null;
    if (row.timeUs <= diedUs || (!lives && row.timeUs < forgottenUs)) {
      for (const level of levelsUpTo(await this.#top("in", row))) await this.#remove("in", { ...row, level });
      await this.#remove("out", row);
      return "superfluous";
    }
    if (!lives || (await this.#isThere("in", row))) return "sound";
    await this.#addAtTarget(row);
    return "missing";
  }

  async #atTarget(row: EdgeRow): Promise<Outcome> {
    if (await this.#isThere("out", row)) return "sound";
    await this.#remove("in", row);
    return "superfluous";
  }

  /** True if the edge exists at that end, at any level. */
  async #isThere(side: EdgeSide, row: EdgeRow): Promise<boolean> {
    const { cassandra, keyspace } = this.#tables;
    const { where, params } = edgeRows(side, row, await this.#top(side, row));
    const value = side === "out" ? "value, WRITETIME(value)" : "WRITETIME(present)";
    const query = `SELECT ${value} AS time_us FROM ${keyspace}.${EDGE_TABLES[side]} WHERE ${where}`;
    const standing = latestOf(await cassandra.read({ query, params }, cassandra.deadline()));
    return standing !== undefined && !isDropped(standing);
  }

  /** The highest level of the edges at that end. */
  async #top(side: EdgeSide, placed: PlacedEdge): Promise<number> {
    const name = nameOf(side, placed);
    return (await this.#levels.stored([name], this.#tables.cassandra.deadline())).get(name) ?? 0;
  }

  /** Writes with the current time, so that it wins over older removals. */
  async #addAtTarget(row: EdgeRow): Promise<void> {
    const { where, params } = edgeRow("in", row, 0);
    const { cassandra, keyspace } = this.#tables;
    const query = `UPDATE ${keyspace}.edges_in USING TIMESTAMP ? AND TTL ? SET present = true WHERE ${where}`;
    await cassandra.write(
      [{ query, params: [BigInt(cassandra.nextTimeUs()), row.ttl, ...params] }],
      cassandra.deadline(),
    );
  }

  /** Removes the row at `side` that is stored at the level of this one. */
  async #remove(side: EdgeSide, row: EdgeRow): Promise<void> {
    const { where, params } = edgeRow(side, row, row.level);
    const { cassandra, keyspace } = this.#tables;
    const query = `DELETE FROM ${keyspace}.${EDGE_TABLES[side]} USING TIMESTAMP ? WHERE ${where}`;
    await cassandra.write([{ query, params: [BigInt(row.timeUs), ...params] }], cassandra.deadline());
  }
}

function toRow(row: Record<string, unknown>): EdgeRow {
  return {
    level: levelOfBucket(Number(row.bucket)),
    from: { cid: Number(row.cid), id: String(row.id) },
    edge: { type: String(row.type), to: { cid: Number(row.to_cid), id: String(row.to_id) } },
    timeUs: Number(row.time_us),
    ttl: Number(row.ttl ?? 0),
  };
}

function textOf({ from, edge: { type, to } }: EdgeRow): string {
  return `edge ${type} from ${from.cid}:${from.id} to ${to.cid}:${to.id}`;
}
