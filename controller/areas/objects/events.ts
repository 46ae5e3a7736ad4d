import { ulidTimeMs } from "../../../common/ids.ts";
import type { Row } from "../../../common/value.ts";
import type { StoredRecord } from "../../store/objects.ts";
import type { ComposedWrite, EntityWrite } from "./compose.ts";
import { wholeId } from "./identity.ts";
import type { Place } from "./locate.ts";
import type { LinkEdit } from "./rows.ts";
import type { ObjectChangeEvent } from "./types.ts";
import type { LoadedClass } from "./views.ts";

export type WriteEvent = Pick<ObjectChangeEvent, "class" | "id" | "timeMs" | "action" | "fields">;

export function linkFields(links: readonly LinkEdit[]): Row {
  return Object.fromEntries(links.map((link) => [link.type, link.ids]));
}

export function upsertEvent(write: EntityWrite | undefined, composed: ComposedWrite, links: readonly LinkEdit[]): WriteEvent {
  const { change, fields } = composed;
  return {
    class: write?.view.path ?? "",
    id: write === undefined ? change.key.id : wholeId(write.view, change.key.id),
    timeMs: change.timeUs / 1_000,
    action: write?.old === undefined ? "INSERT" : "UPDATE",
    fields: { ...fields, ...linkFields(links) },
  };
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
