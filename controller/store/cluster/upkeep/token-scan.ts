import type { types } from "cassandra-driver";
import { AppError } from "../../../../common/errors.ts";
import { SCAN_READS_PER_PAGE } from "../../../../common/limits.ts";
import type { PageRequest } from "../../objects.ts";
import type { PageOfRows, Statement } from "../cassandra/cassandra.ts";
import { readCursor, writeCursor, type RequestText } from "../cursor.ts";
import type { Tables } from "../tables.ts";

const LEAST = -(2n ** 63n);
const GREATEST = 2n ** 63n - 1n;
/** Factor by which the next read is smaller after an aborted one, in tokens and in rows. */
const LESS = 16n;

/** Why Cassandra aborts even the smallest possible read. */
export const GIVEN_UP = "it is damaged on the disk of a node, or has too many removals";

export interface ScannedTable {
  readonly table: string;
  /** Columns to select of each row. */
  readonly columns: string;
  /** For example `cid, id`. */
  readonly partitionKey: string;
  /** True if a partition has at most one row. Then no row comes twice. */
  readonly hasSingleRows?: boolean;
  /** True to return each partition once, without its rows. */
  readonly isDistinct?: boolean;
  /** True if an unreadable partition is reported in its page and skipped; otherwise it is an error. */
  readonly isTolerant?: boolean;
}

export interface ScannedPage {
  readonly rows: readonly types.Row[];
  /** The token of an unreadable partition; the scan continues after it. */
  readonly unreadable?: string;
  readonly cursor?: string;
}

/** The position to continue from. Tokens are texts because they do not fit into a number. */
interface Place {
  /** All partitions up to this token were read. */
  readonly after: string;
  /** Size of the next range of tokens to read. */
  readonly span: string;
  /** Rows per read. */
  readonly rows: number;
  /** Position inside that range: the driver's state, and the token of the row before it. */
  readonly inside?: { readonly state: string; readonly token: string };
}

/**
 * Scans a table from its first token to its last. A node aborts a read that passes 100,000 tombstones, and a page of a
 * whole table may pass any number of them. So the table is read in ranges of tokens, which become smaller after an
 * aborted read and larger otherwise. If a read is aborted in the middle of a partition, rows of that partition come
 * again.
 */
export class TokenScan {
  readonly #tables: Tables;
  readonly #select: string;
  readonly #isAfterRow: boolean;
  readonly #isTolerant: boolean;

  constructor(tables: Tables, scanned: ScannedTable) {
    const { table, columns, partitionKey, hasSingleRows, isDistinct = false, isTolerant = false } = scanned;
    this.#tables = tables;
    this.#isTolerant = isTolerant;
    this.#isAfterRow = hasSingleRows ?? isDistinct;
    const token = `token(${partitionKey})`;
    const what = `${isDistinct ? "DISTINCT " : ""}${columns}, ${token} AS scanned_token`;
    this.#select = `SELECT ${what} FROM ${tables.keyspace}.${table} WHERE ${token} > ? AND ${token} <= ?`;
  }

  /** A page may be short or empty before the end. */
  async page(request: RequestText, page: PageRequest): Promise<ScannedPage> {
    const text = readCursor(request, page);
    const { cassandra } = this.#tables;
    let place = text === undefined ? beginning(page.limit) : (JSON.parse(text) as Place);
    for (let reads = 0; reads < SCAN_READS_PER_PAGE; reads += 1) {
      const at = { size: place.rows, state: place.inside?.state };
      const found = await cassandra.tryPage(this.#statement(place), at, cassandra.deadline());
      if (found === undefined && isLeast(place)) return this.#unreadable(place, request);
      const next = found === undefined ? less(place, this.#isAfterRow) : following(place, found, page.limit);
      const rows = found?.rows ?? [];
      if (next === undefined) return { rows };
      if (rows.length > 0) return { rows, cursor: writeCursor(request, JSON.stringify(next)) };
      place = next;
    }
    return { rows: [], cursor: writeCursor(request, JSON.stringify(place)) };
  }

  #unreadable(place: Place, request: RequestText): ScannedPage {
    const token = endOf(place);
    if (!this.#isTolerant)
      throw new AppError("unavailable", `Cassandra gives up reading what has the token ${token}: ${GIVEN_UP}.`);
    const page = { rows: [], unreadable: String(token) };
    if (token === GREATEST) return page;
    return { ...page, cursor: writeCursor(request, JSON.stringify({ after: String(token), span: "1", rows: 1 })) };
  }

  #statement(place: Place): Statement {
    return { query: this.#select, params: [BigInt(place.after), endOf(place)] };
  }
}

function beginning(rows: number): Place {
  // No data has the least token.
  return { after: String(LEAST), span: String(GREATEST - LEAST), rows };
}

function endOf({ after, span }: Place): bigint {
  const end = BigInt(after) + BigInt(span);
  return end < GREATEST ? end : GREATEST;
}

/** `undefined` at the end. */
function following(place: Place, { rows, state }: PageOfRows, limit: number): Place | undefined {
  const more = Math.min(limit, 2 * place.rows);
  if (state !== undefined) {
    const token = String(rows.at(-1)?.scanned_token ?? place.inside?.token ?? place.after);
    return { ...place, rows: more, inside: { state, token } };
  }
  const end = endOf(place);
  return end === GREATEST ? undefined : { after: String(end), span: String(2n * BigInt(place.span)), rows: more };
}

/**
 * A smaller range from the last partition read, or after it. The driver's state is dropped, because it belongs to the
 * old range.
 */
function less({ after, span, rows, inside }: Place, isAfterRow: boolean): Place {
  const from = inside === undefined ? BigInt(after) : BigInt(inside.token) - (isAfterRow ? 0n : 1n);
  return {
    after: String(from > BigInt(after) ? from : after),
    span: String(BigInt(span) / LESS || 1n),
    rows: Math.max(1, Math.floor(rows / Number(LESS))),
  };
}

function isLeast({ span, rows }: Place): boolean {
  return BigInt(span) === 1n && rows === 1;
}
