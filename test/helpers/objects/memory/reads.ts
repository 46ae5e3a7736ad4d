import type { Value } from "../../../../common/value.ts";
import {
  canonicalText,
  type ObjectRow,
  type OrderedRead,
  type Pushdown,
  type ReadOrder,
  type ReadRequest,
} from "../../../../controller/areas/objects/index.ts";

/** The rows that a read answers. `narrows`: its conditions leave rows out, as far as reads narrow by them. */
export function selectedRows(rows: readonly ObjectRow[], request: ReadRequest, narrows: boolean): ObjectRow[] {
  const kept = rows.filter(
    (row) => !(request.ids && !request.ids.includes(row.id)) && (!narrows || fits(row, request.where ?? [])),
  );
  if (request.newestFirst) kept.sort((left, right) => right.vtimeMs - left.vtimeMs || (left.id < right.id ? 1 : -1));
  return kept;
}

/** Pages of this size, each after an empty one. */
export async function* pagesOf(rows: readonly ObjectRow[], size: number): AsyncGenerator<readonly ObjectRow[]> {
  for (let at = 0; at < rows.length; at += size) {
    yield await Promise.resolve([]);
    yield rows.slice(at, at + size);
  }
}

/** At most `most` rows in the order of a column; `undefined` if a value is not a number. */
export async function orderedRead(
  pages: AsyncIterable<readonly ObjectRow[]>,
  { column, descending, from }: ReadOrder,
  most: number,
): Promise<OrderedRead | undefined> {
  const sign = descending ? -1 : 1;
  const found: { readonly row: ObjectRow; readonly place: number }[] = [];
  for await (const page of pages)
    for (const row of page) {
      const value = column === "vtime" || column === "mtime" ? row.vtimeMs : row.values[column];
      if (value === undefined || value === null) continue;
      if (typeof value !== "number") return undefined;
      if (from === undefined || sign * value >= sign * from) found.push({ row, place: sign * value });
    }
  const rows = found.sort((one, other) => one.place - other.place).map(({ row }) => row);
  const answered = async function* (): AsyncGenerator<readonly ObjectRow[]> {
    for (let at = 0; at < Math.min(most, rows.length); at += 2)
      yield await Promise.resolve(rows.slice(at, Math.min(most, at + 2)));
  };
  return { pages: answered(), isWhole: () => rows.length <= most, isById: () => false };
}

function fits(row: ObjectRow, where: readonly Pushdown[]): boolean {
  return where.every((pushdown) => {
    if (pushdown.kind === "words" || pushdown.kind === "pattern") return true;
    if (pushdown.kind === "equals") return equalsOne(row.values[pushdown.column], pushdown.values);
    const number =
      pushdown.column === "vtime"
        ? row.vtimeMs
        : pushdown.column === "ctime"
          ? row.ctimeMs
          : row.values[pushdown.column];
    if (number === undefined || number === null) return false;
    return Number(number) >= (pushdown.from ?? -Infinity) && Number(number) <= (pushdown.to ?? Infinity);
  });
}

function equalsOne(value: Value | undefined, wanted: readonly Value[]): boolean {
  if (value === undefined || value === null) return false;
  const own = Array.isArray(value)
    ? (value as readonly Value[])
    : typeof value === "object"
      ? Object.keys(value)
      : [value];
  const texts = new Set(wanted.map(canonicalText));
  return own.some((element) => texts.has(canonicalText(element)));
}
