import { mapLimited } from "../../../common/concurrency.ts";
import { OBJECT_TOMBSTONE_KEEP_MS, SCRUB_CHECKS_AT_ONCE } from "../../../common/limits.ts";
import type { EdgeEnd, EntityKey, PageRequest } from "../objects.ts";
import type { EdgeCheck } from "../scrub.ts";
import type { CqlValue } from "./cassandra.ts";
import { pageBefore, readCursor, requestText } from "./cursor.ts";
import { INCOMING_KEY, incomingKey, OUTGOING_KEY, outgoingKey } from "./edges.ts";
import type { Tables } from "./tables.ts";

export type EdgeScrubPage = PageRequest & { readonly beforeUs: number };

/** An edge as it lies at one of its ends. */
interface EdgeRow {
  readonly from: EntityKey;
  readonly edge: EdgeEnd;
  readonly timeUs: number;
  /** Seconds to live, 0 for ever. */
  readonly ttl: number;
}

type Outcome = "sound" | "missing" | "superfluous";

/**
 * Compares `edges_out` and `edges_in`. A removal bears the time of what it removes, so what is written meanwhile stays. Of
 * an edge at its source it is certain that nobody repeats its write only where the source's death covers it, or once it is
 * older than deaths are remembered.
 */
export class EdgeScrub {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  fromSources(page: EdgeScrubPage): Promise<EdgeCheck> {
    const columns = "cid, id, type, to_cid, to_id, WRITETIME(value) AS time_us, TTL(value) AS ttl";
    return this.#page(`SELECT ${columns} FROM ${this.#tables.keyspace}.edges_out`, page, (row) => this.#atSource(row));
  }

  fromTargets(page: EdgeScrubPage): Promise<EdgeCheck> {
    const columns = "cid, id, type, to_cid, to_id, WRITETIME(present) AS time_us, TTL(present) AS ttl";
    return this.#page(`SELECT ${columns} FROM ${this.#tables.keyspace}.edges_in`, page, (row) => this.#atTarget(row));
  }

  async #page(
    query: string,
    { beforeUs, ...page }: EdgeScrubPage,
    check: (row: EdgeRow) => Promise<Outcome>,
  ): Promise<EdgeCheck> {
    const { cassandra, keyspace } = this.#tables;
    const request = requestText(keyspace, "scrub", query);
    const place = { size: page.limit, state: readCursor(request, page) };
    const { rows, state } = await cassandra.page({ query, params: [] }, place, cassandra.deadline());
    const old = rows.map(toRow).filter(({ timeUs }) => timeUs < beforeUs);
    const outcomes = await mapLimited(old, SCRUB_CHECKS_AT_ONCE, check);
    const count = (wanted: Outcome): number => outcomes.filter((outcome) => outcome === wanted).length;
    const checked = {
      looked: rows.length,
      missing: count("missing"),
      superfluous: count("superfluous"),
      examples: old.flatMap((row, at) => (outcomes[at] === "sound" ? [] : [`${outcomes[at]}: ${textOf(row)}`])),
    };
    return state === undefined ? checked : { ...checked, cursor: pageBefore([], request, state).cursor as string };
  }

  async #atSource(row: EdgeRow): Promise<Outcome> {
    const { cassandra } = this.#tables;
    const look = `SELECT birth, died FROM ${this.#tables.keyspace}.present WHERE cid = ? AND id = ?`;
    const [source] = await cassandra.read({ query: look, params: [row.from.cid, row.from.id] }, cassandra.deadline());
    const diedUs = Number(source?.died ?? 0);
    const forgottenUs = (cassandra.runtime.clock.nowMs() - OBJECT_TOMBSTONE_KEEP_MS) * 1_000;
    const lives = source !== undefined && source.birth !== null;
    if (row.timeUs <= diedUs || (!lives && row.timeUs < forgottenUs)) {
      await this.#remove("edges_in", row);
      await this.#remove("edges_out", row);
      return "superfluous";
    }
    if (!lives || (await this.#isThere("edges_in", row))) return "sound";
    await this.#addAtTarget(row);
    return "missing";
  }

  async #atTarget(row: EdgeRow): Promise<Outcome> {
    if (await this.#isThere("edges_out", row)) return "sound";
    await this.#remove("edges_in", row);
    return "superfluous";
  }

  async #isThere(table: EdgeTableName, row: EdgeRow): Promise<boolean> {
    const { where, params } = placeOf(table, row);
    const { cassandra, keyspace } = this.#tables;
    const query = `SELECT type FROM ${keyspace}.${table} WHERE ${where}`;
    return (await cassandra.read({ query, params }, cassandra.deadline())).length > 0;
  }

  /** It bears the present: whatever was removed of it is older. */
  async #addAtTarget(row: EdgeRow): Promise<void> {
    const { where, params } = placeOf("edges_in", row);
    const { cassandra, keyspace } = this.#tables;
    const query = `UPDATE ${keyspace}.edges_in USING TIMESTAMP ? AND TTL ? SET present = true WHERE ${where}`;
    await cassandra.write(
      [{ query, params: [BigInt(cassandra.nextTimeUs()), row.ttl, ...params] }],
      cassandra.deadline(),
    );
  }

  async #remove(table: EdgeTableName, row: EdgeRow): Promise<void> {
    const { where, params } = placeOf(table, row);
    const { cassandra, keyspace } = this.#tables;
    const query = `DELETE FROM ${keyspace}.${table} USING TIMESTAMP ? WHERE ${where}`;
    await cassandra.write([{ query, params: [BigInt(row.timeUs), ...params] }], cassandra.deadline());
  }
}

type EdgeTableName = "edges_in" | "edges_out";

function placeOf(table: EdgeTableName, { from, edge }: EdgeRow): { where: string; params: CqlValue[] } {
  if (table === "edges_out") return { where: OUTGOING_KEY, params: outgoingKey(from, edge) };
  return { where: INCOMING_KEY, params: incomingKey(from, edge) };
}

function toRow(row: Record<string, unknown>): EdgeRow {
  return {
    from: { cid: Number(row.cid), id: String(row.id) },
    edge: { type: String(row.type), to: { cid: Number(row.to_cid), id: String(row.to_id) } },
    timeUs: Number(row.time_us),
    ttl: Number(row.ttl ?? 0),
  };
}

function textOf({ from, edge: { type, to } }: EdgeRow): string {
  return `edge ${type} from ${from.cid}:${from.id} to ${to.cid}:${to.id}`;
}
