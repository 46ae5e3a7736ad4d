/** Days of the Gregorian calendar, computed with integers only. */

export const DAY_MS = 86_400_000;
const DAYS_OF_400_YEARS = 146_097;
const DAYS_FROM_0000_03_01_TO_1970 = 719_468;

/** Days from 1970 to a date: "chrono-Compatible Low-Level Date Algorithms", H. Hinnant. */
export function daysOf(year: number, month: number, day: number): number {
  const shiftedYear = month <= 2 ? year - 1 : year;
  const era = Math.floor(shiftedYear / 400);
  const ofEra = shiftedYear - era * 400;
  const ofYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const daysOfEra = ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear;
  return era * DAYS_OF_400_YEARS + daysOfEra - DAYS_FROM_0000_03_01_TO_1970;
}

export function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

export function daysInMonth(year: number, month: number): number {
  if (month === 2) return isLeapYear(year) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Monday of week 1 of ISO 8601 (the week with January 4), in days from 1970. */
export function firstMonday(year: number): number {
  const fourth = daysOf(year, 1, 4);
  return fourth - ((((fourth + 3) % 7) + 7) % 7);
}

export function weeksInYear(year: number): number {
  return (firstMonday(year + 1) - firstMonday(year)) / 7;
}

/** Year of a time in UTC. */
export function yearOf(atMs: number): number {
  return new Date(atMs).getUTCFullYear();
}
