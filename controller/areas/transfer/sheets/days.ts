const DAY_MS = 86_400_000;
/** Days from 1899-12-30 to 1970-01-01: the start of the 1900 calendar for days from 1900-03-01 on. */
const EPOCH_DAYS = 25_569;
/** Days from 1899-12-30 to 1904-01-01, which is day 0 of the 1904 calendar. */
const DAYS_TO_1904 = 1_462;
/** The 1900 calendar has a day 1900-02-29, which did not exist. */
const NO_DAY = 60;

/**
 * Milliseconds since 1970 for a day number of a spreadsheet program. `undefined` for a number that is no day: a time of
 * day alone, or 1900-02-29.
 */
export function timeOfDays(days: number, is1904: boolean): number | undefined {
  if (is1904) return sinceEpoch(days + DAYS_TO_1904);
  if ((days >= 0 && days < 1) || (days >= NO_DAY && days < NO_DAY + 1)) return undefined;
  return sinceEpoch(days >= 1 && days < NO_DAY ? days + 1 : days);
}

function sinceEpoch(days: number): number {
  return Math.round((days - EPOCH_DAYS) * DAY_MS);
}
