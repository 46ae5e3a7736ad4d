/** A range of times in milliseconds; both ends belong to it. */
export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What is read newest first and wanted oldest first. */
export interface OldestRequest<Row> extends TimeRange {
  /** Rows of that range, newest first. */
  readonly read: (range: TimeRange) => AsyncIterable<readonly Row[]>;
  readonly limit: number;
  /** What lies behind it is read at once. */
  readonly nowMs: number;
}

const FIRST_WIDTH_MS = 600_000;
/** Of the width in which as many rows as are wanted lay elsewhere. */
const ROOM = 0.8;

/**
 * The oldest `limit` rows of the range, oldest first. Looks through windows of time that grow where there is little and
 * shrink where there is more than wanted, so that it reads about as many rows as it answers, however many come after.
 */
export async function oldest<Row extends { readonly vtimeMs: number }>(
  request: OldestRequest<Row>,
): Promise<readonly Row[]> {
  const { read, limit, nowMs, fromMs, toMs } = request;
  const rows: Row[] = [];
  let widthMs = FIRST_WIDTH_MS;
  let toTheEnd = fromMs + widthMs > nowMs;
  for (let startMs = fromMs; startMs <= toMs && rows.length < limit; ) {
    const endMs = toTheEnd ? toMs : Math.min(toMs, startMs + widthMs - 1);
    const found = await window(read({ fromMs: startMs, toMs: endMs }), limit - rows.length, startMs === endMs);
    if ("rows" in found) {
      rows.push(...found.rows);
      startMs = endMs + 1;
      widthMs *= 2;
      toTheEnd = startMs + widthMs > nowMs;
    } else {
      const half = Math.min(widthMs, endMs - startMs + 1) / 2;
      widthMs = Math.max(1, Math.floor(Math.min(half, found.spanMs * ROOM)));
      toTheEnd = false;
    }
  }
  return rows;
}

/**
 * All rows, oldest first; where there are more than `limit`, the time that so many of them span, or, in a window that
 * cannot be divided any more, the oldest.
 */
async function window<Row extends { readonly vtimeMs: number }>(
  pages: AsyncIterable<readonly Row[]>,
  limit: number,
  isSmallest: boolean,
): Promise<{ readonly rows: readonly Row[] } | { readonly spanMs: number }> {
  let rows: Row[] = [];
  for await (const page of pages) {
    rows.push(...page);
    if (rows.length <= limit) continue;
    if (!isSmallest) return { spanMs: (rows[0]?.vtimeMs ?? 0) - (rows[limit]?.vtimeMs ?? 0) };
    rows = rows.slice(-limit);
  }
  return { rows: rows.reverse() };
}
