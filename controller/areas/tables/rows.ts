import { AppError } from "../../../common/errors.ts";
import { TABLE_MAX_BYTES, TABLE_ROWS_MAX } from "../../../common/limits.ts";

/** One row of a table: JSON values by column. `key` identifies it, if present. */
export type TableRow = Readonly<Record<string, unknown>>;

/** The key of a row as text, from a text or a number; `undefined` for a row without a key. */
export function keyOf({ key }: TableRow): string | undefined {
  return key === undefined || key === null ? undefined : String(key as string | number);
}

/**
 * Merges `given` into the rows. Given rows replace all rows with the same key, at the place of the first of them. Given
 * rows with a new key, or without a key, are added at the end.
 */
export function merged(rows: readonly TableRow[], given: readonly TableRow[]): readonly TableRow[] {
  const byKey = new Map<string, TableRow[]>();
  for (const row of given) {
    const key = keyOf(row);
    if (key === undefined) continue;
    const same = byKey.get(key);
    if (same) same.push(row);
    else byKey.set(key, [row]);
  }
  const placed = new Set<string>();
  const kept = rows.flatMap((row) => {
    const key = keyOf(row);
    const instead = key === undefined ? undefined : byKey.get(key);
    if (key === undefined || instead === undefined) return [row];
    if (placed.has(key)) return [];
    placed.add(key);
    return instead;
  });
  const others = given.filter((row) => {
    const key = keyOf(row);
    return key === undefined || !placed.has(key);
  });
  return [...kept, ...others];
}

/** `AppError("invalid")` for a key that is neither a text nor a number; names the first such row. */
export function checkRows(rows: readonly TableRow[]): void {
  const wrong = rows.findIndex(({ key }) => !["string", "number", "undefined"].includes(typeof (key ?? undefined)));
  if (wrong !== -1) throw new AppError("invalid", `The key of row ${wrong + 1} is neither a text nor a number.`);
}

/** `AppError("too_large")` if the rows exceed the limits of a table. */
export function checkSize(rows: readonly TableRow[], bytes: number): void {
  if (rows.length > TABLE_ROWS_MAX)
    throw new AppError("too_large", `A table has at most ${TABLE_ROWS_MAX} rows, not ${rows.length}.`, {
      details: { limit: "TABLE_ROWS_MAX" },
    });
  if (bytes > TABLE_MAX_BYTES)
    throw new AppError("too_large", `A table has at most ${TABLE_MAX_BYTES} bytes as JSON, not ${bytes}.`, {
      details: { limit: "TABLE_MAX_BYTES" },
    });
}
