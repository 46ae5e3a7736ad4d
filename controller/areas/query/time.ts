const DATE_TIME = /^(\d{4})-(\d\d?)-(\d\d?)(?:[ T](\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s*(Z|[+-]\d\d:?\d\d)?$/;
const MILLISECONDS = /^-?\d{5,16}$/;

/** `YYYY-MM-DD[ HH:mm[:ss[.SSS]]]`, in UTC unless an offset follows, or milliseconds since 1970; absent when it is neither. */
export function parseTime(text: string): number | undefined {
  const trimmed = text.trim();
  if (MILLISECONDS.test(trimmed)) return Number(trimmed);
  const match = DATE_TIME.exec(trimmed);
  if (!match) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const millisecond = Math.floor(Number(`0.${match[7] ?? "0"}`) * 1000);
  const fields = [year ?? 0, (month ?? 0) - 1, day ?? 0, hour ?? 0, minute ?? 0, second ?? 0] as const;
  const timeMs = Date.UTC(...fields, millisecond);
  return isReal(timeMs, fields) ? timeMs - offsetMs(match[8]) : undefined;
}

/** The day of a time in UTC, `YYYY-MM-DD`. */
export function dayOf(timeMs: number): string {
  const date = new Date(timeMs);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 10);
}

/** `2024-02-31` would otherwise be a day in March. */
function isReal(timeMs: number, fields: readonly [number, number, number, number, number, number]): boolean {
  const date = new Date(timeMs);
  const [, month, day, hour, minute, second] = fields;
  return date.getUTCMonth() === month && date.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
}

function offsetMs(text: string | undefined): number {
  if (text === undefined || text === "Z") return 0;
  const digits = text.replace(":", "");
  const minutes = Number(digits.slice(1, 3)) * 60 + Number(digits.slice(3, 5));
  return (text.startsWith("-") ? -minutes : minutes) * 60_000;
}
