const SECONDS: Readonly<Record<string, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
  month: 2_592_000,
  year: 31_536_000,
};

export const DURATION_UNITS: readonly string[] = Object.keys(SECONDS);

/**
 * Seconds for a whole number of units; a number without a unit is in seconds. Absent for anything else. A unit may end
 * with an s.
 */
export function durationSeconds(amount: unknown, unit: string | undefined): number | undefined {
  const factor = unit === undefined ? 1 : SECONDS[unit.toLowerCase().replace(/s$/, "")];
  const whole = amount === "" ? NaN : Number(amount);
  return factor !== undefined && Number.isSafeInteger(whole) ? whole * factor : undefined;
}
