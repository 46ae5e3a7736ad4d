import type { types } from "cassandra-driver";
import { AppError } from "../../../common/errors.ts";
import { SCAN_READS_PER_PAGE } from "../../../common/limits.ts";
import type { PageRequest } from "../objects.ts";
import type { PageOfRows, Statement } from "./cassandra.ts";
import { readCursor, writeCursor, type RequestText } from "./cursor.ts";
import type { Tables } from "./tables.ts";

const LEAST = -(2n ** 63n);
const GREATEST = 2n ** 63n - 1n;
/** Where a read was given up, the next one takes so much less of the ring, and of rows. */
const LESS = 16n;

/** Why Cassandra gives up the smallest read there is. */
export const GIVEN_UP = "it is damaged on the disk of a node, or has too many removals";

export interface ScannedTable {
  readonly table: string;
  /** What to select of each row. */
  readonly columns: string;
  /** Such as `cid, id`. */
  readonly partitionKey: string;
  /** Whether a partition has one row at most. Then none comes twice. */
  readonly hasSingleRows?: boolean;
  /** Whether to tell each partition once, and nothing of its rows. */
  readonly isDistinct?: boolean;
  /** Whether a partition that cannot be read is told in its page and passed by; else it is an error. */
  readonly isTolerant?: boolean;
}

export interface ScannedPage {
  readonly rows: readonly types.Row[];
  /** The token of a partition that cannot be read; the scan goes on behind it. */
  readonly unreadable?: string;
  readonly cursor?: string;
}

/** Where to go on. Tokens as texts: they do not fit into a number. */
interface Place {
  /** All up to this token was read. */
  readonly after: string;
  /** How much of the ring is read at once from there. */
  readonly span: string;
  /** How many rows a read asks for. */
  readonly rows: number;
  /** Inside that range: the driver's own mark, and the token of the row before it. */
  readonly inside?: { readonly state: string; readonly token: string };
}

/**
 * A table from its first token to its last. A node gives up a read that passes 100,000 marks of removals, and a page of
 * a whole table may pass any number of them: it is read in ranges of tokens, which get smaller where that happens and
 * larger where it does not. Where one is given up in the middle of a partition, rows of that come again.
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

  /** May be short, or empty, before the end. */
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
  // Nothing has the least token.
  return { after: String(LEAST), span: String(GREATEST - LEAST), rows };
}

function endOf({ after, span }: Place): bigint {
  const end = BigInt(after) + BigInt(span);
  return end < GREATEST ? end : GREATEST;
}

/** Undefined at the end. */
function following(place: Place, { rows, state }: PageOfRows, limit: number): Place | undefined {
  const more = Math.min(limit, 2 * place.rows);
  if (state !== undefined) {
    const token = String(rows.at(-1)?.scanned_token ?? place.inside?.token ?? place.after);
    return { ...place, rows: more, inside: { state, token } };
  }
  const end = endOf(place);
  return end === GREATEST ? undefined : { after: String(end), span: String(2n * BigInt(place.span)), rows: more };
}

/** From the last partition that was read on, or behind it, as a mark of the driver belongs to its range. */
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
