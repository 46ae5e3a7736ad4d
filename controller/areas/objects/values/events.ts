import { ulidTimeMs } from "../../../../common/ids.ts";
import type { Row } from "../../../../common/value.ts";
import type { StoredRecord } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { MARKS_FIELD, RAW_BYTES_FIELD } from "../../permissions/index.ts";
import type { ClassView, ObjectChange, ObjectChangeEvent, ObjectRow, RecordMarks, WholeChange } from "../types.ts";
import type { EntityWrite } from "./compose.ts";
import { createdMs } from "./entity.ts";
import { wholeId } from "./identity.ts";
import type { CheckedRow, LinkEdit } from "./rows.ts";

type WrittenRow = Pick<CheckedRow, "links" | "announced">;

export type WriteEvent = Pick<ObjectChangeEvent, "class" | "id" | "timeMs" | "action" | "fields" | "whole">;
export type PublishedEvent = Omit<WriteEvent, "whole"> & WholeChange & Pick<ObjectChange, "announced">;

/** Names the object of a change within its tenant. */
export function objectOf({ class: path, id }: Pick<WriteEvent, "class" | "id">): string {
  return `${path} ${id}`;
}

export function upsertEvent(write: EntityWrite, row: Row, { links, announced }: WrittenRow): PublishedEvent {
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
    ...(announced && { announced }),
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

interface InsertedRecord {
  readonly record: StoredRecord;
  readonly row: Row;
  readonly marked?: RecordMarks | undefined;
  /** True if a trigger asks to announce the write. */
  readonly announced?: boolean;
}

/** Conditions on the object see its marks. The raw bytes are left out, because they would be stored twice. */
export function insertEvent(view: LoadedClass, inserted: InsertedRecord): PublishedEvent {
  const { record, row, marked, announced = false } = inserted;
  const timeMs = ulidTimeMs(record.id) ?? 0;
  const values = unsealed(view, row);
  const isMarked = marked !== undefined && view.recordColumn(MARKS_FIELD) !== undefined;
  const object = {
    values: isMarked ? { ...values, [MARKS_FIELD]: marked.marks } : values,
    vtimeMs: timeMs,
    ctimeMs: timeMs,
  };
  return {
    class: view.path,
    id: wholeId(view, record.id),
    timeMs,
    action: "INSERT",
    fields: values,
    object,
    relations: [],
    ...(announced && { announced }),
  };
}

export function deleteEvent(row: ObjectRow, timeUs: number, announced = false): PublishedEvent {
  const { id, class: view, values, vtimeMs, ctimeMs } = row;
  const object = { values: withoutRawBytes(view, unsealed(view, values)), vtimeMs, ctimeMs };
  return {
    class: view.path,
    id,
    timeMs: timeUs / 1_000,
    action: "DELETE",
    fields: {},
    object,
    relations: [],
    ...(announced && { announced }),
  };
}

function withoutRawBytes({ recordColumns = [] }: ClassView, row: Row): Row {
  if (!Object.hasOwn(row, RAW_BYTES_FIELD) || !recordColumns.some(({ name }) => name === RAW_BYTES_FIELD)) return row;
  return Object.fromEntries(Object.entries(row).filter(([name]) => name !== RAW_BYTES_FIELD));
}

/**
 * The event in the form that is stored until every durable subscription took it. Only some subscriptions want the whole
 * object.
 */
export function storedEvent(event: PublishedEvent, isWhole: boolean): WriteEvent {
  const { class: path, id, timeMs, action, fields, object, before, relations } = event;
  const whole = { object, ...(before && { before }), relations };
  return { class: path, id, timeMs, action, fields, ...(isWhole && { whole }) };
}

export function unsealed(view: ClassView, row: Row): Row {
  if (!view.columns.some((column) => column.sealed)) return row;
  return Object.fromEntries(Object.entries(row).filter(([name]) => view.column(name)?.sealed !== true));
}
