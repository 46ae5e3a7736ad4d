import { errorText } from "../../../common/errors.ts";
import type { Edge, EdgeEnd, EntityChange, EntityKey, Page, PageRequest } from "../objects.ts";
import type { CqlValue, Statement } from "./cassandra.ts";
import type { Deadline } from "./deadline.ts";
import { pageBefore, readCursor, requestText } from "./cursor.ts";
import { readEdgeValue } from "./entities.ts";
import { ttlSeconds, type Tables } from "./tables.ts";

const EDGES_PER_READ = 1_000;
/** When an entity is removed, this many derived rows are removed at once; readers detect the others. */
const EDGES_ENDED_MAX = 100_000;

/**
 * Edges lie with their source, in `entities`. `edges_in` is derived from that, by target: a row is added before the
 * edge and removed after it, so it may say too much, never too little, and what it says is checked at the source.
 */
export class EdgeTable {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
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
        ? found.rows.map((row) => outgoingEdge(key, row))
        : await this.#checked(key, found.rows, deadline);
    const items = edges.filter((edge) => edge !== undefined);
    return found.state === undefined ? { items } : pageBefore(items, request, found.state);
  }

  /** To be called before the change itself is written. */
  async announce(change: EntityChange, deadline: Deadline): Promise<void> {
    const ttl = ttlSeconds(this.#tables.cassandra.runtime.clock, change.expiresAtMs);
    const query = `UPDATE ${this.#tables.keyspace}.edges_in USING TIMESTAMP ? AND TTL ? SET present = true WHERE to_cid = ? AND to_id = ? AND type = ? AND cid = ? AND id = ?`;
    await this.#writeAll(
      (change.addEdges ?? []).map((edge) => ({
        query,
        params: [BigInt(change.timeUs), ttl, ...incomingKey(change.key, edge)],
      })),
      deadline,
    );
  }

  /** The edges that a change removes. Read before the change is written, while a removed entity still shows them. */
  async endedBy(change: EntityChange, deadline: Deadline): Promise<readonly EdgeEnd[]> {
    if (!change.death) return change.dropEdges ?? [];
    const ended: EdgeEnd[] = [...(change.dropEdges ?? [])];
    let state: string | undefined;
    do {
      const found = await this.#tables.cassandra.page(
        this.#outgoing(change.key, undefined),
        { size: EDGES_PER_READ, state },
        deadline,
      );
      const covered = found.rows.filter((row) => Number(row.time_us) <= change.timeUs);
      ended.push(
        ...covered.map((row) => ({ type: String(row.type), to: { cid: Number(row.to_cid), id: String(row.to_id) } })),
      );
      state = found.state;
    } while (state !== undefined && ended.length < EDGES_ENDED_MAX);
    return ended;
  }

  /**
   * To be called after the change is written. What is left over is found out by every reader, so a failure is only
   * logged.
   */
  async retract(change: EntityChange, ended: readonly EdgeEnd[], deadline: Deadline): Promise<void> {
    const query = `DELETE FROM ${this.#tables.keyspace}.edges_in USING TIMESTAMP ? WHERE to_cid = ? AND to_id = ? AND type = ? AND cid = ? AND id = ?`;
    const statements = ended.map((edge) => ({
      query,
      params: [BigInt(change.timeUs), ...incomingKey(change.key, edge)],
    }));
    try {
      await this.#writeAll(statements, deadline);
    } catch (error) {
      this.#tables.cassandra.runtime.log.warn(
        { reason: errorText(error), edges: statements.length },
        "derived rows of ended edges stay behind",
      );
    }
  }

  async #checked(
    target: EntityKey,
    rows: readonly Record<string, unknown>[],
    deadline: Deadline,
  ): Promise<(Edge | undefined)[]> {
    return Promise.all(
      rows.map(async (row) => {
        const from = { cid: Number(row.cid), id: String(row.id) };
        const statement = this.#outgoing(from, String(row.type), target);
        const [source] = await this.#tables.cassandra.read(statement, deadline);
        return source === undefined ? undefined : outgoingEdge(from, source);
      }),
    );
  }

  #outgoing(key: EntityKey, type: string | undefined, to?: EntityKey): Statement {
    const conditions = ["cid = ? AND id = ? AND section = 2 AND time = 0"];
    const params: CqlValue[] = [key.cid, key.id];
    if (type !== undefined) {
      conditions.push("type = ?");
      params.push(type);
    }
    if (to !== undefined) {
      conditions.push("to_cid = ? AND to_id = ?");
      params.push(to.cid, to.id);
    }
    const columns = "birth, type, to_cid, to_id, value, WRITETIME(value) AS time_us";
    return {
      query: `SELECT ${columns} FROM ${this.#tables.keyspace}.entities WHERE ${conditions.join(" AND ")}`,
      params,
    };
  }

  #incoming(key: EntityKey, type: string | undefined): Statement {
    const query = `SELECT type, cid, id FROM ${this.#tables.keyspace}.edges_in WHERE to_cid = ? AND to_id = ?`;
    if (type === undefined) return { query, params: [key.cid, key.id] };
    return { query: `${query} AND type = ?`, params: [key.cid, key.id, type] };
  }

  async #writeAll(statements: readonly Statement[], deadline: Deadline): Promise<void> {
    await Promise.all(statements.map((statement) => this.#tables.cassandra.write([statement], deadline)));
  }
}

function incomingKey(from: EntityKey, edge: EdgeEnd): CqlValue[] {
  return [edge.to.cid, edge.to.id, edge.type, from.cid, from.id];
}

/** Undefined when the source is dead. A partition without edges answers its static columns alone. */
function outgoingEdge(from: EntityKey, row: Record<string, unknown>): Edge | undefined {
  if (typeof row.birth !== "bigint" || !Buffer.isBuffer(row.value)) return undefined;
  const value = readEdgeValue(row.value);
  return {
    from,
    type: String(row.type),
    to: { cid: Number(row.to_cid), id: String(row.to_id) },
    timeUs: Number(row.time_us),
    ...(value === undefined ? {} : { value }),
  };
}
