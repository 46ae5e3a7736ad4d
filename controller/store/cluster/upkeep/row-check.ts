import { ROW_CHECK_PAGE_ROWS, ROW_CHECK_TURN_ROWS } from "../../../../common/limits.ts";
import { ENDED_CONTROLLERS, type RowsRead } from "../../scrub.ts";
import { readCursor, requestText, writeCursor } from "../cursor.ts";
import { RECORD_LIVES } from "../records/places.ts";
import type { Tables } from "../tables.ts";
import { GIVEN_UP, TokenScan } from "./token-scan.ts";

interface CheckedTable {
  readonly table: string;
  readonly columns: string;
  readonly partitionKey: string;
  readonly rows: number;
}

const index = (table: string, partitionKey: string, columns: string): CheckedTable => ({
  table,
  columns,
  partitionKey,
  rows: ROW_CHECK_PAGE_ROWS,
});
/** A table with rows whose values may be large. */
const content = (table: string, partitionKey: string, columns: string): CheckedTable => ({
  table,
  columns,
  partitionKey,
  rows: ROW_CHECK_TURN_ROWS,
});

/**
 * The tables in the order of a round. Contents are not included: a scrub reads them and compares them with their
 * digests.
 */
const TABLES: readonly CheckedTable[] = [
  content("present", "cid, id", "birth, last, attrs"),
  index("removed_cells", "cid, id, bucket", "name, time"),
  index("postings", "term, bucket", "id, time"),
  index("posting_levels", "term", "sample, present"),
  index("words", "cid, kind, beginning", "word, present"),
  content("versions", "cid, id, day", "time, value"),
  index("version_days", "cid, id", "day, present"),
  content("edges_out", "cid, id, bucket", "to_id, value"),
  index("edges_in", "to_cid, to_id, bucket", "id, present"),
  ...RECORD_LIVES.map(({ table }) => content(table, "cid, hour, shard", "id, value, terms")),
  index("record_hours", "cid", "hour, present"),
  index("contents", "content", "kind, size"),
];

interface Place {
  readonly table: number;
  /** Cursor of the table's scan; absent at its beginning. */
  readonly cursor?: string;
}

/**
 * See `ScrubStore.rows`. Cassandra verifies checksums of its files when it reads them, on each node that is asked. A
 * partition that it cannot read is damaged, and is reported by its token.
 */
export class RowCheck {
  readonly #tables: Tables;
  readonly #scans: readonly TokenScan[];

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#scans = TABLES.map((checked) => new TokenScan(tables, { ...checked, isTolerant: true }));
  }

  async rows({ cursor, isPassing = false }: { cursor?: string; isPassing?: boolean }): Promise<RowsRead> {
    const names = TABLES.map(({ table }) => table);
    const request = requestText(this.#tables.keyspace, "scrub", "rows", names);
    const text = readCursor(request, { limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    const place = text === undefined ? { table: 0 } : (JSON.parse(text) as Place);
    const { looked, damaged, next } = isPassing ? passed(place) : await this.#page(place);
    const behind = next === undefined ? { table: place.table + 1 } : { table: place.table, cursor: next };
    if (behind.table === TABLES.length) return { looked, damaged };
    return { looked, damaged, cursor: writeCursor(request, JSON.stringify(behind)) };
  }

  async #page({ table, cursor }: Place): Promise<Omit<RowsRead, "cursor"> & { readonly next: string | undefined }> {
    const { table: name, rows: limit } = TABLES[table]!;
    const request = requestText(this.#tables.keyspace, "scrub", "rows", name);
    const page = { limit, ...(cursor === undefined ? {} : { cursor }) };
    const { rows, unreadable, cursor: next } = await this.#scans[table]!.page(request, page);
    const reason = `Cassandra cannot read it: ${GIVEN_UP}`;
    const damaged = unreadable === undefined ? [] : [{ table: name, key: `token ${unreadable}`, reason }];
    return { looked: rows.length, damaged, next };
  }
}

function passed({ table }: Place): Omit<RowsRead, "cursor"> & { readonly next: undefined } {
  return { looked: 0, damaged: [{ table: TABLES[table]!.table, key: "", reason: ENDED_CONTROLLERS }], next: undefined };
}
