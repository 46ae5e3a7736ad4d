import type { Row } from "../../../common/value.ts";
import type { Objects } from "../objects/index.ts";
import { byRulesAlone, classAccess, type HiddenColumns, type Principal } from "../permissions/index.ts";
import { rowFilter } from "./row-filter.ts";

/** A record as its owner keeps and answers it: with the id that it has as an object. */
interface OwnedRecord {
  readonly id: string;
}

/** The records that a principal may see of a class whose owner keeps its objects itself: the same as by MQL. */
export interface RecordFilter {
  /**
   * True if the record exists for the principal. `row`: its form in MQL, if that is not the record itself.
   */
  sees(record: OwnedRecord, row?: Row): boolean;
  /** Without the members that are columns hidden from the principal: those are left out. */
  shown<R extends OwnedRecord>(record: R): R;
}

/**
 * By the rules alone: an owner asks for its own permission before, and closes some of its records (`ClassGuard.limit`)
 * itself.
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
