import { AppError, isAppError } from "../../../../common/errors.ts";
import { REPAIRS_PER_READ } from "../../../../common/limits.ts";
import type { TableRepair } from "../../scrub.ts";
import type { Cassandra } from "../cassandra/cassandra.ts";
import type { Deadline } from "../deadline.ts";
import { Repaired, type Repair } from "./repaired.ts";
import { DERIVED_TABLES } from "../schema.ts";

/**
 * Repairs as Cassandra 5 keeps them for 30 days in `system_distributed.parent_repair_history`. `repair_history` is not
 * used: it keeps only one row, of the last range, for a session of several ranges.
 */
export class RepairHistory {
  readonly #cassandra: Cassandra;

  constructor(cassandra: Cassandra) {
    this.#cassandra = cassandra;
  }

  /** Empty if each row is on one node only. `AppError("unavailable")` if the history cannot be read. */
  async tables(keyspace: string): Promise<readonly TableRepair[]> {
    const deadline = this.#cassandra.deadline();
    if ((await this.#replicas(keyspace, deadline)) <= 1) return [];
    const query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?";
    const names = await this.#cassandra.read({ query, params: [keyspace] }, deadline);
    const repaired = await this.#repaired(keyspace);
    const since = repaired.wholeSince(names.map((row) => String(row.table_name)));
    return [...since].map(([table, repairedMs]) => ({
      table,
      ...(repairedMs !== undefined && { repairedMs }),
      isDerived: DERIVED_TABLES.includes(table),
    }));
  }

  async #replicas(keyspace: string, deadline: Deadline): Promise<number> {
    const query = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?";
    const [row] = await this.#cassandra.read({ query, params: [keyspace] }, deadline);
    const replication = (row?.replication as ReadonlyMap<string, string> | undefined) ?? new Map<string, string>();
    return [...replication].reduce((sum, [name, value]) => sum + (name === "class" ? 0 : Number(value)), 0);
  }

  /** Each page has its own deadline: with many keyspaces, or repairs in pieces, the history is long. */
  async #repaired(keyspace: string): Promise<Repaired> {
    const query = `SELECT columnfamily_names, started_at, successful_ranges, options['hosts'] AS hosts, options['previewKind'] AS preview
      FROM system_distributed.parent_repair_history WHERE keyspace_name = ? ALLOW FILTERING`;
    const repaired = new Repaired();
    let state: string | undefined;
    do {
      const place = { size: REPAIRS_PER_READ, state };
      const page = await this.#cassandra
        .page({ query, params: [keyspace] }, place, this.#cassandra.deadline())
        .catch(unreadable);
      for (const repair of page.rows.flatMap(repairIn)) repaired.add(repair);
      state = page.state;
    } while (state !== undefined);
    return repaired;
  }
}

/** The account may lack the right to read the history, or the ring may have lost too many nodes. */
function unreadable(error: unknown): never {
  if (isAppError(error)) throw error;
  const reason = error instanceof Error ? error.message : String(error);
  throw new AppError("unavailable", `Cassandra's history of repairs cannot be read: ${reason}`, { cause: error });
}

/** Empty for a repair that runs or failed, that only compared, or that left replicas out. */
function repairIn(row: Record<string, unknown>): Repair[] {
  const isWhole = (row.hosts ?? "") === "" && (row.preview ?? "NONE") === "NONE";
  const ranges = (row.successful_ranges as readonly string[] | null) ?? [];
  if (!isWhole || ranges.length === 0 || !(row.started_at instanceof Date)) return [];
  const tables = (row.columnfamily_names as readonly string[] | null) ?? [];
  return [{ tables, startedMs: row.started_at.getTime(), ranges }];
}
