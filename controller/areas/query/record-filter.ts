import type { Row } from "../../../common/value.ts";
import type { Objects } from "../objects/index.ts";
import { byRulesAlone, classAccess, type HiddenColumns, type Principal } from "../permissions/index.ts";
import { rowFilter } from "./row-filter.ts";

/** A record as its owner stores and returns it, with the id that it has as an object. */
interface OwnedRecord {
  readonly id: string;
}

/**
 * The records that a principal may see, for a class whose owner answers calls about them itself. The principal sees the
 * same records by MQL.
 */
export interface RecordFilter {
  /** True if the record exists for the principal. `row`: the form of the record in MQL, if it differs. */
  sees(record: OwnedRecord, row?: Row): boolean;
  /** The record without members that are columns hidden from the principal. */
  shown<R extends OwnedRecord>(record: R): R;
}

/**
 * The filter applies only the rules. The owner checks its own permission before, and hides some of its records
 * (`ClassGuard.limit`) itself.
 */
export async function recordFilter(
  principal: Principal,
  objects: Pick<Objects, "catalog">,
  path: string,
): Promise<RecordFilter> {
  const { readable, where, hidden, parts } = classAccess(principal, path);
  if (!readable || (where === undefined && parts.length === 1))
    return { sees: () => readable, shown: (record) => without(record, hidden) };
  const catalog = await objects.catalog(principal);
  const reading = catalog.get(path)?.guard?.reading.permission;
  const filter = rowFilter(reading === undefined ? principal : byRulesAlone(principal, reading), catalog, path);
  const objectOf = (record: OwnedRecord, row?: Row) => {
    return { id: record.id, values: row ?? (record as unknown as Row), vtimeMs: 0, ctimeMs: 0 };
  };
  return {
    shown: (record) => without(record, filter.hiddenIn(objectOf(record))),
    sees: (record, row) => filter.sees(objectOf(record, row)),
  };
}

function without<R extends OwnedRecord>(record: R, hidden: HiddenColumns): R {
  if (hidden.size === 0) return record;
  return Object.fromEntries(Object.entries(record).filter(([name]) => !hidden.has(name))) as unknown as R;
}
