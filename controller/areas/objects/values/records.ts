import { parseObjectId, ulidTimeMs } from "../../../../common/ids.ts";
import { OBJECT_MAX_BYTES } from "../../../../common/limits.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { decodeStored, encodePacked } from "../../../store/format.ts";
import type { StoredRecord } from "../../../store/objects.ts";
import { NO_SCALAR, PackedReader } from "../../../store/packed-reader.ts";
import type { LoadedClass, LoadedColumn } from "../definitions/views.ts";
import { RECORD_COLUMNS } from "../definitions/definition.ts";
import type { ObjectRow, RecordMarks } from "../types.ts";
import { endsAtMs } from "./compose.ts";
import { flatValues, rowOfFlat } from "./entity.ts";
import { wholeId } from "./identity.ts";
import { contentTerms } from "./terms.ts";

const [MARKS_NUMBER = 0, RAW_BYTES_NUMBER = 0] = RECORD_COLUMNS.map(({ number }) => number);

/** A record of canonical values, as it is stored. */
export function recordOf(view: LoadedClass, id: string, row: Row, marked?: RecordMarks): StoredRecord {
  const expiresAtMs = endsAtMs(view, (ulidTimeMs(id) ?? 0) * 1_000);
  const flat = flatValues(view, row);
  const value = marked === undefined ? encodePacked(flat) : encodeMarked(flat, marked);
  const record = { cid: view.cid, id, value, terms: contentTerms(view, row) };
  return expiresAtMs === undefined ? record : { ...record, expiresAtMs };
}

/**
 * Encodes a record with its marks. If the record would be too large, it leaves out the raw bytes, and if that is not
 * enough, the marks, too.
 */
function encodeMarked(flat: readonly Value[], { marks, rawBytes }: RecordMarks): Uint8Array {
  const marked: readonly Value[] = [...flat, MARKS_NUMBER, [...marks]];
  const forms = rawBytes === undefined ? [marked] : [[...marked, RAW_BYTES_NUMBER, rawBytes], marked];
  for (const form of forms) {
    const value = encodePacked(form);
    if (value.length <= OBJECT_MAX_BYTES) return value;
  }
  return encodePacked(flat);
}

/** The id of a record. A given id counts if it is a whole or bare ULID; its time is then the time of the record. */
export function recordId(view: LoadedClass, given: Value | undefined, made: () => string): string {
  if (typeof given === "string") {
    const parts = parseObjectId(given);
    const bare = parts?.label === view.label ? parts.key : given;
    if (ulidTimeMs(bare) !== undefined) return bare;
  }
  return made();
}

/** `wanted`: names of the only columns whose values are made; absent: all. */
export function recordObject(view: LoadedClass, record: StoredRecord, wanted?: WantedColumns): ObjectRow {
  const timeMs = ulidTimeMs(record.id) ?? 0;
  return {
    id: wholeId(view, record.id),
    class: view,
    values: (wanted && wantedRow(wanted, record)) ?? recordRow(view, record),
    vtimeMs: timeMs,
    ctimeMs: timeMs,
  };
}

/** One value of the record, without making a row. */
export function recordValue({ value }: StoredRecord, column: LoadedColumn): Value | undefined {
  const flat = decodeStored<readonly Value[]>(value);
  for (let at = 0; at + 1 < flat.length; at += 2) if (flat[at] === column.number) return flat[at + 1];
  return undefined;
}

export function recordRow(view: LoadedClass, record: StoredRecord): Row {
  const flat = decodeStored<readonly Value[]>(record.value);
  const row = rowOfFlat(view, flat);
  for (let at = flat.length - 2; at >= 0 && isOfPlatform(flat[at]); at -= 2)
    for (const { number, name } of view.recordColumns) if (number === flat[at]) row[name] = flat[at + 1] ?? null;
  return row;
}

/** True for a number of a column of the platform. They are stored after the columns of the class. */
function isOfPlatform(number: Value | undefined): boolean {
  return number === MARKS_NUMBER || number === RAW_BYTES_NUMBER;
}

/** Columns of one class, each by its number. */
export type WantedColumns = ReadonlyMap<number, string>;

export function wantedColumns(view: LoadedClass, names: ReadonlySet<string>): WantedColumns {
  const columns = [...view.columns, ...view.recordColumns];
  return new Map(columns.filter(({ name }) => names.has(name)).map(({ number, name }) => [number, name]));
}

const READER = new PackedReader();

/** `undefined` if one of the values is not a scalar; then the whole record is decoded. */
function wantedRow(wanted: WantedColumns, { value }: StoredRecord): Row | undefined {
  const row: Row = {};
  let left = wanted.size;
  READER.begin(asBuffer(value));
  let pairs = READER.list() / 2;
  for (; pairs > 0 && left > 0; pairs -= 1) {
    const number = READER.scalar();
    const name = typeof number === "number" ? wanted.get(number) : undefined;
    if (name === undefined) {
      if (!READER.skip()) return undefined;
    } else {
      const own = READER.scalar();
      if (own === NO_SCALAR) return undefined;
      row[name] = own;
      left -= 1;
    }
  }
  return pairs < 0 ? undefined : row;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
