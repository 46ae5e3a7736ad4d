import { ulidTimeMs } from "../../../common/ids.ts";
import type { Row } from "../../../common/value.ts";
import type { StoredRecord } from "../../store/objects.ts";
import type { EntityWrite } from "./compose.ts";
import { wholeId } from "./identity.ts";
import type { Place } from "./locate.ts";
import type { LinkEdit } from "./rows.ts";
import type { ObjectChangeEvent } from "./types.ts";
import type { LoadedClass } from "./views.ts";

export type WriteEvent = Pick<ObjectChangeEvent, "class" | "id" | "timeMs" | "action" | "fields">;

export function upsertEvent(write: EntityWrite, row: Row, links: readonly LinkEdit[]): WriteEvent {
  const { view, key, timeUs, old } = write;
  const action = old === undefined ? "INSERT" : "UPDATE";
  return {
    class: view.path,
    id: wholeId(view, key),
    timeMs: timeUs / 1_000,
    action,
    fields: writtenFields(write, row, links),
  };
}

/** Of the object as it is afterwards what was written, without sealed columns; `null` for what was cleared. */
function writtenFields({ edits }: EntityWrite, row: Row, links: readonly LinkEdit[]): Row {
  const fields: Row = {};
  for (const { column } of edits) if (!column.sealed) fields[column.name] = row[column.name] ?? null;
  for (const { type, ids } of links) fields[type] = ids;
  return fields;
}

export function insertEvent(view: LoadedClass, record: StoredRecord, row: Row): WriteEvent {
  const fields = Object.fromEntries(Object.entries(row).filter(([name]) => view.column(name)?.sealed !== true));
  return { class: view.path, id: wholeId(view, record.id), timeMs: recordTimeMs(record), action: "INSERT", fields };
}

function recordTimeMs(record: StoredRecord): number {
  return ulidTimeMs(record.id) ?? 0;
}

export function deleteEvent({ view, key }: Place, timeUs: number): WriteEvent {
  return { class: view.path, id: wholeId(view, key.id), timeMs: timeUs / 1_000, action: "DELETE", fields: {} };
}
