const DAY_MS = 86_400_000;
/** Days from 1899-12-30 to 1970: where the calendar of 1900 begins, for days from 1900-03-01 on. */
const EPOCH_DAYS = 25_569;
/** Days from 1899-12-30 to 1904-01-01, which is day 0 of the calendar of 1904. */
const DAYS_TO_1904 = 1_462;
/** The calendar of 1900 has a 29th of February 1900, which was no day. */
const NO_DAY = 60;

/**
 * Milliseconds since 1970 of the days by which spreadsheet programs count. `undefined` for a number that is no day: a
 * time of day alone, and the 29th of February 1900.
 */
export function timeOfDays(days: number, is1904: boolean): number | undefined {
  if (is1904) return sinceEpoch(days + DAYS_TO_1904);
  if ((days >= 0 && days < 1) || (days >= NO_DAY && days < NO_DAY + 1)) return undefined;
  return sinceEpoch(days >= 1 && days < NO_DAY ? days + 1 : days);
}

function sinceEpoch(days: number): number {
  return Math.round((days - EPOCH_DAYS) * DAY_MS);
}
