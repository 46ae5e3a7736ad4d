import { errorText, isAppError } from "../../../../common/errors.ts";
import { ROW_CHECK_PAGE_MAX_BYTES, ROW_CHECK_TURN_ROWS } from "../../../../common/limits.ts";
import { ENDED_CONTROLLERS, type DamagedRow, type RowsRead } from "../../scrub.ts";
import { shownKey, type CheckedRow } from "../environment/checked-table.ts";
import { Cursors } from "../cursor.ts";
import {
  isCheckedTable,
  isPlainRow,
  type CheckedTableName,
  type Environment,
  type IndexTableName,
} from "../environment/environment.ts";
import { concat, following } from "../bytes/keys.ts";
import { parseEntityKey } from "../bytes/object-keys.ts";
import { contradiction, indexContradiction, termContradiction } from "./row-contradictions.ts";
import { NO_CHECKSUM, rowFault } from "./row-faults.ts";
import { FIRST_KEY, placeOf, rowsOfTerms } from "../entities/term-rows.ts";

/** The tables in the order of a round. */
const TABLES = [
  "meta",
  "kv",
  "kvlog",
  "kvleases",
  "leasekeys",
  "objects",
  "terms",
  "numbers",
  "history",
  "edgesOut",
  "edgesIn",
  "records",
  "recordTerms",
  "expiry",
  "blobs",
  "marks",
  "streams",
  "smallContents",
] as const satisfies readonly (CheckedTableName | IndexTableName | "terms")[];
type Table = (typeof TABLES)[number];

const HEAD_BYTES = 2;

/**
 * Position of a round: after the key `after` of the table; absent: at its beginning. `isWhole`: nothing has been
 * skipped since the beginning of the round.
 */
interface Place {
  readonly table: number;
  readonly isWhole: boolean;
  readonly after: Uint8Array | undefined;
}

/**
 * The walk of one table by this process. If there were no writes in the meantime, its rows are compared with LMDB's
 * count.
 */
interface Counted {
  readonly table: Table;
  readonly writes: number;
  rows: number;
}

/** A part of a table. `last` is its last key; absent at the end of the table. */
interface Part {
  readonly looked: number;
  readonly damaged: readonly DamagedRow[];
  readonly last?: Uint8Array;
}

export interface RowCheckParts {
  readonly env: Environment;
  /** Identifies this store in cursors. */
  readonly place: string;
}

/**
 * See `ScrubStore.rows`. A turn reads a limited number of rows of one table without interruption. So rows of two tables
 * are compared in one snapshot.
 */
export class RowCheck {
  readonly #env: Environment;
  readonly #cursors: Cursors;
  #counted: Counted | undefined;

  constructor({ env, place }: RowCheckParts) {
    this.#env = env;
    this.#cursors = new Cursors([place, "rows", TABLES]);
  }

  async rows({ cursor, isPassing = false }: { cursor?: string; isPassing?: boolean }): Promise<RowsRead> {
    const place = this.#read(cursor);
    const isAllChecked = this.#env.isAllChecked;
    if (isPassing) return this.#pass(place, ENDED_CONTROLLERS);
    try {
      const part = this.#part(place, isAllChecked);
      if (!isAllChecked) await this.#addChecksums(TABLES[place.table]!, place, part);
      return await this.#next(part, place);
    } catch (error) {
      if (isAppError(error)) throw error;
      return this.#pass(place, `it cannot be read on from here: ${errorText(error)}`);
    }
  }

  /** Skips the rest of the table. */
  #pass(place: Place, reason: string): Promise<RowsRead> {
    const table = TABLES[place.table]!;
    const key = place.after === undefined ? "" : keyText(table, place.after);
    return this.#next({ looked: 0, damaged: [{ table, key, reason }] }, { ...place, isWhole: false });
  }

  #part(place: Place, isAllChecked: boolean): Part {
    const name = TABLES[place.table]!;
    if (name === "terms") return this.#terms(place);
    return isCheckedTable(name) ? this.#values(name, place, isAllChecked) : this.#entries(name, place);
  }

  #values(table: CheckedTableName, place: Place, isAllChecked: boolean): Part {
    const tables = this.#env.read();
    const fault = (row: CheckedRow): string | undefined => {
      const isLacking = row.isSound === undefined && isAllChecked && !isPlainRow(table, row.key);
      return isLacking ? NO_CHECKSUM : (rowFault(table, row) ?? contradiction(tables, table, row));
    };
    this.#begin(table, place);
    const part = partOf(tables[table].rows(rangeOf(place)), (row) => damagedRow(table, row.key, fault(row)));
    return { ...part, damaged: [...part.damaged, ...this.#lacking(table, part)] };
  }

  #entries(table: IndexTableName, place: Place): Part {
    const tables = this.#env.read();
    return partOf(tables[table].getRange(rangeOf(place)), ({ key, value }) =>
      damagedRow(table, key, indexContradiction(tables, table, { key, value })),
    );
  }

  #terms({ after }: Place): Part {
    const tables = this.#env.read();
    const rows = rowsOfTerms(tables.terms, after);
    const named = function* (): Iterable<{ key: Uint8Array; value: Uint8Array; term: string }> {
      for (const { term, bytes } of rows) yield { key: placeOf(term, bytes), value: bytes, term };
    };
    return partOf(named(), ({ value, term }) =>
      damagedRow("terms", Buffer.from(term), termContradiction(tables, term, value)),
    );
  }

  #begin(table: CheckedTableName, { after }: Place): void {
    if (after !== undefined) return;
    this.#counted = this.#env.isQuiet ? { table, writes: this.#env.tables[table].writes, rows: 0 } : undefined;
  }

  /** Reports a table in which the walk found fewer or more rows than LMDB counts. */
  #lacking(table: CheckedTableName, { looked, last }: Part): readonly DamagedRow[] {
    const counted = this.#counted?.table === table ? this.#counted : undefined;
    if (counted === undefined) return [];
    counted.rows += looked;
    if (last !== undefined || counted.writes !== this.#env.tables[table].writes) return [];
    const all = this.#env.tables[table].entryCount;
    if (all === counted.rows) return [];
    return [{ table, key: "", reason: `${counted.rows} of ${all} rows can be read` }];
  }

  /** Idempotent. Adds checksums to the values as they are at that time. */
  async #addChecksums(name: Table, place: Place, { last, looked }: Part): Promise<void> {
    if (!isCheckedTable(name) || looked === 0) return;
    await this.#env.write(() => {
      const table = this.#env.tables[name];
      const end = last === undefined ? {} : { end: following(last) };
      const rows = [...table.rows({ ...rangeOf(place), ...end })].filter(
        (row) => row.isSound === undefined && !isPlainRow(name, row.key) && rowFault(name, row) === undefined,
      );
      for (const { key, value } of rows) table.put(key, value);
    });
  }

  async #next({ looked, damaged, last }: Part, place: Place): Promise<RowsRead> {
    if (last !== undefined) return { looked, damaged, cursor: this.#write({ ...place, after: last }) };
    const table = place.table + 1;
    if (table < TABLES.length) return { looked, damaged, cursor: this.#write({ ...place, table, after: undefined }) };
    if (place.isWhole && !this.#env.isAllChecked) await this.#env.allChecked();
    return { looked, damaged };
  }

  #read(cursor: string | undefined): Place {
    const bytes = this.#cursors.read({ limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    if (bytes === undefined) return { table: 0, isWhole: true, after: undefined };
    const after = bytes.subarray(HEAD_BYTES);
    return { table: bytes[0]!, isWhole: bytes[1] === 1, after: after.length === 0 ? undefined : after };
  }

  #write({ table, isWhole, after = new Uint8Array() }: Place): string {
    return this.#cursors.write(concat(Uint8Array.of(table, isWhole ? 1 : 0), after));
  }
}

function partOf<Row extends { readonly key: Uint8Array; readonly value: Uint8Array }>(
  rows: Iterable<Row>,
  look: (row: Row) => DamagedRow | undefined,
): Part {
  const damaged: DamagedRow[] = [];
  let [looked, bytes] = [0, 0];
  for (const row of rows) {
    const found = look(row);
    if (found !== undefined) damaged.push(found);
    looked += 1;
    bytes += row.key.length + row.value.length;
    if (looked >= ROW_CHECK_TURN_ROWS || bytes >= ROW_CHECK_PAGE_MAX_BYTES) return { looked, damaged, last: row.key };
  }
  return { looked, damaged };
}

function rangeOf({ after }: Place): { readonly start: Uint8Array } {
  return { start: after === undefined ? FIRST_KEY : following(after) };
}

function damagedRow(table: Table, key: Uint8Array, reason: string | undefined): DamagedRow | undefined {
  return reason === undefined ? undefined : { table, key: keyText(table, key), reason };
}

function keyText(table: Table, key: Uint8Array): string {
  if (table !== "objects" && table !== "records") return shownKey(key);
  const { cid, id } = parseEntityKey(key);
  return `${cid}:${id}`;
}
