import type { Row, Value } from "../../../../common/value.ts";
import { canonicalValue, type Column, type Edit, type ObjectRow } from "../../objects/index.ts";
import { isList, isMap } from "../expressions/literal.ts";
import { canonical } from "../expressions/questions.ts";

/** Values of an object after edits, for checks before a write. The objects area makes the write itself. */
export function withEdits(row: Pick<ObjectRow, "class" | "values">, edits: readonly Edit[]): Row {
  const values: Row = { ...row.values };
  for (const edit of edits) {
    const column = row.class.column(edit.column);
    if (!column) continue;
    const next = edited(column, values[edit.column], edit);
    if (next === undefined || next === null || isEmptied(column, next, edit)) delete values[edit.column];
    else values[edit.column] = next;
  }
  return values;
}

/** True if the last element was taken: an empty set or map is not set any more. */
function isEmptied(column: Column, value: Value | undefined, edit: Edit): boolean {
  const holdsElements = column.type === "set" || column.type === "map";
  return (
    edit.operation === "take" &&
    holdsElements &&
    typeof value === "object" &&
    value !== null &&
    Object.keys(value).length === 0
  );
}

function edited(column: Column, current: Value | undefined, edit: Edit): Value | undefined {
  if (edit.operation === "set") return edit.value === undefined ? undefined : canonicalValue(column, edit.value);
  if (column.type === "map") return editedMap(column, isMap(current) ? current : {}, edit);
  return editedList(column, isList(current) ? current : [], edit);
}

function editedList(column: Column, current: readonly Value[], edit: Edit): Value {
  const given = canonicalValue(column, edit.value ?? null);
  const elements = isList(given) ? given : [];
  const names = new Set(elements.map(canonical));
  if (edit.operation === "take") return current.filter((element) => !names.has(canonical(element)));
  if (column.type === "list") return [...current, ...elements];
  const known = new Set(current.map(canonical));
  return [...current, ...elements.filter((element) => !known.has(canonical(element)))];
}

function editedMap(column: Column, current: { readonly [key: string]: Value }, edit: Edit): Value {
  if (edit.operation === "add") {
    const given = canonicalValue(column, edit.value ?? null);
    return isMap(given) ? { ...current, ...given } : current;
  }
  const keys = new Set(takenKeys(edit.value));
  return Object.fromEntries(Object.entries(current).filter(([key]) => !keys.has(key)));
}

/** Keys to take, from a key, a list of keys, or a map, of which only the keys count. */
function takenKeys(value: Value | undefined): readonly string[] {
  if (isList(value)) return value.map(String);
  return isMap(value) ? Object.keys(value) : [String(value)];
}
