import { ulidTimeMs } from "../../../../common/ids.ts";
import type { Row } from "../../../../common/value.ts";
import type { StoredRecord } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { ClassView, ObjectChange, ObjectChangeEvent, ObjectRow } from "../types.ts";
import type { EntityWrite } from "./compose.ts";
import { createdMs } from "./entity.ts";
import { wholeId } from "./identity.ts";
import type { LinkEdit } from "./rows.ts";

export type WriteEvent = Pick<ObjectChangeEvent, "class" | "id" | "timeMs" | "action" | "fields">;
export type PublishedEvent = WriteEvent & Pick<ObjectChange, "object" | "before" | "relations">;

export function upsertEvent(write: EntityWrite, row: Row, links: readonly LinkEdit[]): PublishedEvent {
  const { view, key, timeUs, old } = write;
  const action = old === undefined ? "INSERT" : "UPDATE";
  const fields = writtenFields(write, row, links);
  const vtimeMs = Math.floor(Math.max(timeUs, old?.entity.lastUs ?? 0) / 1_000);
  const object = { values: unsealed(view, row), vtimeMs, ctimeMs: old === undefined ? vtimeMs : createdMs(old.entity) };
  return {
    class: view.path,
    id: wholeId(view, key),
    timeMs: timeUs / 1_000,
    action,
    fields,
    object,
    ...(old && { before: { values: valuesBefore(write, old.row), vtimeMs: Math.floor(old.entity.lastUs / 1_000) } }),
    relations: links.map(({ type }) => type),
  };
}

function valuesBefore({ edits }: EntityWrite, row: Row): Row {
  const written = edits.filter(({ column }) => !column.sealed);
  return Object.fromEntries(written.map(({ column }) => [column.name, row[column.name] ?? null]));
}

/** The written columns with their values after the write, without sealed ones; `null` for cleared columns. */
function writtenFields({ edits }: EntityWrite, row: Row, links: readonly LinkEdit[]): Row {
  const fields: Row = {};
  for (const { column } of edits) if (!column.sealed) fields[column.name] = row[column.name] ?? null;
  for (const { type, ids } of links) fields[type] = ids;
  return fields;
}

export function insertEvent(view: LoadedClass, record: StoredRecord, row: Row): PublishedEvent {
  const timeMs = ulidTimeMs(record.id) ?? 0;
  const values = unsealed(view, row);
  const object = { values, vtimeMs: timeMs, ctimeMs: timeMs };
  return {
    class: view.path,
    id: wholeId(view, record.id),
    timeMs,
    action: "INSERT",
    fields: values,
    object,
    relations: [],
  };
}

export function deleteEvent({ id, class: view, values, vtimeMs, ctimeMs }: ObjectRow, timeUs: number): PublishedEvent {
  const object = { values: unsealed(view, values), vtimeMs, ctimeMs };
  return { class: view.path, id, timeMs: timeUs / 1_000, action: "DELETE", fields: {}, object, relations: [] };
}

/** The part that is stored until every durable subscription took it; the object itself would be stored twice. */
export function storedEvent({ class: path, id, timeMs, action, fields }: PublishedEvent): WriteEvent {
  return { class: path, id, timeMs, action, fields };
}

function unsealed(view: ClassView, row: Row): Row {
  if (!view.columns.some((column) => column.sealed)) return row;
  return Object.fromEntries(Object.entries(row).filter(([name]) => view.column(name)?.sealed !== true));
}
