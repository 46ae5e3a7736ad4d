import { AppError, isAppError } from "../../../common/errors.ts";
import { REPAIRS_READ_MAX, REPAIRS_PER_READ } from "../../../common/limits.ts";
import type { TableRepair } from "../scrub.ts";
import type { Cassandra } from "./cassandra.ts";
import type { Deadline } from "./deadline.ts";
import { DERIVED_TABLES } from "./schema.ts";

const OLDEST = -(2n ** 63n);
const NEWEST = 2n ** 63n - 1n;
const RANGE = /^\((-?\d+),\s*(-?\d+)\]$/;

/** Tokens above `after` up to `to`; where that is not greater, over the end of the ring. */
export interface TokenRange {
  readonly after: bigint;
  readonly to: bigint;
}

export interface Repair {
  readonly tables: readonly string[];
  readonly startedMs: number;
  /** Those that were repaired to their end. */
  readonly ranges: readonly TokenRange[];
}

/**
 * Repairs as Cassandra 5 keeps them for 30 days in `system_distributed.parent_repair_history`. Not in `repair_history`:
 * a session of several ranges keeps one row there, of its last range.
 */
export class RepairHistory {
  readonly #cassandra: Cassandra;

  constructor(cassandra: Cassandra) {
    this.#cassandra = cassandra;
  }

  /** None where each row lies on one node. `AppError("unavailable")` where the history cannot be read. */
  async tables(keyspace: string): Promise<readonly TableRepair[]> {
    const deadline = this.#cassandra.deadline();
    if ((await this.#replicas(keyspace, deadline)) <= 1) return [];
    const query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?";
    const names = await this.#cassandra.read({ query, params: [keyspace] }, deadline);
    const repairs = await this.#repairs(keyspace, deadline);
    return names.map((row) => {
      const table = String(row.table_name);
      const startedMs = wholeSince(repairs.filter(({ tables }) => tables.includes(table)));
      const repairedMs = startedMs === undefined ? {} : { repairedMs: startedMs };
      return { table, ...repairedMs, isDerived: DERIVED_TABLES.includes(table) };
    });
  }

  async #replicas(keyspace: string, deadline: Deadline): Promise<number> {
    const query = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?";
    const [row] = await this.#cassandra.read({ query, params: [keyspace] }, deadline);
    const replication = (row?.replication as ReadonlyMap<string, string> | undefined) ?? new Map<string, string>();
    return [...replication].reduce((sum, [name, value]) => sum + (name === "class" ? 0 : Number(value)), 0);
  }

  async #repairs(keyspace: string, deadline: Deadline): Promise<readonly Repair[]> {
    const query =
      "SELECT columnfamily_names, started_at, successful_ranges, options FROM system_distributed.parent_repair_history WHERE keyspace_name = ? ALLOW FILTERING";
    const repairs: Repair[] = [];
    let state: string | undefined;
    do {
      const place = { size: REPAIRS_PER_READ, state };
      const page = await this.#cassandra.page({ query, params: [keyspace] }, place, deadline).catch(unreadable);
      repairs.push(...page.rows.flatMap(repairIn));
      state = page.state;
      if (repairs.length > REPAIRS_READ_MAX)
        throw new AppError(
          "too_large",
          `Cassandra's history has more than ${REPAIRS_READ_MAX} repairs of ${keyspace}.`,
        );
    } while (state !== undefined);
    return repairs;
  }
}

/** The account may lack the right to read it, and a ring that has lost too many nodes tells nothing. */
function unreadable(error: unknown): never {
  if (isAppError(error)) throw error;
  const reason = error instanceof Error ? error.message : String(error);
  throw new AppError("unavailable", `Cassandra's history of repairs cannot be read: ${reason}`, { cause: error });
}

/** None for one that is under way or failed, that only compared, or that left replicas out. */
function repairIn(row: Record<string, unknown>): Repair[] {
  const options = (row.options as ReadonlyMap<string, string> | null) ?? new Map<string, string>();
  const isWhole = (options.get("hosts") ?? "") === "" && (options.get("previewKind") ?? "NONE") === "NONE";
  const ranges = ((row.successful_ranges as readonly string[] | null) ?? []).flatMap(rangeIn);
  if (!isWhole || ranges.length === 0 || !(row.started_at instanceof Date)) return [];
  const tables = (row.columnfamily_names as readonly string[] | null) ?? [];
  return [{ tables, startedMs: row.started_at.getTime(), ranges }];
}

function rangeIn(text: string): TokenRange[] {
  const [, after, to] = RANGE.exec(text) ?? [];
  return after === undefined || to === undefined ? [] : [{ after: BigInt(after), to: BigInt(to) }];
}

/** When every token had been repaired by one of these since; undefined where some was by none. */
export function wholeSince(repairs: readonly Repair[]): number | undefined {
  const newestFirst = [...repairs].sort((a, b) => b.startedMs - a.startedMs);
  // Nothing has the least token of all.
  let left: readonly TokenRange[] = [{ after: OLDEST, to: NEWEST }];
  for (const { startedMs, ranges } of newestFirst) {
    for (const range of ranges.flatMap(unwrapped)) left = left.flatMap((part) => without(part, range));
    if (left.length === 0) return startedMs;
  }
  return undefined;
}

function unwrapped({ after, to }: TokenRange): TokenRange[] {
  if (after < to) return [{ after, to }];
  return [
    { after, to: NEWEST },
    { after: OLDEST, to },
  ].filter((part) => part.after < part.to);
}

function without(part: TokenRange, taken: TokenRange): TokenRange[] {
  if (taken.to <= part.after || taken.after >= part.to) return [part];
  return [
    { after: part.after, to: taken.after },
    { after: taken.to, to: part.to },
  ].filter(({ after, to }) => after < to);
}
