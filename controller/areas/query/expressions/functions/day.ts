/** The day of a time in UTC, `YYYY-MM-DD`. */
export function dayOf(timeMs: number): string {
  const day = Math.floor(timeMs / DAY_MS);
  if (day !== latest.day) latest = { day, text: textOf(timeMs) };
  return latest.text;
}

const DAY_MS = 86_400_000;

/** Cached, because successive rows mostly have the same day. */
let latest = { day: Number.NaN, text: "" };

function textOf(timeMs: number): string {
  const date = new Date(timeMs);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 10);
}
