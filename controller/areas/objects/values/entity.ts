import type { Row, Value } from "../../../../common/value.ts";
import { setMember } from "../../../../common/members.ts";
import type { Cells, Entity } from "../../../store/objects.ts";
import type { LoadedClass, LoadedColumn } from "../definitions/views.ts";
import type { ObjectRow } from "../types.ts";
import { CREATED_CELL, layoutOf, layoutOnly, type CellLayout, type CollectionCells } from "./celllayout.ts";
import { decodeCell, encodeCell, isClearedBase } from "./codec.ts";
import { wholeId } from "./identity.ts";
import { canonicalText, isObject } from "./values.ts";

/** Column values of a stored entity. Cells of dropped columns are skipped. */
export function entityRow(view: LoadedClass, { cells }: Pick<Entity, "cells">): Row {
  return rowOfCells(layoutOf(view, cells.keys), cells);
}

/** `wanted`: names of the only columns whose values are made; absent: all. */
export function entityObject(view: LoadedClass, entity: Entity, wanted?: ReadonlySet<string>): ObjectRow {
  const { cells } = entity;
  const whole = layoutOf(view, cells.keys);
  const layout = wanted === undefined ? whole : layoutOnly(whole, wanted);
  return {
    id: wholeId(view, entity.key.id),
    class: view,
    values: rowOfCells(layout, cells),
    vtimeMs: Math.floor(entity.lastUs / 1_000),
    ctimeMs: layout.created < 0 ? Math.floor(entity.birthUs / 1_000) : createdMs(entity),
  };
}

export function createdMs(entity: Entity): number {
  const place = entity.cells.keys.indexOf(CREATED_CELL);
  const created = place < 0 ? undefined : valueAt(entity.cells, place);
  return typeof created === "number" ? created : Math.floor(entity.birthUs / 1_000);
}

/** A row from values in the order of the columns. */
export function rowOf(view: LoadedClass, values: readonly (Value | undefined)[]): Row {
  const row: Row = {};
  for (const column of view.columns) {
    const value = values[column.ordinal];
    if (value !== undefined) row[column.name] = value;
  }
  return row;
}

/** Numbers and values of the columns in one list: `[number, value, number, value, …]`. */
export function flatValues(view: LoadedClass, row: Row): Value[] {
  const flat: Value[] = [];
  for (const column of view.columns) {
    const value = row[column.name];
    if (value !== undefined) flat.push(column.number, value);
  }
  return flat;
}

export function rowOfFlat(view: LoadedClass, flat: readonly Value[]): Row {
  const values: (Value | undefined)[] = new Array<Value | undefined>(view.columns.length);
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const column = view.columnByNumber(Number(flat[at]));
    if (column !== undefined) values[column.ordinal] = flat[at + 1];
  }
  return rowOf(view, values);
}

/** Name and cell value of each element of a set, or entry of a map. */
export function elementCells(column: LoadedColumn, value: Value | undefined): [string, Uint8Array][] {
  if (Array.isArray(value))
    return value.map((element: Value) => [canonicalText(element), encodeCell("varchar", element, column.name)]);
  if (!isObject(value)) return [];
  return Object.entries(value).map(([key, entry]) => [key, encodeCell("map", [key, entry], column.name)]);
}

function rowOfCells({ columns }: CellLayout, cells: Cells): Row {
  const row: Row = {};
  for (const { column, place, elements } of columns) {
    if (elements === undefined) row[column.name] = valueAt(cells, place);
    else {
      const value = collected(cells, { column, place, elements });
      if (value !== undefined) row[column.name] = value;
    }
  }
  return row;
}

function valueAt(cells: Cells, place: number): Value {
  return decodeCell(cells.bytes(place), cells.start(place), cells.end(place));
}

/**
 * Value of a set or map. Its elements are those that are at least as new as the base. Without elements it is empty if
 * it was assigned as a whole, otherwise not set.
 */
function collected(cells: Cells, { column, place, elements }: CollectionCells): Value | undefined {
  const baseUs = place < 0 ? -Infinity : cells.timeUs(place);
  const live = elements.filter((element) => cells.timeUs(element) >= baseUs);
  const assigned = place >= 0 && !isClearedBase(cells.bytes(place), cells.start(place));
  if (live.length === 0 && !assigned) return undefined;
  const values = live.map((element) => valueAt(cells, element));
  return column.type === "set" ? values : entriesObject(values);
}

function entriesObject(entries: readonly Value[]): Value {
  const object: Record<string, Value> = {};
  for (const entry of entries) {
    if (!Array.isArray(entry)) continue;
    const [key, value] = entry as readonly Value[];
    setMember(object, String(key), value ?? null);
  }
  return object;
}
