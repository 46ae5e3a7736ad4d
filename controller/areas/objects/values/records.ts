import { parseObjectId, ulidTimeMs } from "../../../../common/ids.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { decodeStored, encodePacked } from "../../../store/format.ts";
import type { StoredRecord } from "../../../store/objects.ts";
import type { LoadedClass, LoadedColumn } from "../definitions/views.ts";
import type { ObjectRow } from "../types.ts";
import { expiry } from "./compose.ts";
import { flatValues, rowOfFlat } from "./entity.ts";
import { wholeId, type IdSource } from "./identity.ts";
import { contentTerms } from "./terms.ts";

/** A record of canonical values, as it is stored. */
export function recordOf(view: LoadedClass, id: string, row: Row): StoredRecord {
  const ends = view.options.ttlSeconds === undefined ? {} : expiry(view, (ulidTimeMs(id) ?? 0) * 1_000);
  return { cid: view.cid, id, value: encodePacked(flatValues(view, row)), terms: contentTerms(view, row), ...ends };
}

/** A given id counts when it is a whole or bare ULID; it is then the record's time as well. */
export function recordId(view: LoadedClass, given: Value | undefined, source: IdSource): string {
  if (typeof given === "string") {
    const parts = parseObjectId(given);
    const bare = parts?.label === view.label ? parts.key : given;
    if (ulidTimeMs(bare) !== undefined) return bare;
  }
  return source.ulid();
}

export function recordObject(view: LoadedClass, record: StoredRecord): ObjectRow {
  const timeMs = ulidTimeMs(record.id) ?? 0;
  return {
    id: wholeId(view, record.id),
    class: view,
    values: recordRow(view, record),
    vtimeMs: timeMs,
    ctimeMs: timeMs,
  };
}

/** One value of it, without making a row. */
export function recordValue({ value }: StoredRecord, column: LoadedColumn): Value | undefined {
  const flat = decodeStored<readonly Value[]>(value);
  for (let at = 0; at + 1 < flat.length; at += 2) if (flat[at] === column.number) return flat[at + 1];
  return undefined;
}

export function recordRow(view: LoadedClass, record: StoredRecord): Row {
  return rowOfFlat(view, decodeStored<readonly Value[]>(record.value));
}
