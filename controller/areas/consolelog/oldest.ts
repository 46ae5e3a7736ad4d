/** A range of times in milliseconds; both ends are included. */
export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A request for the oldest rows of a source that can only be read newest first. */
export interface OldestRequest<Row> extends TimeRange {
  /** Yields the rows of that range, newest first. */
  readonly read: (range: TimeRange) => AsyncIterable<readonly Row[]>;
  readonly limit: number;
  /** Time of the call. A window that reaches past it extends to the end of the range. */
  readonly nowMs: number;
}

const FIRST_WIDTH_MS = 600_000;
/** Width of the next window, as a fraction of the time that the wanted number of rows spanned. */
const ROOM = 0.8;

/**
 * The oldest `limit` rows of the range, oldest first. Reads windows of time one after another. A window grows after
 * sparse ones and shrinks after overfull ones. So it reads about as many rows as it returns, even if many later rows
 * exist.
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
 * All rows of the window, oldest first. With more than `limit` rows it returns the time that the newest `limit` of them
 * span. If the window is too small to divide, it returns the oldest `limit` rows.
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
