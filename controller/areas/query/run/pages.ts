import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { Shape } from "../plan/outputs.ts";
import type { Slices } from "./slice.ts";

/** Yields the rows in pages, which are smaller for costly rows. Pauses between rows, also after an undefined one. */
export async function* paged(
  rows: Iterable<Row | undefined>,
  slices: Slices,
  rowWork = 1,
): AsyncIterable<readonly Row[]> {
  let page: Row[] = [];
  for (const row of rows) {
    if (row) page.push(row);
    if (slices.isOver(rowWork)) await slices.pause();
    if (page.length * rowWork < OBJECT_PAGE_MAX) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

type Extent = Pick<Shape<never>, "offset" | "limit">;

interface Projecting<R> {
  readonly project: (row: R) => Row;
  readonly rowWork: number;
  readonly slices: Slices;
}

/** Applies OFFSET and LIMIT to rows, or to the rows that `project` makes; stops reading as soon as it has enough. */
export function windowed(pages: AsyncIterable<readonly Row[]>, extent: Extent): AsyncIterable<readonly Row[]>;
export function windowed<R>(
  pages: AsyncIterable<readonly R[]>,
  extent: Extent,
  projecting: Projecting<R>,
): AsyncIterable<readonly Row[]>;
export async function* windowed<R>(
  pages: AsyncIterable<readonly R[]>,
  { offset, limit }: Extent,
  projecting?: Projecting<R>,
): AsyncIterable<readonly (R | Row)[]> {
  let skip = offset;
  let left = limit ?? Infinity;
  if (left === 0) return;
  for await (const page of pages) {
    const rows = page.slice(skip, skip + left);
    skip = Math.max(0, skip - page.length);
    left -= rows.length;
    if (rows.length > 0 && !projecting) yield rows;
    else if (projecting && rows.length > 0)
      yield* paged(projected(rows, projecting.project), projecting.slices, projecting.rowWork);
    if (left <= 0) return;
  }
}

/** The first `limit` rows, which must be few. They are yielded after it is known if there are more. */
export async function* cutAt(
  pages: AsyncIterable<readonly Row[]>,
  limit: number,
  onMore: (() => void) | undefined,
): AsyncIterable<readonly Row[]> {
  const rows: Row[] = [];
  for await (const page of pages) {
    for (const row of page) rows.push(row);
    if (rows.length <= limit) continue;
    onMore?.();
    break;
  }
  if (rows.length > 0) yield rows.slice(0, limit);
}

/** Makes each row when it is taken. */
export function* projected<R>(rows: readonly R[], project: (row: R) => Row | undefined): Iterable<Row | undefined> {
  for (const row of rows) yield project(row);
}
