import { AppError } from "../../../../common/errors.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { NewRecord, WriteBasis } from "../types.ts";

/**
 * Returns a test for names of columns. It is false for a column of the basis that the class lost or replaced since. It
 * throws `AppError("not_found")` for a column that the class got since. It is true for a name in neither, which the
 * checks of rows refuse.
 */
export function standing(basis: WriteBasis, view: LoadedClass): (name: string) => boolean {
  const then = new Map(basis.columns);
  return (name) => {
    const [number, now] = [then.get(name), view.column(name)?.number];
    if (number !== undefined || now === undefined) return number === now;
    throw new AppError("not_found", `[NotExist] Field ${name} was not there in ${view.path}.`, {
      details: { column: name },
    });
  };
}

/**
 * The records without values of removed columns. `AppError("conflict")` when the class is not the class of the basis.
 */
export function standingRecords(
  basis: WriteBasis,
  view: LoadedClass,
  records: readonly NewRecord[],
): readonly NewRecord[] {
  if (basis.cid !== view.cid) throw new AppError("conflict", `[Valid] class ${view.path} is another one by now.`);
  if (basis.columns.every(([name, number]) => view.column(name)?.number === number)) return records;
  const left = standing(basis, view);
  return records.map((record) => {
    const values = Object.fromEntries(Object.entries(record.values).filter(([name]) => left(name)));
    return { ...record, values };
  });
}
