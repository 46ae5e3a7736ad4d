const DAY_MS = 86_400_000;
/**
 * Number of days from 1899-12-30 to 1970-01-01. In the 1900 calendar, dates from 1900-03-01 on count from 1899-12-30.
 */
const EPOCH_DAYS = 25_569;
/** Number of days from 1899-12-30 to 1904-01-01, which is day 0 of the 1904 calendar. */
const DAYS_TO_1904 = 1_462;
/** Day number of 1900-02-29, which the 1900 calendar contains although this day did not exist. */
const NO_DAY = 60;

/**
 * The time of a day number of a spreadsheet program, in milliseconds since 1970. `undefined` for a number that is not a
 * day: a time of day without a date, or 1900-02-29.
 */
export function timeOfDays(days: number, is1904: boolean): number | undefined {
  if (is1904) return sinceEpoch(days + DAYS_TO_1904);
  if ((days >= 0 && days < 1) || (days >= NO_DAY && days < NO_DAY + 1)) return undefined;
  return sinceEpoch(days >= 1 && days < NO_DAY ? days + 1 : days);
}

function sinceEpoch(days: number): number {
  return Math.round((days - EPOCH_DAYS) * DAY_MS);
}
