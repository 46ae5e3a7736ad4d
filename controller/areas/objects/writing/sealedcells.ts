import type { Row } from "../../../../common/value.ts";
import type { Entity, EntityChange, ObjectStore } from "../../../store/objects.ts";
import { hasElementCells } from "../values/celllayout.ts";
import { elementCellKey, encodeCell } from "../values/codec.ts";
import { elementCells, entityRow } from "../values/entity.ts";
import type { LoadedClass, LoadedColumn } from "../definitions/views.ts";
import type { Place } from "../reading/locate.ts";

/**
 * Replaces the values of sealed columns. Each new value gets a time one microsecond above that of the value that was
 * read. So every other write to the same cell wins, before or after this one. No event is sent, because only the stored
 * form changes. False when there is no such object. The object store repeats a write with an unknown outcome.
 */
export async function exchangeSealed(
  { view, key }: Place,
  { store, exchanged }: { readonly store: ObjectStore; readonly exchanged: (values: Row) => Row },
): Promise<boolean> {
  const [entity] = await store.get([key]);
  if (!entity) return false;
  const values = exchanged(entityRow(view, entity));
  await store.change(changes(view, entity, values));
  return true;
}

function changes(view: LoadedClass, { key, cells }: Entity, values: Row): EntityChange[] {
  const sealed = view.columns.filter((column) => column.sealed);
  return sealed.flatMap((column) =>
    cellsOf(column, values).flatMap(([name, value]) => {
      const before = cells.get(name);
      if (!before || Buffer.compare(before.value, value) === 0) return [];
      return [{ key, timeUs: before.timeUs + 1, cells: new Map([[name, value]]) }];
    }),
  );
}

function cellsOf(column: LoadedColumn, values: Row): [string, Uint8Array][] {
  const { cellKey, name, type } = column;
  const value = values[name];
  if (hasElementCells(column))
    return elementCells(column, value).map(([element, bytes]) => [elementCellKey(cellKey, element), bytes]);
  return value === undefined ? [] : [[cellKey, encodeCell(type, value, name)]];
}
