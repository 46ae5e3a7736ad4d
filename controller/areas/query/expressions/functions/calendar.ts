/** Greatest time that has a calendar date, in milliseconds. */
const TIME_MAX_MS = 8.64e15;

/** The date of a time in UTC; undefined beyond the range of dates. */
export function dateAt(timeMs: number): Date | undefined {
  return Math.abs(timeMs) <= TIME_MAX_MS ? new Date(timeMs) : undefined;
}

/** `YYYY-MM-DD HH:mm:ss.SSS` of a date in UTC. */
export function dateText(date: Date): string {
  return date.toISOString().slice(0, -1).replace("T", " ");
}
