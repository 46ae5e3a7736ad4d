import type { Entity, ObjectStore } from "../../../../store/objects.ts";
import type { LoadedClass } from "../../definitions/views.ts";
import { entityRow } from "../../values/entity.ts";
import type { CheckedRow } from "../../values/rows.ts";
import { outgoingPages } from "../edges/links.ts";

/**
 * The row with edits that make its object whole: they remove what an object of an earlier time has and the row does not
 * name. A repetition of the write removes nothing.
 */
export async function wholeRow(
  row: CheckedRow,
  {
    view,
    entity,
    store,
  }: { readonly view: LoadedClass; readonly entity: Entity | undefined; readonly store: ObjectStore },
): Promise<CheckedRow> {
  const { wholeBut, writeUs = 0, edits, links } = row;
  if (wholeBut === undefined || entity === undefined || isWrittenAt(entity, writeUs)) return row;
  const named = new Set([...wholeBut, ...edits.map(({ column }) => column.name), ...links.map(({ type }) => type)]);
  const had = entityRow(view, entity);
  const columns = view.columns.filter(
    ({ name, key, sealed }) => had[name] !== undefined && !named.has(name) && !key && !sealed,
  );
  const types = new Set<string>();
  for await (const edges of outgoingPages(entity.key, { store }))
    for (const { type } of edges) if (!named.has(type)) types.add(type);
  return {
    ...row,
    edits: [...edits, ...columns.map((column) => ({ column, operation: "set" as const, value: undefined }))],
    links: [...links, ...[...types].map((type) => ({ type, operation: "set" as const, ids: [] }))],
  };
}

/**
 * True if the object has a part of that time or a later one. Its last time does not say that: it can come from a
 * version that was stored before.
 */
function isWrittenAt({ birthUs, cells }: Entity, timeUs: number): boolean {
  return birthUs >= timeUs || cells.keys.some((_, at) => cells.timeUs(at) >= timeUs);
}
