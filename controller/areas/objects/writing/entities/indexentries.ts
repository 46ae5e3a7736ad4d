import type { Value } from "../../../../../common/value.ts";
import type { Entity, EntityChange, StoredRecord } from "../../../../store/objects.ts";
import type { LoadedClass, LoadedColumn } from "../../definitions/views.ts";
import { elementCellKey } from "../../values/codec.ts";
import { entityRow } from "../../values/entity.ts";
import { recordRow } from "../../values/records.ts";
import {
  checkIndexedValues,
  contentTerms,
  countIndexedValues,
  sharedTerms,
  slotNumber,
  valueTerm,
  valueTerms,
} from "../../values/terms.ts";
import { canonicalText, isObject } from "../../values/values.ts";

/**
 * All terms and numbers that an entity has by its class, to be written again. Each has the time of its cell; words and
 * branches of tags have the time of the latest write. So concurrent and later writes win. `AppError("too_large")` if
 * the entity has more indexed values than are kept.
 */
export function indexEntries(view: LoadedClass, entity: Entity): EntityChange[] {
  checkIndexedValues(view, countIndexedValues(view, entityRow(view, entity)));
  return entriesOf(view, entity);
}

/** Like `indexEntries` but without a limit, for objects that already have these entries. */
export function entriesOf(view: LoadedClass, entity: Entity): EntityChange[] {
  const row = entityRow(view, entity);
  const entries = new Entries();
  for (const term of view.terms) entries.at(entity.birthUs).terms.push(term);
  for (const column of view.columns) if (column.indexed) addValue(entries, column, { entity, value: row[column.name] });
  const latest = entries.at(entity.lastUs);
  latest.terms.push(...sharedTerms(view, row));
  latest.numbers.set(0, Math.floor(entity.lastUs / 1_000));
  return entries.changes(entity);
}

/** The record with all terms of its class. Former terms stay, because superfluous terms do no harm. */
export function withIndexEntries(view: LoadedClass, record: StoredRecord): StoredRecord {
  return { ...record, terms: [...new Set([...record.terms, ...contentTerms(view, recordRow(view, record))])] };
}

interface Entry {
  readonly terms: string[];
  readonly numbers: Map<number, number | undefined>;
}

/** Index entries, by the time of their write. */
class Entries {
  readonly #byTime = new Map<number, Entry>();

  at(timeUs: number): Entry {
    const known = this.#byTime.get(timeUs) ?? { terms: [], numbers: new Map() };
    this.#byTime.set(timeUs, known);
    return known;
  }

  changes({ key }: Entity): EntityChange[] {
    return [...this.#byTime].map(([timeUs, { terms, numbers }]) => ({
      key,
      timeUs,
      addTerms: terms,
      numbers,
    }));
  }
}

function addValue(
  entries: Entries,
  column: LoadedColumn,
  { entity, value }: { readonly entity: Entity; readonly value: Value | undefined },
): void {
  if (value === undefined) return;
  const at = (cellKey: string): Entry => entries.at(entity.cells.get(cellKey)?.timeUs ?? entity.lastUs);
  if (column.type === "set" || column.type === "map") {
    for (const name of elementNames(value))
      at(elementCellKey(column.cellKey, name)).terms.push(valueTerm(column.number, name));
    return;
  }
  const entry = at(column.cellKey);
  entry.terms.push(...valueTerms(column, value));
  for (const slot of column.slots) entry.numbers.set(slot, slotNumber(value));
}

function elementNames(value: Value): string[] {
  if (Array.isArray(value)) return value.map((element: Value) => canonicalText(element));
  return isObject(value) ? Object.keys(value) : [];
}
