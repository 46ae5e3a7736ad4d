import { parseObjectId, ulidOf, ulidTimeMs } from "../../../common/ids.ts";
import type { Row, Value } from "../../../common/value.ts";
import { decodeStored, encodePacked } from "../../store/format.ts";
import type { StoredRecord } from "../../store/objects.ts";
import type { ColumnEdit } from "./compose.ts";
import { expiry } from "./compose.ts";
import { flatValues, rowOfFlat } from "./entity.ts";
import { wholeId, type IdSource } from "./identity.ts";
import { contentTerms } from "./terms.ts";
import type { ObjectRow } from "./types.ts";
import type { LoadedClass } from "./views.ts";

/** A record to be stored, with its canonical values. */
export function recordOf(view: LoadedClass, id: string, edits: readonly ColumnEdit[]): { readonly record: StoredRecord; readonly row: Row } {
  const row: Row = {};
  for (const edit of edits) if (edit.value !== undefined) row[edit.column.name] = edit.value;
  const timeMs = ulidTimeMs(id) ?? 0;
  const record = { cid: view.cid, id, value: encodePacked(flatValues(view, row)), terms: contentTerms(view, row), ...expiry(view, timeMs * 1_000) };
  return { record, row };
}

/** A given id counts when it is a whole or bare ULID; it is then the record's time as well. */
export function recordId(view: LoadedClass, given: Value | undefined, source: IdSource): string {
  if (typeof given === "string") {
    const parts = parseObjectId(given);
    const bare = parts?.label === view.label ? parts.key : given;
    if (ulidTimeMs(bare) !== undefined) return bare;
  }
  return ulidOf(source.timeMs, source.entropy());
}

export function recordObject(view: LoadedClass, record: StoredRecord): ObjectRow {
  const timeMs = ulidTimeMs(record.id) ?? 0;
  const values = rowOfFlat(view, decodeStored<readonly Value[]>(record.value));
  return { id: wholeId(view, record.id), class: view, values, vtimeMs: timeMs, ctimeMs: timeMs };
}
