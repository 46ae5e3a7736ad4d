import type { EdgeEnd, EntityKey } from "../../objects.ts";
import type { Deadline } from "../deadline.ts";
import type { BucketLevels } from "../postings/bucket-levels.ts";
import { REMOVAL_KEPT_SECONDS, type Tables } from "../tables.ts";
import { EDGE_TABLES, edgeRow, edgesName, levelOfBucket, levelsUpTo, type PlacedEdge } from "./places.ts";
import { DROPPED, type EdgeRows, targetOf, topIn } from "./rows.ts";

const EDGES_PER_READ = 1_000;
/** Number of edges after which the removal of an entity removes no further ones; readers ignore those. */
const EDGES_ENDED_MAX = 100_000;

interface EndedEdge extends PlacedEdge {
  readonly levels: Set<number>;
}

/** Removes the rows of edges that were dropped, ended with their source, or were set again. */
export class EdgeRemoval {
  readonly #tables: Tables;
  readonly #levels: BucketLevels;
  readonly #rows: EdgeRows;

  constructor(tables: Tables, levels: BucketLevels, rows: EdgeRows) {
    this.#tables = tables;
    this.#levels = levels;
    this.#rows = rows;
  }

  async drop(from: EntityKey, edges: readonly EdgeEnd[], timeUs: number, deadline: Deadline): Promise<void> {
    if (edges.length === 0) return;
    const placed = edges.map((edge) => ({ from, edge }));
    await this.#dropOutgoing(placed, timeUs, deadline);
    await this.#dropIncoming(placed, timeUs, deadline);
  }

  /** Removes the edges of a source that was removed at this time. */
  async dropEnded(key: EntityKey, timeUs: number, deadline: Deadline): Promise<void> {
    const ended = await this.#endedBy(key, timeUs, deadline);
    // Incoming rows first, because the outgoing rows show where they are. Outgoing rows that arrive later have times
    // that the removal of the source covers.
    await this.#dropIncoming(ended, timeUs, deadline);
    const lying = ended.flatMap(({ levels, ...placed }) => [...levels].map((level) => edgeRow("out", placed, level)));
    await this.#rows.delete("out", lying, timeUs, deadline);
  }

  /** Removes former rows of an expiring edge at other levels, so that they do not reappear when it expires. */
  async supersede(placed: PlacedEdge, timeUs: number, deadline: Deadline): Promise<void> {
    const [top = 0] = await this.#rows.topsOf("out", [placed], deadline);
    if (top === 0) return;
    const rows = await this.#rows.of("out", placed, top, deadline);
    const former = rows.filter((row) => Number(row.time_us) < timeUs);
    await Promise.all(
      former.map((row) => {
        const place = edgeRow("out", placed, levelOfBucket(Number(row.bucket)));
        return this.#rows.delete("out", [place], Number(row.time_us), deadline);
      }),
    );
  }

  /** The edges that a removal covers, with their levels. */
  async #endedBy(from: EntityKey, timeUs: number, deadline: Deadline): Promise<readonly EndedEdge[]> {
    const { cassandra } = this.#tables;
    const stored = await this.#levels.stored([edgesName("out", from)], deadline);
    const ended = new Map<string, EndedEdge>();
    for (const level of levelsUpTo(topIn(stored, "out", from))) {
      const statement = this.#rows.lying({ side: "out", key: from, level, type: undefined });
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

  /**
   * With one level, the deletion also covers a write that arrives later. With several levels, a row at the highest
   * level marks the edge as dropped. Deletions at all levels would have the same effect, but every edge that ever
   * existed would leave a tombstone in the few buckets of the first level.
   */
  async #dropOutgoing(edges: readonly PlacedEdge[], timeUs: number, deadline: Deadline): Promise<void> {
    const { cassandra, keyspace } = this.#tables;
    const tops = await this.#rows.topsOf("out", edges, deadline);
    const query = `UPDATE ${keyspace}.${EDGE_TABLES.out} USING TIMESTAMP ? AND TTL ${REMOVAL_KEPT_SECONDS} SET value = ? WHERE `;
    await Promise.all(
      edges.map(async (placed, at) => {
        const top = tops[at] ?? 0;
        if (top === 0) return this.#rows.delete("out", [edgeRow("out", placed, 0)], timeUs, deadline);
        const { where, params } = edgeRow("out", placed, top);
        const mark = { query: query + where, params: [BigInt(timeUs), DROPPED, ...params] };
        await cassandra.write([mark], deadline);
        const below = (await this.#rows.levelsOf("out", placed, top, deadline)).filter((level) => level < top);
        await this.#rows.delete(
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
    const tops = await this.#rows.topsOf("in", edges, deadline);
    await Promise.all(
      edges.map(async (placed, at) => {
        const top = tops[at] ?? 0;
        const levels = top === 0 ? [0] : await this.#rows.levelsOf("in", placed, top, deadline);
        await this.#rows.delete(
          "in",
          levels.map((level) => edgeRow("in", placed, level)),
          timeUs,
          deadline,
        );
      }),
    );
  }
}
