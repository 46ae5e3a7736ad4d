import type { Row } from "../../../../common/value.ts";
import type { Objects, VisibleRecords } from "../../objects/index.ts";
import { byRulesAlone, classAccess, type HiddenColumns, type Principal } from "../../permissions/index.ts";
import { visibleClass } from "./rows.ts";

type OwnedRecord = Parameters<VisibleRecords["sees"]>[0];

export async function visibleRecords(
  principal: Principal,
  objects: Pick<Objects, "catalog">,
  path: string,
): Promise<VisibleRecords> {
  const { readable, where, hidden, parts } = classAccess(principal, path);
  if (!readable || (where === undefined && parts.length === 1))
    return { sees: () => readable, shown: (record) => without(record, hidden) };
  const catalog = await objects.catalog(principal);
  const reading = catalog.get(path)?.guard?.reading.permission;
  const filter = visibleClass(reading === undefined ? principal : byRulesAlone(principal, reading), catalog, path);
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
