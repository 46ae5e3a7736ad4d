/** The day of a time in UTC, `YYYY-MM-DD`. */
export function dayOf(timeMs: number): string {
  const date = new Date(timeMs);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 10);
}
